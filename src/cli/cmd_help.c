/* plumb help, and what is made of the same table: man pages and bash completion. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/mpi_options.h"
#include "cli/terminal.h"
#include "plumb/metric.h"
#include "plumb/record.h"

#include <string.h>
#include <unistd.h>

struct help_options {
    struct cli_common common;
    const char *command;
};

static int print_and_free(struct buf *text)
{
    int status = CLI_OK;
    if (text->failed) {
        cli_message("out of memory");
        status = CLI_UNUSABLE;
    } else if (!cli_print(text->data)) {
        status = CLI_UNUSABLE;
    }
    buf_free(text);
    return status;
}

/* The command with the endings of plumb's formats in place of {formats}; `about` holds the text. */
static struct args_command filled(const struct args_command *command, struct buf *about)
{
    static const char word[] = "{formats}";
    char endings[512];
    const char *rest = command->about;
    for (const char *at; (at = strstr(rest, word)); rest = at + sizeof word - 1) {
        buf_append(about, rest, (size_t)(at - rest));
        buf_text(about, plumb_format_endings(endings, sizeof endings));
    }
    buf_text(about, rest);
    struct args_command copy = *command;
    copy.about = about->failed ? command->about : about->data;
    return copy;
}

int cli_help(const struct args_command *command)
{
    unsigned width = terminal_width(STDOUT_FILENO);
    struct buf text = {0}, about = {0};
    width = !width ? 80 : width < 60 ? 60 : width > 100 ? 100 : width;
    const struct args_command shown = filled(command, &about);
    args_help(&text, command == &cli_root ? NULL : cli_root.name, &shown, cli_commands, width);
    buf_free(&about);
    return print_and_free(&text);
}

/* The command that was named, the program itself when none was; NULL after a message. */
static const struct args_command *named(const struct help_options *options,
                                        const struct args_command *self)
{
    if (!options->command)
        return &cli_root;
    const struct args_command *command = cli_find(options->command);
    if (!command)
        cli_usage(self, "there is no command '%s'", options->command);
    return command;
}

static int list_metrics(void)
{
    struct buf text = {0};
    buf_text(&text, "Metrics, as --metrics, --set and standards name them, and their columns:\n\n");
    for (const struct plumb_metric_name *metric = plumb_metric_names(); metric->name; metric++)
        buf_printf(&text, "  %-26s  %s\n", metric->name, metric->title);
    return print_and_free(&text);
}

static int run_help(const void *context)
{
    const struct help_options *options = context;
    if (options->command && !strcmp(options->command, "metrics"))
        return list_metrics();
    const struct args_command *command = named(context, &cmd_help);
    return command ? cli_help(command) : CLI_UNUSABLE;
}

static int run_man(const void *context)
{
    const struct help_options *options = context;
    struct buf text = {0}, about = {0};
    if (options->command && !strcmp(options->command, mpi_root.name)) {
        args_man(&text, NULL, &mpi_root, mpi_commands, PLUMB_VERSION);
        return print_and_free(&text);
    }
    const struct args_command *command = named(options, &cmd_man);
    if (!command)
        return CLI_UNUSABLE;
    const struct args_command shown = filled(command, &about);
    args_man(&text, command == &cli_root ? NULL : cli_root.name, &shown, cli_commands,
             PLUMB_VERSION);
    buf_free(&about);
    return print_and_free(&text);
}

static int run_completion(const void *context)
{
    (void)context;
    struct buf text = {0};
    args_completion(&text, &cli_root, cli_commands);
    return print_and_free(&text);
}

static const struct args_option help_arguments[] = {
    {.names = {"COMMAND"},
     .kind = ARGS_TEXT,
     .arity = ARGS_MAYBE,
     .offset = offsetof(struct help_options, command),
     .choices = "compare|summary|info|convert|standard|metrics",
     .help = "the command to explain, or metrics; none: list"},
    {.names = {NULL}},
};

static const struct args_set help_sets[] = {
    {"Arguments", help_arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_set completion_sets[] = {{"Common options", cli_common_options},
                                                  {NULL, NULL}};

const struct args_command cmd_help = {
    .name = "help",
    .summary = "explain a command",
    .usage = "[COMMAND]\nmetrics",
    .about =
        "Explains a command: the same as `plumb COMMAND --help`. `plumb help metrics` lists the "
        "names of all metrics.",
    .sets = help_sets,
    .size = sizeof(struct help_options),
    .run = run_help,
};

const struct args_command cmd_man = {
    .name = "__man",
    .usage = "[COMMAND]",
    .about = "Writes the man page of a command, of plumb itself, or of plumb-mpi.",
    .sets = help_sets,
    .size = sizeof(struct help_options),
    .run = run_man,
};

const struct args_command cmd_completion = {
    .name = "__completion",
    .usage = "",
    .about = "Writes the bash completion of plumb.",
    .sets = completion_sets,
    .size = sizeof(struct cli_common),
    .run = run_completion,
};
