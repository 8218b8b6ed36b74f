/* A node of a graph computed again: FX nodes by the name of their ATen operator, GE operators by their
 * type. */
#include "task/blame/pieces.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 24, MAX_TRIES = 16, MAX_SIZES = 64, FX_WAYS = 3 };

/* What is to be known of an operator besides its inputs. */
enum form {
    FORM_PLAIN,
    FORM_MATMUL,     /* either factor may be transposed; a third input is added */
    FORM_DIMENSION,  /* one of the input's */
    FORM_CAST,       /* to the type of the output */
    FORM_RESHAPE,    /* to the shape of the output */
    FORM_PERMUTE,    /* the second input says how */
    FORM_REDUCE,     /* over the dimensions that the second input names */
    FORM_GELU,       /* exact or by tanh */
    FORM_LAYER_NORM, /* some eps */
    FORM_RMS_NORM,
};

static const struct ge_known {
    const char *types; /* separated by blanks */
    const char *op;
    enum form form;
} known_types[] = {
    {"Add AddV2", "add", FORM_PLAIN},
    {"Sub", "sub", FORM_PLAIN},
    {"Mul", "mul", FORM_PLAIN},
    {"RealDiv Div", "div", FORM_PLAIN},
    {"Maximum", "maximum", FORM_PLAIN},
    {"Minimum", "minimum", FORM_PLAIN},
    {"Pow", "pow", FORM_PLAIN},
    {"Exp", "exp", FORM_PLAIN},
    {"Log", "log", FORM_PLAIN},
    {"Sqrt", "sqrt", FORM_PLAIN},
    {"Rsqrt", "rsqrt", FORM_PLAIN},
    {"Square", "square", FORM_PLAIN},
    {"Reciprocal Inv", "reciprocal", FORM_PLAIN},
    {"Neg", "neg", FORM_PLAIN},
    {"Abs", "abs", FORM_PLAIN},
    {"Sign", "sign", FORM_PLAIN},
    {"Floor", "floor", FORM_PLAIN},
    {"Ceil", "ceil", FORM_PLAIN},
    {"Sin", "sin", FORM_PLAIN},
    {"Cos", "cos", FORM_PLAIN},
    {"Erf", "erf", FORM_PLAIN},
    {"Tanh", "tanh", FORM_PLAIN},
    {"Sigmoid", "sigmoid", FORM_PLAIN},
    {"Relu", "relu", FORM_PLAIN},
    {"Relu6", "relu6", FORM_PLAIN},
    {"Greater", "gt", FORM_PLAIN},
    {"GreaterEqual", "ge", FORM_PLAIN},
    {"Less", "lt", FORM_PLAIN},
    {"LessEqual", "le", FORM_PLAIN},
    {"Equal", "eq", FORM_PLAIN},
    {"NotEqual", "ne", FORM_PLAIN},
    {"LogicalAnd", "logical_and", FORM_PLAIN},
    {"LogicalOr", "logical_or", FORM_PLAIN},
    {"LogicalNot", "logical_not", FORM_PLAIN},
    {"Select SelectV2", "where", FORM_PLAIN},
    {"Gelu GeluV2", "gelu", FORM_GELU},
    {"MatMul MatMulV2 MatMulV3 BatchMatMul BatchMatMulV2 BatchMatMulV3", "matmul", FORM_MATMUL},
    {"Softmax SoftmaxV2", "softmax", FORM_DIMENSION},
    {"LogSoftmax LogSoftmaxV2", "log_softmax", FORM_DIMENSION},
    {"Cast", "to", FORM_CAST},
    {"Identity Reshape Squeeze SqueezeV2 Unsqueeze UnsqueezeV2 ExpandDims Flatten FlattenV2 "
     "TransData",
     "reshape", FORM_RESHAPE},
    {"Transpose", "permute", FORM_PERMUTE},
    {"ReduceSum", "sum", FORM_REDUCE},
    {"ReduceMean", "mean", FORM_REDUCE},
    {"ReduceMax", "amax", FORM_REDUCE},
    {"ReduceMin", "amin", FORM_REDUCE},
    {"LayerNorm LayerNormV3 LayerNormV4", "layer_norm", FORM_LAYER_NORM},
    {"RmsNorm", "rms_norm", FORM_RMS_NORM},
};

