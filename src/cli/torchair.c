/* compare --mode torchair: a table for each rank and graph, shown or saved. */
#define _GNU_SOURCE
#include "cli/torchair.h"

#include "base/arena.h"
#include "cli/digest.h"
#include "cli/junit.h"
#include "cli/notes.h"
#include "cli/page.h"
#include "cli/progress.h"
#include "cli/result.h"
#include "verdict/profiles.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* compare_result[_graphG][_rankR]_TIME.csv, or STEM[_rankR]_TIME.csv of columns that have one. */
static enum plumb_code save(char **path, const struct plumb_torchair_part *part,
                            const struct torchair_request *request, struct plumb_error *err)
{
    struct result_name name = {.folder = request->folder,
                               .ending = request->xlsx ? ".xlsx" : ".csv"};
    const struct graph_columns *columns =
        request->options.columns ? request->options.columns->graph_columns : NULL;
    char rank[32] = "", graph[32] = "", stem[96];
    if (part->rank >= 0)
        snprintf(rank, sizeof rank, "_rank%" PRId64, part->rank);
    if (part->graph >= 0)
        snprintf(graph, sizeof graph, "_graph%" PRId64, part->graph);
    if (columns)
        snprintf(stem, sizeof stem, "%s%s", columns->stem, rank);
    else
        snprintf(stem, sizeof stem, "compare_result%s%s", graph, rank);
    name.stem = stem;
    name.utc = columns && columns->utc;
    return result_save(path, &name, part->comparison.table, request->view, err);
}

static enum plumb_code deliver(const struct plumb_torchair_part *part, bool to_file,
                               const struct torchair_request *request, struct plumb_error *err)
{
    const struct cli_view *view = request->view;
    struct plumb_table *table = part->comparison.table;
    char *made = NULL;
    bool shown = !to_file && !request->quiet;
    bool digest = shown && request->digest && digest_suits(&part->comparison);
    if (request->only >= 0)
        plumb_table_keep_severity(table, (enum plumb_severity)request->only);
    enum plumb_code code = cli_arrange(table, view, err);
    if (!code && to_file)
        code = request->result ? cli_save(table, request->result, view, err)
                               : save(&made, part, request, err);
    else if (!code && shown && view->format == CLI_JUNIT)
        code = junit_comparison(&part->comparison, err);
    else if (!code && shown)
        code = digest         ? digest_show(&part->comparison, view, err)
               : request->all ? cli_show(table, view, err)
                              : digest_show_table(&part->comparison, view, err);
    const char *path = made ? made : request->result;
    if (!request->quiet) { /* what was found counts, wherever the table went */
        if (!code && to_file)
            cli_say_written(table, path);
        bool machine = !to_file && cli_is_machine_format(view->format);
        if (!digest)
            notes_close(part->comparison.closing, machine ? stderr : stdout);
    }
    free(made);
    return code;
}

static const char *part_name(struct arena *arena, const struct plumb_torchair_part *part)
{
    char rank[32] = "", graph[32] = "";
    if (part->rank >= 0)
        snprintf(rank, sizeof rank, "rank %" PRId64, part->rank);
    if (part->graph >= 0)
        snprintf(graph, sizeof graph, "graph %" PRId64, part->graph);
    if (!*rank && !*graph)
        return "comparison";
    return arena_printf(arena, "%s%s%s", rank, *rank && *graph ? ", " : "", graph);
}

/* A page of all tables, while they are whole. */
static enum plumb_code write_page(struct plumb_report *report, const struct plumb_torchair *result,
                                  const struct torchair_request *request, struct plumb_error *err)
{
    struct arena arena = {0};
    const struct plumb_comparison **parts = arena_array(&arena, result->count + 1, sizeof *parts);
    const char **names = arena_array(&arena, result->count + 1, sizeof *names);
    bool fine = parts && names;
    for (size_t k = 0; k < result->count && fine; k++) {
        parts[k] = &result->parts[k].comparison;
        names[k] = part_name(&arena, &result->parts[k]);
        fine = names[k] != NULL;
    }
    if (fine)
        plumb_comparisons_report(report, parts, names, result->count);
    plumb_report_fact(report, "target", request->target);
    plumb_report_fact(report, "golden", request->golden);
    const enum plumb_code code = page_end(report, request->page, request->quiet,
                                          fine ? PLUMB_OK : plumb_no_memory(err), err);
    arena_free(&arena);
    return code;
}

int torchair_run(const struct torchair_request *request)
{
    struct plumb_torchair result = {0};
    struct plumb_torchair_options options = request->options;
    struct plumb_error err;
    struct progress progress;
    options.threads = cli_threads(&request->view->common);
    options.progress = progress_update;
    options.progress_context = &progress;
    progress_init(&progress, "rows");
    progress.enabled = progress.enabled && !request->quiet;
    struct plumb_report *report =
        request->page ? page_begin("compare", "Comparison of graph dumps", &err) : NULL;
    enum plumb_code code =
        request->page && !report
            ? PLUMB_E_NOMEM
            : plumb_torchair_compare(&result, request->target, request->golden, &options, &err);
    progress_end(&progress);
    int status = CLI_OK;
    if (!code && request->result && result.count > 1) {
        status = cli_usage(&cmd_compare,
                           "%zu ranks and graphs make %zu tables: give a folder with "
                           "-o, not '%s'",
                           result.count, result.count, request->result);
        goto out;
    }
    if (!code && report) {
        code = write_page(report, &result, request, &err);
        report = NULL;
    }
    bool to_file = request->to_file || result.count > 1;
    for (size_t i = 0; i < result.count && !code; i++) {
        const struct plumb_comparison *one = &result.parts[i].comparison;
        if (one->bad || !one->compared)
            status = CLI_BAD;
        code = deliver(&result.parts[i], to_file, request, &err);
    }
out:
    if (code) {
        cli_report(&err);
        status = CLI_UNUSABLE;
    }
    plumb_report_free(report);
    plumb_torchair_free(&result);
    return status;
}
