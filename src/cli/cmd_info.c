/* info: what a path is, and a list of its tensors without reading their values. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "plumb/run.h"
#include "plumb/torchair.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct info_options {
    struct cli_view view;
    const char *path;
};

/* What the run holds as a whole. */
struct totals {
    size_t tensors, unreadable;
    size_t arguments, recorded; /* that are no tensors; tensors without a payload */
    uint64_t bytes;
    int64_t first_step, last_step, first_rank, last_rank; /* -1: none */
};

static void widen(int64_t value, int64_t *first, int64_t *last)
{
    if (value < 0)
        return;
    *first = *first < 0 || value < *first ? value : *first;
    *last = value > *last ? value : *last;
}

/* The size of the values once decoded, whatever the file stores. */
static uint64_t tensor_bytes(const struct plumb_record *record)
{
    uint64_t bytes = 0;
    if (record->absent)
        return 0;
    plumb_dtype_bytes(record->dtype, record->count, &bytes);
    return bytes;
}

static struct totals count_totals(const struct plumb_run *run)
{
    struct totals totals = {.first_step = -1, .last_step = -1, .first_rank = -1, .last_rank = -1};
    for (size_t i = 0; i < plumb_run_count(run); i++) {
        const struct plumb_record *record = plumb_run_record(run, i);
        widen(record->step, &totals.first_step, &totals.last_step);
        widen(record->rank, &totals.first_rank, &totals.last_rank);
        if (record->error) {
            totals.unreadable++;
        } else if (record->recorded && !record->recorded->tensor) {
            totals.arguments++;
        } else {
            totals.recorded += record->absent;
            totals.tensors++;
            totals.bytes += tensor_bytes(record);
        }
    }
    return totals;
}

static void append_range(struct buf *out, const char *what, int64_t first, int64_t last)
{
    if (first >= 0 && first == last)
        buf_printf(out, ", %s %" PRId64, what, first);
    else if (first >= 0)
        buf_printf(out, ", %ss %" PRId64 " to %" PRId64, what, first, last);
}

static void describe(struct buf *out, const struct plumb_run *run, const struct totals *totals)
{
    static const char units[] = "kMGTPE";
    double scaled = (double)totals->bytes;
    int unit = -1;
    for (; scaled >= 1000 && units[unit + 1]; unit++)
        scaled /= 1000;
    buf_printf(out, "%s: %s, %zu tensor%s, %" PRIu64 " bytes", plumb_run_path(run),
               plumb_run_kind(run), totals->tensors, totals->tensors == 1 ? "" : "s",
               totals->bytes);
    if (unit >= 0)
        buf_printf(out, " (%.1f %cB)", scaled, units[unit]);
    if (totals->recorded == totals->tensors && totals->tensors)
        buf_text(out, ", recorded without their values");
    else if (totals->recorded)
        buf_printf(out, ", %zu of them recorded without their values", totals->recorded);
    if (totals->arguments)
        buf_printf(out, ", %zu other argument%s", totals->arguments,
                   totals->arguments == 1 ? "" : "s");
    append_range(out, "step", totals->first_step, totals->last_step);
    append_range(out, "rank", totals->first_rank, totals->last_rank);
    if (totals->unreadable)
        buf_printf(out, ", %zu unreadable", totals->unreadable);
    size_t ignored = plumb_run_ignored(run);
    if (ignored)
        buf_printf(out, ", %zu other file%s", ignored, ignored == 1 ? "" : "s");
    buf_text(out, "\n");
}

static bool shape_text(const struct plumb_record *record, char *text, size_t size)
{
    struct plumb_tensor tensor;
    if (record->recorded) {
        snprintf(text, size, "%s", record->recorded->shape);
        return true;
    }
    if (plumb_tensor_init(&tensor, record->dtype, record->ndim, record->shape, NULL))
        return false;
    plumb_shape_text(&tensor, text, size);
    return true;
}

static bool add_record(struct plumb_table *table, const size_t *place,
                       const struct plumb_record *record, bool in_folder)
{
    enum { NAME, DTYPE, SHAPE, BYTES, STEP, RANK, FILE_NAME, PROBLEM };
    char text[1024];
    bool ok = plumb_table_add_row(table, record->error ? PLUMB_FAILED : PLUMB_NORMAL) &&
              plumb_table_text(table, place[NAME], record->name);
    if (!record->error) {
        ok =
            ok &&
            plumb_table_text(table, place[DTYPE],
                             record->recorded ? record->recorded->dtype
                                              : plumb_dtype_info(record->dtype)->name) &&
            (!shape_text(record, text, sizeof text) || plumb_table_text(table, place[SHAPE], text));
        if (!record->absent)
            plumb_table_int(table, place[BYTES], (int64_t)tensor_bytes(record));
    } else {
        struct plumb_error problem = *record->error;
        if (!in_folder || place[FILE_NAME] != SIZE_MAX)
            problem.file[0] = '\0'; /* said elsewhere */
        ok = ok &&
             plumb_table_text(table, place[PROBLEM], plumb_error_text(&problem, text, sizeof text));
    }
    if (place[STEP] != SIZE_MAX && record->step >= 0)
        plumb_table_int(table, place[STEP], record->step);
    if (place[RANK] != SIZE_MAX && record->rank >= 0)
        plumb_table_int(table, place[RANK], record->rank);
    if (place[FILE_NAME] != SIZE_MAX)
        ok = ok && plumb_table_text(table, place[FILE_NAME], record->path);
    return ok;
}