/* One way in which the call may have been made. */
struct node_try {
    const char *op;
    struct plumb_arg args[MAX_ARGS];
    size_t n_args;
    struct plumb_kwarg kwargs[2];
    size_t n_kwargs;
    const char *assumed; /* what is not recorded, when only that makes it right */
};

struct node {
    const struct unit_options *options;
    const struct unit *unit;
    struct arena *arena; /* of texts that stay */
    struct loader loader;
    const char *prefix;
    struct list inputs, outputs;
    bool objects;        /* some arguments are neither tensors nor numbers */
    const char *unknown; /* what the tries leave open, or NULL */
    struct node_try tries[MAX_TRIES];
    size_t n_tries;
    struct local_verdict *out;
};

/* ---- Arguments ------------------------------------------------------------------------------- */

static struct plumb_arg integer(int64_t value)
{
    return (struct plumb_arg){.kind = PLUMB_ARG_INT, .integer = value};
}

/* A number that was stored as a tensor without dimensions, a list of whole ones; else itself. */
static bool plainly(struct node *n, const struct plumb_arg *from, bool lists, struct plumb_arg *out)
{
    const struct plumb_tensor *t = from->tensor;
    double values[MAX_SIZES];
    *out = *from;
    if (from->kind != PLUMB_ARG_TENSOR || t->rank > 1 || t->count > MAX_SIZES)
        return true;
    const enum plumb_kind kind = plumb_dtype_info(t->dtype)->kind;
    const bool whole = kind == PLUMB_KIND_INT || kind == PLUMB_KIND_BOOL;
    if (plumb_dtype_parts(t->dtype) != 1 || (t->rank && (!whole || !lists)))
        return true;
    plumb_tensor_to_f64(t, 0, (size_t)t->count, values);
    if (!t->rank) {
        *out = kind == PLUMB_KIND_INT ? integer((int64_t)values[0])
               : kind == PLUMB_KIND_BOOL
                   ? (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = values[0] != 0}
                   : (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = values[0]};
        return true;
    }
    struct plumb_arg *items = arena_array(&n->loader.arena, (size_t)t->count + 1, sizeof *items);
    for (size_t k = 0; items && k < t->count; k++)
        items[k] = integer((int64_t)values[k]);
    *out = (struct plumb_arg){.kind = PLUMB_ARG_LIST, .items = items, .n_items = (size_t)t->count};
    return items != NULL;
}

static struct node_try *add_try(struct node *n, const char *op)
{
    struct node_try *try = n->n_tries < MAX_TRIES ? &n->tries[n->n_tries++] : NULL;
    if (try)
        *try = (struct node_try){.op = op};
    return try;
}

static void add_keyword(struct node_try *try, const char *name, struct plumb_arg value)
{
    try->kwargs[try->n_kwargs++] = (struct plumb_kwarg){.name = name, .value = value};
}

