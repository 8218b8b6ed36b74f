/* GE operators by their type: what it computes, and what its attributes may have been. */
#include "task/blame/nodes.h"

#include <string.h>

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
        struct node_try *try = node_add_try(n, added ? "addmm" : "matmul");
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
        items[k] = node_integer(shape->shape[k]);
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
        struct node_try *try = node_add_try(n, op);
        try->args[0] = n->inputs.items[0].arg;
        if (!list_sizes(n, n->inputs.items[1].arg.tensor, &try->args[1]))
            return false;
        try->args[2] = n->inputs.items[1].arg;
        try->n_args = 3;
        if (centred && n->inputs.count > 2)
            try->args[try->n_args++] = n->inputs.items[2].arg;
        node_add_keyword(try, "eps", (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = eps[k]});
    }
    return true;
}

static bool list_reduce(struct node *n, const char *op)
{
    const struct plumb_tensor *x = n->inputs.items[0].arg.tensor,
                              *y = n->outputs.items[0].arg.tensor;
    struct node_try *try = node_add_try(n, op);
    if (n->inputs.count < 2) {
        n->loader.refused = "its dimensions are not in the dump";
        return true;
    }
    try->args[0] = n->inputs.items[0].arg;
    try->n_args = 1;
    struct plumb_arg axes;
    if (!node_plainly(n, &n->inputs.items[1].arg, true, &axes))
        return false;
    node_add_keyword(try, "dim", axes);
    node_add_keyword(try, "keepdim",
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
        struct node_try *try = node_add_try(n, known->op);
        if (!try)
            return true;
        try->args[0] = *x;
        try->n_args = 1;
        if (known->form == FORM_DIMENSION)
            node_add_keyword(try, "dim", node_integer(x->tensor->rank - 1 - way));
        else if (known->form == FORM_GELU)
            node_add_keyword(
                try, "approximate",
                (struct plumb_arg){.kind = PLUMB_ARG_TEXT, .text = way ? "tanh" : "none"});
        else if (known->form == FORM_CAST)
            node_add_keyword(try, "dtype",
                             (struct plumb_arg){.kind = PLUMB_ARG_DTYPE, .dtype = y->dtype});
        else if (known->form == FORM_PERMUTE && n->inputs.count == 2) {
            if (!node_plainly(n, &n->inputs.items[1].arg, true, &try->args[try->n_args++]))
                return false;
        } else if (!list_sizes(n, y, &try->args[try->n_args++])) {
            return false;
        }
    }
    if (known->form == FORM_PERMUTE && n->inputs.count != 2)
        n->loader.refused = "its order of dimensions is not in the dump";
    return true;
}

bool node_list_ge(struct node *n)
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
    struct node_try *try = node_add_try(n, known->op);
    if (n->inputs.count > NODE_MAX_ARGS)
        n->loader.refused = "it has too many arguments";
    for (size_t k = 0; k < n->inputs.count && k < NODE_MAX_ARGS; k++)
        try->args[try->n_args++] = n->inputs.items[k].arg;
    return true;
}
