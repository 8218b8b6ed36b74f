/* compare under the rules of a profile: dump trees place by place, each to its table. */
#define _GNU_SOURCE
#include "cli/general.h"

#include "cli/notes.h"
#include "cli/progress.h"
#include "cli/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say_counts(const struct plumb_general *general, FILE *out)
{
    fprintf(out, "%zu row%s: %zu error, %zu warning, %zu without a partner\n", general->rows,
            general->rows == 1 ? "" : "s", general->errors, general->warnings, general->unmatched);
}

/* [debug_]compare_result[_rankN]_TIME.csv, under a name that nobody had. */
static enum plumb_code save(char **path, const struct plumb_general *general,
                            const struct plumb_general_place *place,
                            const struct general_request *request, struct plumb_error *err)
{
    char *stem = NULL;
    if (asprintf(&stem, "%scompare_result%s%s", place->debug ? "debug_" : "",
                 *place->rank ? "_" : "", place->rank) < 0)
        return plumb_no_memory(err);
    const struct result_name name = {request->folder, stem, request->xlsx ? ".xlsx" : ".csv",
                                     false};
    enum plumb_code code = result_save(path, &name, general->table, request->view, err);
    free(stem);
    return code;
}

static enum plumb_code deliver(const struct plumb_general *general,
                               const struct plumb_general_place *place, bool to_file,
                               const struct general_request *request, struct plumb_error *err)
{
    char *made = NULL;
    enum plumb_code code = cli_arrange(general->table, request->view, err);
    if (code)
        return code;
    if (!to_file) {
        code = request->quiet ? PLUMB_OK : cli_show(general->table, request->view, err);
    } else {
        code = request->result ? cli_save(general->table, request->result, request->view, err)
                               : save(&made, general, place, request, err);
        if (!code && !request->quiet)
            cli_say_written(general->table, made ? made : request->result);
    }
    free(made);
    FILE *out = !to_file && cli_is_machine_format(request->view->format) ? stderr : stdout;
    if (!code)
        code = result_mapping(general->mapping, request->folder, request->quiet ? NULL : out, err);
    if (!request->quiet) /* what was found counts, wherever the table went */
        say_counts(general, out);
    return code;
}

/* *bad: something fails, or could not be read. */
static enum plumb_code compare_place(const struct plumb_general_place *place, bool to_file,
                                     const struct general_request *request, bool *bad,
                                     struct plumb_error *err)
{
    struct plumb_general general;
    struct progress progress;
    struct plumb_general_options options = request->options;
    options.plain_infinities =
        request->xlsx || (request->result && cli_ends_with(request->result, ".xlsx"));
    options.threads = cli_threads(&request->view->common);
    options.progress = progress_update;
    options.progress_context = &progress;
    progress_init(&progress, "rows");
    progress.enabled = progress.enabled && !request->quiet;
    enum plumb_code code =
        plumb_general_compare(&general, place->target, place->golden, &options, err);
    progress_end(&progress);
    if (code)
        return code;
    notes_say(general.notes);
    *bad |= general.errors || general.notes;
    if (general.rows)
        code = deliver(&general, place, to_file, request, err);
    else
        code = plumb_fail(err, PLUMB_E_ARG, "%s has no row that could be compared", place->target);
    plumb_general_free(&general);
    return code;
}

int general_run(const struct plumb_general_places *places, const struct general_request *request)
{
    if (request->result && places->count > 1)
        return cli_usage(&cmd_compare, "%zu ranks make %zu tables: give a folder with -o, not '%s'",
                         places->count, places->count, request->result);
    bool to_file = request->to_file || places->count > 1, unusable = false, bad = false;
    for (size_t i = 0; i < places->count; i++) {
        struct plumb_error err = {0};
        if (!compare_place(&places->places[i], to_file, request, &bad, &err))
            continue;
        cli_report(&err);
        unusable = true;
    }
    return unusable ? CLI_UNUSABLE : bad ? CLI_BAD : CLI_OK;
}