/* ---- FX -------------------------------------------------------------------------------------- */

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
    if (last > MAX_ARGS) {
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
                          : numbers ? plainly(n, &input->arg, lists, arg)
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
    struct node_try *try = add_try(n, "");
    if (try) {
        *try = n->tries[0];
        add_keyword(try, keyword, value);
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
        add_variant(n, "correction", integer(k));
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
static bool list_fx(struct node *n)
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
    static const bool ways[FX_WAYS][2] = {{true, true}, {true, false}, {false, false}};
    for (int k = 0; k < FX_WAYS; k++) {
        struct node_try *try = add_try(n, name);
        if (!fill_args(n, try, ways[k][0], ways[k][1]))
            return false;
    }
    if (n->objects)
        n->unknown = "an argument of it is text or an object, which is taken for None";
    else if (has_other_keywords(op))
        n->unknown = "its keyword arguments are not in the dump";
    return n->loader.refused || add_keywords(n, op, name);
}

/* ---- GE -------------------------------------------------------------------------------------- */

static const struct ge_known *find_type(const char *type)
{
    const size_t length = strlen(type);
    for (size_t k = 0; k < sizeof known_types / sizeof *known_types; k++)
        for (const char *at = known_types[k].types; *at;) {
            const size_t word = strcspn(at, " ");
            if (word == length && memcmp(at, type, length) == 0)
                return &known_types[k];
            at += word;
            at += strspn(at, " ");
        }
    return NULL;
}

/* A view with the last two dimensions swapped; NULL when out of memory. */
static const struct plumb_tensor *swapped(struct node *n, const struct plumb_tensor *from)
{
    struct plumb_tensor *out = arena_alloc(&n->loader.arena, sizeof *out);
    if (!out || from->rank < 2)
        return out ? from : NULL;
    *out = *from;
    const unsigned a = from->rank - 1, b = from->rank - 2;
    out->shape[a] = from->shape[b];
    out->shape[b] = from->shape[a];
    out->stride[a] = from->stride[b];
    out->stride[b] = from->stride[a];
    out->dense = false;
    return out;
}

static bool list_matmul(struct node *n)
{
    const bool added = n->inputs.count > 2;
    for (int way = 0; way < 4 && n->inputs.count >= 2; way++) {
        struct node_try *try = add_try(n, added ? "addmm" : "matmul");
        struct plumb_arg *args = &try->args[added];
        try->n_args = added ? 3 : 2;
        try->args[0] = n->inputs.items[added ? 2 : 0].arg;
        for (int k = 0; k < 2; k++) {
            args[k] = n->inputs.items[k].arg;
            if (way & (1 << k))
                args[k].tensor = swapped(n, args[k].tensor);
            if (!args[k].tensor)
                return false;
        }
    }
    return true;
}

static bool list_sizes(struct node *n, const struct plumb_tensor *shape, struct plumb_arg *out)
{
    struct plumb_arg *items = arena_array(&n->loader.arena, shape->rank + 1u, sizeof *items);
    for (unsigned k = 0; items && k < shape->rank; k++)
        items[k] = integer(shape->shape[k]);
    *out = (struct plumb_arg){.kind = PLUMB_ARG_LIST, .items = items, .n_items = shape->rank};
    return items != NULL;
}

/* layer_norm and rms_norm over the dimensions of their weight. */
static bool list_norm(struct node *n, const char *op, bool centred)
{
    static const double eps[] = {1e-5, 1e-6, 1e-12, 1e-7, 1e-8, 1e-4, 1e-3};
    n->unknown = "its epsilon is not in the dump";
    if (n->inputs.count < 2) {
        n->loader.refused = "it has no weight in the dump";
        return true;
    }
    for (size_t k = 0; k < sizeof eps / sizeof *eps; k++) {
        struct node_try *try = add_try(n, op);
        try->args[0] = n->inputs.items[0].arg;
        if (!list_sizes(n, n->inputs.items[1].arg.tensor, &try->args[1]))
            return false;
        try->args[2] = n->inputs.items[1].arg;
        try->n_args = 3;
        if (centred && n->inputs.count > 2)
            try->args[try->n_args++] = n->inputs.items[2].arg;
        add_keyword(try, "eps", (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = eps[k]});
    }
    return true;
}

static bool list_reduce(struct node *n, const char *op)
{
    const struct plumb_tensor *x = n->inputs.items[0].arg.tensor,
                              *y = n->outputs.items[0].arg.tensor;
    struct node_try *try = add_try(n, op);
    if (n->inputs.count < 2) {
        n->loader.refused = "its dimensions are not in the dump";
        return true;
    }
    try->args[0] = n->inputs.items[0].arg;
    try->n_args = 1;
    struct plumb_arg axes;
    if (!plainly(n, &n->inputs.items[1].arg, true, &axes))
        return false;
    add_keyword(try, "dim", axes);
    add_keyword(try, "keepdim",
                (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = x->rank == y->rank});
    return true;
}

static bool list_other(struct node *n, const struct ge_known *known)
{
    const struct plumb_arg *x = &n->inputs.items[0].arg;
    const struct plumb_tensor *y = n->outputs.items[0].arg.tensor;
    const unsigned ways = known->form == FORM_DIMENSION ? x->tensor->rank
                          : known->form == FORM_GELU    ? 2
                                                        : 1;
    for (unsigned way = 0; way < ways; way++) {
        struct node_try *try = add_try(n, known->op);
        if (!try)
            return true;
        try->args[0] = *x;
        try->n_args = 1;
        if (known->form == FORM_DIMENSION)
            add_keyword(try, "dim", integer(x->tensor->rank - 1 - way));
        else if (known->form == FORM_GELU)
            add_keyword(try, "approximate",
                        (struct plumb_arg){.kind = PLUMB_ARG_TEXT, .text = way ? "tanh" : "none"});
        else if (known->form == FORM_CAST)
            add_keyword(try, "dtype",
                        (struct plumb_arg){.kind = PLUMB_ARG_DTYPE, .dtype = y->dtype});
        else if (known->form == FORM_PERMUTE && n->inputs.count == 2) {
            if (!plainly(n, &n->inputs.items[1].arg, true, &try->args[try->n_args++]))
                return false;
        } else if (!list_sizes(n, y, &try->args[try->n_args++])) {
            return false;
        }
    }
    if (known->form == FORM_PERMUTE && n->inputs.count != 2)
        n->loader.refused = "its order of dimensions is not in the dump";
    return true;
}

static bool list_ge(struct node *n)
{
    const struct ge_known *known = find_type(n->unit->class);
    n->prefix = "Torch";
    if (!known) {
        const char *text =
            arena_printf(n->arena, "plumb does not know the type %s", n->unit->class);
        n->loader.refused = text;
        return text != NULL;
    }
    if (known->form == FORM_MATMUL)
        return list_matmul(n);
    if (known->form == FORM_LAYER_NORM || known->form == FORM_RMS_NORM)
        return list_norm(n, known->op, known->form == FORM_LAYER_NORM);
    if (known->form == FORM_REDUCE)
        return list_reduce(n, known->op);
    if (known->form != FORM_PLAIN)
        return list_other(n, known);
    struct node_try *try = add_try(n, known->op);
    if (n->inputs.count > MAX_ARGS)
        n->loader.refused = "it has too many arguments";
    for (size_t k = 0; k < n->inputs.count && k < MAX_ARGS; k++)
        try->args[try->n_args++] = n->inputs.items[k].arg;
    return true;
}

/* ---- Judging --------------------------------------------------------------------------------- */

static void make_call(const struct node *n, const struct node_try *try, struct plumb_call *out)
{
    *out = (struct plumb_call){.prefix = n->prefix,
                               .name = try->op,
                               .args = try->args,
                               .n_args = try->n_args,
                               .kwargs = try->kwargs,
                               .n_kwargs = try->n_kwargs,
                               .memory = n->options->local.memory};
}

/* The way that comes nearest to what was recorded; why: of the first, when it cannot be run. */
static enum plumb_code choose(struct node *n, size_t *best, struct plumb_error *err)
{
    double least = INFINITY;
    bool ran = false;
    for (size_t k = 0; k < n->n_tries; k++) {
        struct plumb_call call;
        struct plumb_result result = {0};
        struct plumb_error why = {0};
        make_call(n, &n->tries[k], &call);
        const enum plumb_code code = plumb_op_run(&call, PLUMB_RAISED, &result, &why);
        const double apart =
            code || !result.n_outputs
                ? INFINITY
                : tensor_distance(&result.outputs[0], n->outputs.items[0].arg.tensor);
        plumb_result_destroy(&result);
        if (code == PLUMB_E_NOMEM) {
            *err = why;
            return code;
        }
        if (code && !k)
            *err = why;
        if (apart < least || (!code && !ran)) {
            least = apart;
            *best = k;
        }
        ran |= !code;
        if (least == 0)
            break;
    }
    return ran ? PLUMB_OK : err->code ? err->code : PLUMB_E_UNSUPPORTED;
}

/* A fault that rests on what was only assumed is none that anybody is to be blamed for, and what
 * only an unusual argument explains is not shown to be right. */
static enum plumb_code doubt(struct node *n, const struct node_try *try, struct plumb_error *err)
{
    struct local_verdict *out = &n->out[LOCAL_FORWARD];
    const bool fault = out->word == PLUMB_WORD_FAULT;
    const char *why = fault ? n->unknown : try->assumed;
    if (!why || out->word == PLUMB_WORD_NOT_JUDGED)
        return PLUMB_OK;
    out->why = fault ? arena_printf(n->arena, "%s; with what is usual: %s", why, out->why)
                     : arena_printf(n->arena, "%s", why);
    out->word = PLUMB_WORD_NOT_JUDGED;
    out->doubtful = true;
    return out->why ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code judge_node(struct node *n, struct plumb_error *err)
{
    size_t best = 0;
    struct plumb_arg outputs[MAX_TENSORS];
    struct known_call known = {.only_recorded = true};
    enum plumb_code code = choose(n, &best, err);
    for (size_t k = 0; k < n->outputs.count; k++)
        outputs[k] = n->outputs.items[k].arg;
    known.given.outputs = outputs;
    /* An unusual argument that explains nothing is no excuse: then the usual ones count. */
    for (int again = 0; again < 2 && !code; again++) {
        const struct node_try *try = &n->tries[best];
        make_call(n, try, &known.call);
        known.given.n_outputs = n->outputs.count;
        memset(n->out, 0, LOCAL_DIRECTIONS * sizeof *n->out);
        code = known_judge(&n->options->local, &known, n->arena, n->out, err);
        if (!(try->assumed && n->out[LOCAL_FORWARD].word == PLUMB_WORD_FAULT))
            break;
        n->n_tries = FX_WAYS;
        code = code ? code : choose(n, &best, err);
    }
    return code ? code : doubt(n, &n->tries[best], err);
}

/* Pieces that are tensors or numbers; FX leaves files of other things behind as well. */
static enum plumb_code take_inputs(struct node *n, struct plumb_error *err)
{
    const struct pieces *from = &n->unit->of[PIECE_INPUT];
    struct pieces kept = {.list =
                              arena_array(&n->loader.arena, from->count + 1, sizeof *kept.list)};
    if (!kept.list)
        return plumb_no_memory(err);
    for (size_t k = 0; k < from->count; k++) {
        const struct plumb_record *record = plumb_run_record(n->options->run, from->list[k].record);
        if (record->absent && !record->detail)
            n->objects = true;
        else
            kept.list[kept.count++] = from->list[k];
    }
    return list_take(&n->loader, &kept, &n->inputs, err);
}

static enum plumb_code run(struct node *n, struct plumb_error *err)
{
    const struct pieces *outputs = &n->unit->of[PIECE_OUTPUT];
    enum plumb_code code = take_inputs(n, err);
    if (!code && !n->loader.refused)
        code = list_take(&n->loader, outputs, &n->outputs, err);
    if (code || n->loader.refused)
        return code;
    if (!n->outputs.count || n->outputs.items[0].arg.kind != PLUMB_ARG_TENSOR)
        n->loader.refused = "its outputs were not recorded";
    const bool ge =
        outputs->count && plumb_run_record(n->options->run, outputs->list[0].record)->detail;
    if (!n->loader.refused && ge && !n->inputs.count)
        n->loader.refused = "its inputs were not recorded";
    if (!n->loader.refused && !(ge ? list_ge(n) : list_fx(n)))
        return plumb_no_memory(err);
    return n->loader.refused ? PLUMB_OK : judge_node(n, err);
}

enum plumb_code node_judge(const struct unit_options *options, const struct unit *unit,
                           struct arena *arena, struct local_verdict out[LOCAL_DIRECTIONS],
                           struct plumb_error *err)
{
    struct node *n = calloc(1, sizeof *n); /* too large for the stack of a thread */
    struct plumb_error why = {0};
    if (!n)
        return plumb_no_memory(err);
    n->options = options;
    n->unit = unit;
    n->arena = arena;
    n->loader = (struct loader){.run = options->run, .left = options->local.memory / 3};
    n->out = out;
    memset(out, 0, LOCAL_DIRECTIONS * sizeof *out);
    enum plumb_code code = run(n, &why);
    if (code == PLUMB_E_NOMEM)
        *err = why;
    else if (code || n->loader.refused)
        code = verdict_none(&out[LOCAL_FORWARD],
                            code ? verdict_reason(arena, &why) : n->loader.refused, arena, err);
    arena_free(&n->loader.arena);
    free(n);
    return code;
}
