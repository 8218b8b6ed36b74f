/* Notes, stacks and result files of the two analyses. */
#define _GNU_SOURCE
#include "task/ranks/analyze.h"

#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t analyze_rank(const char *name)
{
    return strncmp(name, "rank", 4) == 0 ? strtoll(name + 4, NULL, 10) : 0;
}

void analyze_progress(const struct plumb_analyze_options *options, size_t done, size_t total)
{
    if (options && options->progress)
        options->progress(options->progress_context, done, total);
}

void analyze_note(struct buf *notes, const char *rank, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_printf(notes, "%s%s%s\n", rank, *rank ? ": " : "", text);
}

void analyze_note_warnings(struct buf *notes, const char *rank, const struct dump_tree *tree)
{
    for (size_t i = 0; i < tree->warning_count; i++)
        analyze_note(notes, rank, "%s", tree->warnings[i]);
}

enum plumb_code plumb_analysis_save(const struct plumb_analysis *analysis, const char *folder,
                                    const char *prefix, char **path, struct plumb_error *err)
{
    *path = NULL;
    if (!analysis->report)
        return plumb_fail(err, PLUMB_E_ARG, "nothing was found, so there is no report to save");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned long long stamp =
        (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
    do { /* nobody else has this nanosecond, but the clock may be coarse */
        free(*path);
        if (asprintf(path, "%s/%s_%llu.json", folder, prefix, stamp++) < 0) {
            *path = NULL;
            return plumb_no_memory(err);
        }
    } while (access(*path, F_OK) == 0);
    enum plumb_code code =
        output_whole(*path, analysis->report, strlen(analysis->report), false, err);
    if (code) {
        free(*path);
        *path = NULL;
    }
    return code;
}

void plumb_analysis_free(struct plumb_analysis *analysis)
{
    plumb_table_free(analysis->table);
    free(analysis->report);
    free(analysis->notes);
    free(analysis->travelled);
    free(analysis->written);
    *analysis = (struct plumb_analysis){0};
}

void analyze_put_stack(struct pretty *out, const struct dump_tree *tree, const struct dump_api *api,
                       const char *none)
{
    if (!api->stack) {
        pretty_word(out, none);
        return;
    }
    pretty_open(out, '[');
    for (const char *const *line = tree->stacks[api->stack - 1]; *line; line++) {
        pretty_item(out);
        pretty_string(out, *line);
    }
    pretty_close(out, ']');
}