/* How many rows can be shown: all, unless nobody asks for an order of theirs. */
static size_t rows_wanted(const struct plumb_run *run, const struct cli_view *view)
{
    const size_t count = plumb_run_count(run);
    const bool cut = !view->sort && view->limit != ARGS_UNSET && (uint64_t)view->limit < count;
    return cut ? (size_t)view->limit : count;
}

/* One row a record; NULL when out of memory. Columns that would be empty are left out. */
static struct plumb_table *list_records(const struct plumb_run *run, const struct totals *totals,
                                        const struct cli_view *view, bool in_folder)
{
    const bool with_files = in_folder && view->wide;
    const struct {
        struct plumb_column column;
        bool wanted;
    } all[] = {
        {{"Name", PLUMB_STYLE_TEXT, true, true}, true},
        {{"Dtype", PLUMB_STYLE_TEXT, true, false}, true},
        {{"Shape", PLUMB_STYLE_TEXT, true, false}, true},
        {{"Bytes", PLUMB_STYLE_NUMBER, false, false}, true},
        {{"Step", PLUMB_STYLE_NUMBER, false, false}, totals->first_step >= 0},
        {{"Rank", PLUMB_STYLE_NUMBER, false, false}, totals->first_rank >= 0},
        {{"File", PLUMB_STYLE_TEXT, true, true}, with_files},
        {{"Problem", PLUMB_STYLE_TEXT, true, false}, totals->unreadable > 0},
    };
    enum { ALL = sizeof all / sizeof *all };
    struct plumb_column columns[ALL];
    size_t place[ALL], count = 0;
    for (size_t i = 0; i < ALL; i++) {
        place[i] = all[i].wanted ? count : SIZE_MAX;
        if (all[i].wanted)
            columns[count++] = all[i].column;
    }
    struct plumb_table *table = plumb_table_new(columns, count);
    const size_t wanted = rows_wanted(run, view);
    for (size_t i = 0; table && i < wanted; i++) {
        if (!add_record(table, place, plumb_run_record(run, i), in_folder)) {
            plumb_table_free(table);
            table = NULL;
        }
    }
    return table;
}

/* What a compiled graph left behind; its files have more to say than a list of tensors. */
static int run_ge_info(const struct info_options *options)
{
    struct plumb_table *table = NULL;
    struct plumb_error err;
    char *text = NULL;
    size_t problems = 0;
    enum plumb_code code = plumb_ge_info(&table, &text, &problems, options->path, &err);
    if (!code)
        code = cli_arrange(table, &options->view, &err);
    if (!code && cli_is_machine_format(options->view.format))
        fputs(text, stderr);
    else if (!code)
        cli_print(text);
    if (!code)
        code = cli_show(table, &options->view, &err);
    if (code)
        cli_report(&err);
    plumb_table_free(table);
    free(text);
    return code ? CLI_UNUSABLE : problems ? CLI_BAD : CLI_OK;
}

static int run_info(const void *context)
{
    const struct info_options *options = context;
    if (plumb_torchair_recognise(options->path) || plumb_ge_recognise(options->path))
        return run_ge_info(options);
    struct plumb_run *run = NULL;
    struct plumb_table *table = NULL;
    struct plumb_error err;
    struct buf line = {0};
    int status = CLI_UNUSABLE;
    enum plumb_code code = plumb_run_open(&run, options->path, &err);
    if (code)
        goto out;
    struct totals totals = count_totals(run);
    const char *kind = plumb_run_kind(run);
    bool folder = !strcmp(kind, "folder") || !strcmp(kind, "index") || !strcmp(kind, "dump");
    cli_say_warnings(run);
    describe(&line, run, &totals);
    table = list_records(run, &totals, &options->view, folder);
    if (!table || line.failed) {
        code = plumb_no_memory(&err);
        goto out;
    }
    code = cli_arrange(table, &options->view, &err);
    if (code)
        goto out;
    if (cli_is_machine_format(options->view.format))
        fputs(line.data, stderr);
    else if (!cli_print(line.data))
        goto out;
    if (plumb_table_rows(table) || cli_is_machine_format(options->view.format))
        code = cli_show(table, &options->view, &err);
    if (!code)
        status = totals.unreadable ? CLI_BAD : CLI_OK;
out:
    if (code)
        cli_report(&err);
    buf_free(&line);
    plumb_table_free(table);
    plumb_run_free(run);
    return status;
}

static const struct args_option info_arguments[] = {
    {.names = {"PATH"},
     .kind = ARGS_PATH,
     .offset = offsetof(struct info_options, path),
     .help = "a tensor file, or a folder of such files"},
    {.names = {NULL}},
};

static const struct args_set info_sets[] = {{"Arguments", info_arguments},
                                            {"Output", cli_view_options},
                                            {"Common options", cli_common_options},
                                            {NULL, NULL}};

static const struct args_example info_examples[] = {
    {"plumb info model.safetensors", "list the tensors of a file"},
    {"plumb info dump --wide", "a folder, with the file of each tensor"},
    {"plumb info dump --sort -Bytes --limit 10", "the ten largest"},
    {NULL, NULL},
};

const struct args_command cmd_info = {
    .name = "info",
    .summary = "show what a path is and list its tensors",
    .usage = "PATH [options]",
    .about =
        "Shows what plumb takes a file or folder for, and lists its tensors: name, type, shape "
        "and size. Content decides what a file is, not its name. No values are read.",
    .sets = info_sets,
    .examples = info_examples,
    .exits = "0 when every tensor can be read\n1 when some cannot\n2 when the path is unusable",
    .size = sizeof(struct info_options),
    .run = run_info,
};
