/* compare -da: the first node that differs, its files, and a line for each that was found. */
#define _GNU_SOURCE
#include "cli/diff_analyze.h"
#include "base/folder.h"

#include "cli/cli.h"
#include "cli/notes.h"
#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>

static const char *cell(const struct plumb_table *table, size_t row, size_t column)
{
    return plumb_table_cell(table, row, column)->as.text;
}

/* A line for each node that was found. */
static bool say_nodes(const struct plumb_table *table)
{
    struct buf line = {0};
    bool good = true;
    for (size_t row = 0; good && row < plumb_table_rows(table); row++) {
        if (row && !strcmp(cell(table, row, 0), cell(table, row - 1, 0)) &&
            !strcmp(cell(table, row, 1), cell(table, row - 1, 1)))
            continue;
        line.size = 0;
        buf_printf(&line, "rank %s: %s is the first to differ (%s: %s)\n", cell(table, row, 0),
                   cell(table, row, 1), cell(table, row, 2), cell(table, row, 3));
        for (size_t i = 0; i + 1 < line.size; i++)
            if ((unsigned char)line.data[i] < 0x20 || line.data[i] == 0x7f)
                line.data[i] = '?';
        good = !line.failed && cli_print(line.data);
    }
    buf_free(&line);
    return good;
}

static enum plumb_code deliver(const struct plumb_analysis *analysis,
                               const struct diff_request *request, const char *folder,
                               struct plumb_error *err)
{
    char *path = NULL;
    enum plumb_code code = PLUMB_OK;
    notes_say(analysis->notes);
    if (analysis->found)
        code = plumb_analysis_save(analysis, folder, "diff_analyze", &path, err);
    if (code || request->quiet)
        goto out;
    if (analysis->found) {
        say_nodes(analysis->table);
        printf("inputs, outputs and stack are in %s\n", path);
    } else {
        printf("no output of %zu node%s of %zu rank%s differs by more than half%s\n",
               analysis->nodes, analysis->nodes == 1 ? "" : "s", analysis->ranks,
               analysis->ranks == 1 ? "" : "s",
               analysis->incomplete ? ", but not all could be read" : "");
    }
    for (const char *line = analysis->written; line && *line;) {
        size_t length = strcspn(line, "\n");
        printf("all rows are in %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
out:
    free(path);
    return code;
}

int diff_analyze_run(const struct diff_request *request)
{
    const char *folder = request->folder ? request->folder : ".";
    struct plumb_analysis analysis = {0};
    struct plumb_error err;
    struct progress progress;
    struct plumb_analyze_options options = {.rules = request->rules,
                                            .folder = folder,
                                            .pairing = &request->pairing,
                                            .progress = progress_update,
                                            .progress_context = &progress};
    enum plumb_code code = folder_make(folder, &err);
    progress_init(&progress, "ranks");
    progress.enabled = progress.enabled && !request->quiet;
    if (!code) {
        cli_say_strays(request->target);
        cli_say_strays(request->golden);
        code = plumb_diff_analyze(&analysis, request->target, request->golden, &options, &err);
    }
    progress_end(&progress);
    int status = analysis.found ? CLI_BAD : analysis.incomplete ? CLI_UNUSABLE : CLI_OK;
    if (!code)
        code = deliver(&analysis, request, folder, &err);
    if (code) {
        cli_report(&err);
        status = CLI_UNUSABLE;
    }
    plumb_analysis_free(&analysis);
    return status;
}
