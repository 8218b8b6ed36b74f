/* What commands have in common when they print. */
#define _GNU_SOURCE
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/terminal.h"
#include "plumb/metric.h"
#include "run/run.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

const struct args_option cli_common_options[] = {
    {.names = {"--threads"},
     .kind = ARGS_INT,
     .offset = offsetof(struct cli_common, threads),
     .metavar = "N",
     .min = 1,
     .max = 1024,
     .help = "threads to use (default: all processors)"},
    {.names = {"--cpu-mask"},
     .kind = ARGS_BITS,
     .offset = offsetof(struct cli_common, cpu_mask),
     .metavar = "M",
     .min = 0,
     .max = 4294967295.0,
     .help = "SIMD levels allowed, one bit each; 0: plain C"},
    {.names = {"--no-color", "--no-colour"},
     .kind = ARGS_FLAG,
     .offset = offsetof(struct cli_common, no_color),
     .help = "no colours, as with NO_COLOR set"},
    {.names = {"-h", "--help"},
     .kind = ARGS_HELP,
     .offset = offsetof(struct cli_common, help),
     .help = "show this help"},
    {.names = {NULL}},
};

/* The order of the choices is that of enum plumb_table_format, with CLI_JUNIT behind. */
#define VIEW_OPTIONS(formats)                                                                      \
    {.names = {"--format"},                                                                        \
     .kind = ARGS_CHOICE,                                                                          \
     .offset = offsetof(struct cli_view, format),                                                  \
     .choices = (formats),                                                                         \
     .initial = "box",                                                                             \
     .help = "what to print"},                                                                     \
        {.names = {"--wide"},                                                                      \
         .kind = ARGS_FLAG,                                                                        \
         .offset = offsetof(struct cli_view, wide),                                                \
         .help = "more columns, and names in full"},                                               \
        {.names = {"--sort"},                                                                      \
         .kind = ARGS_TEXT,                                                                        \
         .offset = offsetof(struct cli_view, sort),                                                \
         .metavar = "COL",                                                                         \
         .dash_value = true,                                                                       \
         .help = "sort by title or number of a column; -COL: descending"},                         \
        {.names = {"--limit"},                                                                     \
         .kind = ARGS_INT,                                                                         \
         .offset = offsetof(struct cli_view, limit),                                               \
         .metavar = "N",                                                                           \
         .min = 0,                                                                                 \
         .max = 1e15,                                                                              \
         .help = "only the first N rows"},                                                         \
    {                                                                                              \
        .names = { NULL }                                                                          \
    }

const struct args_option cli_view_options[] = {VIEW_OPTIONS("box|csv|json|md")};
const struct args_option cli_judged_view_options[] = {VIEW_OPTIONS("box|csv|json|md|junit")};

/* Names come from files that strangers wrote: no escape sequence may reach a terminal. */
static void print_line(const char *prefix, const char *format, va_list arguments)
{
    char text[2048];
    vsnprintf(text, sizeof text, format, arguments);
    utf8_clean(text);
    fflush(stdout); /* what was said before shall also be seen before */
    fprintf(stderr, "%s%s\n", prefix, text);
}

void cli_message(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("plumb: ", format, arguments);
    va_end(arguments);
}

void cli_report(const struct plumb_error *err)
{
    char text[1024];
    cli_message("%s", plumb_error_text(err, text, sizeof text));
}

int cli_usage(const struct args_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("plumb: ", format, arguments);
    va_end(arguments);
    if (command == &cli_root)
        fputs("See: plumb --help\n", stderr);
    else
        fprintf(stderr, "See: plumb %s --help\n", command->name);
    return CLI_UNUSABLE;
}

bool cli_ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && !strcmp(text + length - tail, ending);
}

unsigned cli_threads(const struct cli_common *common)
{
    return common->threads == ARGS_UNSET ? 0 : (unsigned)common->threads;
}

bool cli_reader_has_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) > 0 && out.revents & POLLERR;
}

bool cli_print(const char *text)
{
    errno = 0;
    if ((fputs(text, stdout) == EOF || fflush(stdout) == EOF) && !cli_reader_has_gone()) {
        cli_message("cannot write to standard output: %s", strerror(errno));
        return false;
    }
    return true;
}

bool cli_is_machine_format(int format)
{
    return format == PLUMB_TABLE_CSV || format == PLUMB_TABLE_JSON || format == CLI_JUNIT;
}

enum plumb_code cli_arrange(struct plumb_table *table, const struct cli_view *view,
                            struct plumb_error *err)
{
    if (view->sort) {
        enum plumb_code code = plumb_table_sort(table, view->sort, err);
        if (code)
            return code;
    }
    if (view->limit != ARGS_UNSET)
        plumb_table_limit(table, (size_t)view->limit);
    return PLUMB_OK;
}

enum plumb_code cli_show(const struct plumb_table *table, const struct cli_view *view,
                         struct plumb_error *err)
{
    struct plumb_table_look look = {
        .width = view->wide ? 0 : terminal_width(STDOUT_FILENO),
        .wide = view->wide,
        .colour = !view->common.no_color && terminal_colour(STDOUT_FILENO),
    };
    enum plumb_code code =
        plumb_table_print(table, (enum plumb_table_format)view->format, &look, stdout, err);
    if (!code && fflush(stdout) == EOF)
        code = plumb_fail(err, PLUMB_E_IO, "cannot write to standard output: %s", strerror(errno));
    if (code == PLUMB_E_IO && cli_reader_has_gone())
        code = PLUMB_OK;
    return code;
}

enum plumb_code cli_check_ending(const char *path, struct plumb_error *err)
{
    enum plumb_table_format format;
    if (plumb_table_format_of(path, &format))
        return PLUMB_OK;
    return plumb_fail(err, PLUMB_E_ARG, "%s: a result file ends in .csv, .json, .md, .xlsx or .txt",
                      path);
}

enum plumb_code cli_save(const struct plumb_table *table, const char *path,
                         const struct cli_view *view, struct plumb_error *err)
{
    struct plumb_table_look look = {.wide = view->wide};
    enum plumb_table_format format;
    enum plumb_code code = cli_check_ending(path, err);
    if (code)
        return code;
    plumb_table_format_of(path, &format);
    return plumb_table_save(table, path, format, &look, err);
}

void cli_say_warnings(const struct plumb_run *run)
{
    const char *text;
    for (size_t i = 0; (text = plumb_run_warning(run, i)); i++)
        cli_message("warning: %s", text);
}

static void say_stray(void *context, const char *line)
{
    (void)context;
    cli_message("warning: %s", line);
}

void cli_say_strays(const char *path)
{
    if (path)
        dumps_strays(path, say_stray, NULL);
}

void cli_say_written(const struct plumb_table *table, const char *path)
{
    cli_say_rows(plumb_table_rows(table), path);
}

void cli_say_rows(size_t rows, const char *path)
{
    printf("%zu row%s written to %s\n", rows, rows == 1 ? "" : "s", path);
}
