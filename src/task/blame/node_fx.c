/* FX nodes by the name of their ATen operator: arguments by position, and what keywords may have
 * been. */
#include "task/blame/nodes.h"

#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The elements of a list argument: those at "2.0", "2.1", ... */
static bool take_items(struct node *n, const char *place, struct plumb_arg *out)
{
    const size_t length = strlen(place);
    struct plumb_arg *items = arena_array(&n->loader.arena, n->inputs.count + 1, sizeof *items);
    size_t count = 0;
    for (size_t k = 0; items && k < n->inputs.count; k++) {
        const struct named *input = &n->inputs.items[k];
        if (strncmp(input->name, place, length) == 0 && input->name[length] == '.')
            items[count++] = input->arg;
    }
    if (count)
        *out = (struct plumb_arg){.kind = PLUMB_ARG_LIST, .items = items, .n_items = count};
    return items != NULL;
}

/* Arguments by position, with small tensors as numbers, and as lists, or as what they are. */
static bool fill_args(struct node *n, struct node_try *try, bool numbers, bool lists)
{
    size_t last = 0;
    for (size_t k = 0; k < n->inputs.count; k++) {
        const size_t place = strtoul(n->inputs.items[k].name, NULL, 10);
        last = place + 1 > last ? place + 1 : last;
    }
    if (last > NODE_MAX_ARGS) {
        n->loader.refused = "it has too many arguments";
        return true;
    }
    for (size_t k = 0; k < last; k++) {
        const char *place = arena_printf(&n->loader.arena, "%zu", k);
        const struct named *input = place ? list_find(&n->inputs, place, strlen(place)) : NULL;
        struct plumb_arg *arg = &try->args[k];
        *arg = (struct plumb_arg){.kind = PLUMB_ARG_NONE};
        const bool fine = !place    ? false
                          : !input  ? take_items(n, place, arg)
                          : numbers ? node_plainly(n, &input->arg, lists, arg)
                                    : (*arg = input->arg, true);
        if (!fine)
            return false;
    }
    try->n_args = last;
    return true;
}

/* Whether a keyword of the operator, other than those, could matter. */
static bool has_other_keywords(const struct plumb_op *op)
{
    static const char known[] = " dtype out layout device pin_memory memory_format generator names "
                                "alpha beta approximate rounding_mode correction unbiased ";
    for (const char *at = op->schema; (at = strstr(at, "*, ")); at++)
        for (const char *p = at + 3; *p && *p != ')' && *p != '\n';) {
            const size_t length = strcspn(p, ",)\n"), name = strcspn(p, "=,)\n|");
            size_t begin = name;
            while (begin && p[begin - 1] != ' ')
                begin--;
            char word[40];
            snprintf(word, sizeof word, " %.*s ", (int)(name - begin), p + begin);
            if (!strstr(known, word))
                return true;
            p += length;
            p += strspn(p, ", ");
        }
    return false;
}

/* One more way: as the first, with a keyword; NULL when there is no room. */
static struct node_try *add_variant(struct node *n, const char *keyword, struct plumb_arg value)
{
    struct node_try *try = node_add_try(n, "");
    if (try) {
        *try = n->tries[0];
        node_add_keyword(try, keyword, value);
    }
    return try;
}

static struct plumb_arg text(const char *value)
{
    return (struct plumb_arg){.kind = PLUMB_ARG_TEXT, .text = value};
}

/* Keyword arguments are not in the dump: what else they might have been. */
static bool add_keywords(struct node *n, const struct plumb_op *op, const char *name)
{
    static const double factors[] = {2, -1, 0.5, -2, 4, 0};
    const bool scaled = strstr(op->schema, "number alpha=") != NULL;
    if (strcmp(name, "gelu") == 0)
        add_variant(n, "approximate", text("tanh"));
    if (strstr(op->schema, "rounding_mode")) {
        add_variant(n, "rounding_mode", text("floor"));
        add_variant(n, "rounding_mode", text("trunc"));
    }
    for (int k = 0; strstr(op->schema, "correction") && k < 2; k++)
        add_variant(n, "correction", node_integer(k));
    if (strstr(op->schema, "dtype? dtype"))
        add_variant(n, "dtype",
                    (struct plumb_arg){.kind = PLUMB_ARG_DTYPE,
                                       .dtype = n->outputs.items[0].arg.tensor->dtype});
    for (size_t k = 0; scaled && k < sizeof factors / sizeof *factors; k++) {
        struct node_try *try = add_variant(
            n, "alpha", (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = factors[k]});
        char factor[NUMBER_BYTES];
        if (!try)
            break;
        try->assumed = arena_printf(&n->loader.arena,
                                    "its keyword arguments are not in the dump, and alpha = %s "
                                    "would explain it",
                                    number_brief(factors[k], 3, factor));
        if (!try->assumed)
            return false;
    }
    return true;
}

/* "aten.add.Tensor". False when out of memory. */
bool node_list_fx(struct node *n)
{
    const char *class = n->unit->class, *dot = strchr(class, '.');
    const char *rest = dot ? dot + 1 : class;
    const char *name = arena_copy(&n->loader.arena, rest, strcspn(rest, "."));
    if (!name)
        return false;
    n->prefix = strncmp(class, "aten.", 5) == 0 ? "Aten" : "NPU";
    const struct plumb_op *op = plumb_op_find(n->prefix, name);
    if (!op || op->random) {
        const char *text = arena_printf(n->arena, "plumb has no operator %s", class);
        n->loader.refused = op ? "the results are random" : text;
        return text != NULL;
    }
    static const bool ways[NODE_FX_WAYS][2] = {{true, true}, {true, false}, {false, false}};
    for (int k = 0; k < NODE_FX_WAYS; k++) {
        struct node_try *try = node_add_try(n, name);
        if (!fill_args(n, try, ways[k][0], ways[k][1]))
            return false;
    }
    if (n->objects)
        n->unknown = "an argument of it is text or an object, which is taken for None";
    else if (has_other_keywords(op))
        n->unknown = "its keyword arguments are not in the dump";
    return n->loader.refused || add_keywords(n, op, name);
}
