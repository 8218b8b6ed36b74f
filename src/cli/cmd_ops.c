/* ops: a list of plumb's own operators, or all that is known of one. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "plumb/op.h"

#include <string.h>

struct ops_options {
    struct cli_view view;
    const char *name;
};

static void explain(struct buf *out, const struct plumb_op *op)
{
    const size_t first = strcspn(op->names, " ");
    buf_printf(out, "%.*s\n", (int)first, op->names);
    if (op->names[first])
        buf_printf(out, "  also called  %s\n", op->names + first + 1);
    buf_printf(out, "  family       %s\n", op->family);
    if (op->about)
        buf_printf(out, "  computes     %s\n", op->about);
    for (const char *s = op->schema; s && *s;) {
        const size_t length = strcspn(s, "\n");
        buf_printf(out, "  %s    %.*s\n", s == op->schema ? "signature" : "       or", (int)length,
                   s);
        s += length + (s[length] == '\n');
    }
    buf_printf(out, "  backward     %s\n",
               op->backward ? "yes, by formula or through the tape" : "none: no gradient exists");
    if (op->random)
        buf_printf(out, "  random       %s\n",
                   strcmp(op->family, "random") == 0
                       ? "acc_check skips it: there is nothing to compare"
                       : "results are compared by their share of zeros only");
    buf_printf(out,
               "  types        %s; floats are float16, bfloat16, float32, float64 and 8-bit ones\n"
               "  devices      cpu\n",
               op->types);
}

/* "Tensor.add", "add": the prefix is a known one, and the rest may have dots of its own. */
static const struct plumb_op *find_written(const char *text)
{
    static const char *const prefixes[] = {"Functional", "Tensor", "Torch",  "Aten",
                                           "NPU",        "VF",     "Complex"};
    for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++) {
        const size_t length = strlen(prefixes[k]);
        if (strncmp(text, prefixes[k], length) == 0 && text[length] == '.')
            return plumb_op_find(prefixes[k], text + length + 1);
    }
    const struct plumb_op *op = plumb_op_find(NULL, text);
    for (size_t k = 0; !op && k < sizeof prefixes / sizeof *prefixes; k++)
        op = plumb_op_find(prefixes[k], text); /* names that mean one thing under one prefix only */
    return op;
}

static int explain_one(const char *name)
{
    const struct plumb_op *op = find_written(name);
    if (!op) {
        cli_message("plumb has no operator '%s'; 'plumb ops' lists those it has", name);
        return CLI_BAD;
    }
    struct buf text = {0};
    explain(&text, op);
    const bool fine = !text.failed && cli_print(text.data);
    buf_free(&text);
    return fine ? CLI_OK : CLI_UNUSABLE;
}

enum { OPERATOR, FAMILY, FORWARD, BACKWARD, DTYPES, DEVICES, OTHERS, COLUMNS };

static struct plumb_table *make_table(size_t *names)
{
    static const struct plumb_column columns[COLUMNS] = {
        [OPERATOR] = {.title = "Operator", .left = true},
        [FAMILY] = {.title = "Family", .left = true},
        [FORWARD] = {.title = "Forward", .left = true},
        [BACKWARD] = {.title = "Backward", .left = true},
        [DTYPES] = {.title = "Dtypes", .left = true},
        [DEVICES] = {.title = "Devices", .left = true},
        [OTHERS] = {.title = "Other names", .left = true, .elastic = true},
    };
    struct plumb_table *table = plumb_table_new(columns, COLUMNS);
    const struct plumb_op *op;
    bool fine = table != NULL;
    for (size_t i = 0; fine && (op = plumb_op_at(i)); i++) {
        const size_t first = strcspn(op->names, " ");
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)first, op->names);
        fine =
            plumb_table_add_row(table, PLUMB_NORMAL) && plumb_table_text(table, OPERATOR, name) &&
            plumb_table_text(table, FAMILY, op->family) &&
            plumb_table_text(table, FORWARD, op->random ? "random" : "yes") &&
            plumb_table_text(table, BACKWARD, op->backward ? "yes" : "-") &&
            plumb_table_text(table, DTYPES, op->types) && plumb_table_text(table, DEVICES, "cpu") &&
            plumb_table_text(table, OTHERS, op->names + first + (op->names[first] == ' '));
        ++*names;
        for (const char *s = op->names; *s; s++)
            *names += *s == ' ';
    }
    if (fine)
        return table;
    plumb_table_free(table);
    return NULL;
}

static int run_ops(const void *context)
{
    const struct ops_options *options = context;
    struct plumb_error err = {0};
    if (plumb_op_ready(&err)) {
        cli_report(&err);
        return CLI_UNUSABLE;
    }
    if (options->name)
        return explain_one(options->name);
    size_t names = 0;
    struct plumb_table *table = make_table(&names);
    if (!table) {
        cli_message("out of memory");
        return CLI_UNUSABLE;
    }
    const size_t count = plumb_table_rows(table);
    enum plumb_code code = cli_arrange(table, &options->view, &err);
    if (!code)
        code = cli_show(table, &options->view, &err);
    if (code)
        cli_report(&err);
    else if (!cli_is_machine_format(options->view.format))
        printf("%zu operators under %zu names; others run through PyTorch where it is installed\n",
               count, names);
    plumb_table_free(table);
    return code ? CLI_UNUSABLE : CLI_OK;
}

static const struct args_option arguments[] = {
    {.names = {"NAME"},
     .kind = ARGS_TEXT,
     .arity = ARGS_MAYBE,
     .offset = offsetof(struct ops_options, name),
     .help = "explain this one: add, Tensor.add_, linalg.inv"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {{"Arguments", arguments},
                                       {"The table", cli_view_options},
                                       {"Common options", cli_common_options},
                                       {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb ops", "all operators"},
    {"plumb ops layer_norm", "its signatures, its formula, its other names"},
    {NULL, NULL},
};

const struct args_command cmd_ops = {
    .name = "ops",
    .summary = "list the operators that plumb can check",
    .usage = "[NAME] [options]",
    .about = "Lists the operators that plumb computes by itself, with the names under which a dump "
             "may call them, or explains one. Under the names of Functional, Tensor, Torch, Aten "
             "and NPU they are the same. acc_check runs what is not listed through PyTorch, when "
             "that is installed.",
    .sets = sets,
    .examples = examples,
    .exits = "0 when there is such an operator\n"
             "1 when there is none\n"
             "2 when the command line is unusable",
    .size = sizeof(struct ops_options),
    .run = run_ops,
};
