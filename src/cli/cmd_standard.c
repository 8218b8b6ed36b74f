#define _GNU_SOURCE
#include "cli/cli.h"
#include "plumb/standard.h"
#include "standard/builtin.h"

struct standard_options {
    struct cli_common common;
    const char *name;
};

static int list_standards(void)
{
    for (const struct builtin *builtin = standard_builtins; builtin->name; builtin++)
        printf("%s\n", builtin->name);
    return CLI_OK;
}

static int run_standard(const void *context)
{
    const struct standard_options *options = context;
    if (!options->name)
        return list_standards();
    const char *text = plumb_standard_text(options->name);
    if (text)
        return cli_print(text) ? CLI_OK : CLI_UNUSABLE;
    struct buf names = {0};
    for (const struct builtin *builtin = standard_builtins; builtin->name; builtin++)
        buf_printf(&names, "%s%s", names.size ? ", " : "", builtin->name);
    int status = cli_usage(&cmd_standard, "no built-in standard is called '%s'; there are: %s",
                           options->name, names.data ? names.data : "none");
    buf_free(&names);
    return status;
}

static const struct args_option standard_arguments[] = {
    {.names = {"NAME"},
     .kind = ARGS_TEXT,
     .arity = ARGS_MAYBE,
     .offset = offsetof(struct standard_options, name),
     .choices = "xray|torchair|allclose",
     .help = "the standard to print; none: list the names"},
    {.names = {NULL}},
};

static const struct args_set standard_sets[] = {
    {"Arguments", standard_arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example standard_examples[] = {
    {"plumb standard xray > mine.std", "start a standard of your own from a built-in one"},
    {"plumb compare --standard mine.std A B", "and judge by it"},
    {NULL, NULL},
};

const struct args_command cmd_standard = {
    .name = "standard",
    .summary = "print the rules of a built-in standard",
    .usage = "[NAME]",
    .about = "Prints the text of a standard: the rules by which `plumb compare` tells pass from "
             "fail, as a file that --standard takes.",
    .sets = standard_sets,
    .examples = standard_examples,
    .exits = "0 when printed\n2 when there is no such standard",
    .size = sizeof(struct standard_options),
    .run = run_standard,
};
