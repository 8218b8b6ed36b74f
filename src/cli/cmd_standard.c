/* plumb standard: the rules that are built in, as text. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/profiles.h"
#include "plumb/verdict.h"
#include "verdict/builtin.h"
#include "verdict/ladder_rules.h"
#include "verdict/profile.h"
#include "verdict/profiles.h"
#include "verdict/standard_names.h"

struct standard_options {
    struct cli_common common;
    const char *name;
};

/* Those of compare, those of single jobs, then the rule sets of the pre-check. */
static void list_names(struct buf *out, const char *separator)
{
    const struct builtin *const tables[] = {standard_builtins, standard_task_builtins};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct builtin *builtin = tables[i]; builtin->name; builtin++)
            buf_printf(out, "%s%s", builtin->name, separator);
    rules_names(out, precheck_profiles, separator);
}

static int run_standard(const void *context)
{
    const struct standard_options *options = context;
    const char *text = options->name ? plumb_standard_text(options->name) : NULL;
    const struct precheck_profile *profile =
        options->name ? profile_named(precheck_profiles, options->name) : NULL;
    struct buf out = {0};
    int status = CLI_OK;
    if (text) {
        buf_text(&out, text);
    } else if (profile) {
        rules_print(&out, profile->standards);
    } else if (!options->name) {
        list_names(&out, "\n");
        buf_text(&out, "\n");
    } else {
        list_names(&out, ", ");
        status = cli_usage(&cmd_standard, "no built-in standard is called '%s'; there are: %s",
                           options->name, out.data ? out.data : "none");
    }
    if (!status && (out.failed || !cli_print(out.data)))
        status = CLI_UNUSABLE;
    buf_free(&out);
    return status;
}

static const struct args_option standard_arguments[] = {
    {.names = {"NAME"},
     .kind = ARGS_TEXT,
     .arity = ARGS_MAYBE,
     .offset = offsetof(struct standard_options, name),
     .choices = STANDARD_CHOICES "|" PROFILE_NAMES,
     .help = "the standard to print; none: list the names"},
    {.names = {NULL}},
};

static const struct args_set standard_sets[] = {
    {"Arguments", standard_arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example standard_examples[] = {
    {"plumb standard xray > mine.std", "start a standard of your own from a built-in one"},
    {"plumb compare --standard mine.std A B", "and judge by it"},
    {"plumb standard documented > mine.rules", "start rules of your own for the pre-check"},
    {"plumb acc_check dump.json --rules mine.rules", "and check by them"},
    {NULL, NULL},
};

const struct args_command cmd_standard = {
    .name = "standard",
    .summary = "print the rules of a built-in standard",
    .usage = "[NAME]",
    .about = "Prints the text of a standard: the rules by which `plumb compare` separates pass "
             "from fail, as a file that --standard takes. statistics judges what was written down "
             "where there are no values (--stat_limit), checkpoint the weights of config_check "
             "(--min_cos, --max_distance). documented and " PROFILE_OTHER " are those of the "
             "pre-check, as a file that --rules of acc_check and api_precision_compare takes.",
    .sets = standard_sets,
    .examples = standard_examples,
    .exits = "0 when printed\n2 when there is no such standard",
    .size = sizeof(struct standard_options),
    .run = run_standard,
};
