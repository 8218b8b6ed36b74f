/* Calls of operators with arguments of every kind and type, for the fuzz target and for the test
 * that goes through all of them. */
#ifndef FUZZ_OP_CALLS_H
#define FUZZ_OP_CALLS_H

#include "plumb/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parameters ------------------------------------------------------------------------------ */

enum { CALLS_MAX_PARAMS = 32, CALLS_NAME = 64 };

struct calls_param {
    char type[16]; /* "Tensor", "int", ...; without [] and ? */
    char name[CALLS_NAME];
    bool list, rest, keyword_only, optional;
};

/* The parameters of one line of a schema; returns the next line, or NULL. */
static inline const char *calls_params(const char *line, struct calls_param *params, size_t *count)
{
    const char *end = strchr(line, '\n'), *s = strchr(line, '(');
    bool keyword_only = false;
    *count = 0;
    while (s && *s && *s != ')' && (!end || s < end) && *count < CALLS_MAX_PARAMS) {
        s += 1 + strspn(s + 1, " ,");
        if (*s == '*') {
            keyword_only = true;
            continue;
        }
        if (*s == ')')
            break;
        struct calls_param *param = &params[*count];
        *param = (struct calls_param){.keyword_only = keyword_only};
        int used = 0;
        if (sscanf(s, "%15[A-Za-z]%n", param->type, &used) != 1)
            break;
        s += used;
        param->list = *s == '[';
        s += strcspn(s, " ");
        param->rest = s[-1] == '.';
        if (sscanf(s, " %63[a-zA-Z0-9_]%n", param->name, &used) != 1)
            break;
        s += used;
        s += strcspn(s, "=,)"); /* further names */
        param->optional = *s == '=';
        s += strcspn(s, ",)[");
        if (*s == '[')
            s += strcspn(s, "]");
        s += strcspn(s, ",)");
        ++*count;
    }
    return end ? end + 1 : NULL;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

enum {
    CALLS_SHAPES = 10,
    CALLS_FILLS = 3,
    CALLS_TENSORS = PLUMB_DTYPE_COUNT * CALLS_SHAPES * CALLS_FILLS,
    CALLS_MAX_ARGS = 512 + CALLS_TENSORS
};

struct calls {
    struct plumb_tensor tensors[CALLS_TENSORS];
    struct plumb_arg args[CALLS_MAX_ARGS];
    size_t n_args;
    struct plumb_arg items[1024];
    size_t n_items;
    uint64_t data[CALLS_FILLS][128];
};

static inline struct plumb_arg *calls_add(struct calls *calls, struct plumb_arg arg)
{
    if (calls->n_args == CALLS_MAX_ARGS)
        abort();
    calls->args[calls->n_args] = arg;
    return &calls->args[calls->n_args++];
}

static inline void calls_add_list(struct calls *calls, enum plumb_arg_kind kind,
                                  const struct plumb_arg *items, size_t count)
{
    struct plumb_arg *to = calls->items + calls->n_items;
    calls->n_items += count;
    if (calls->n_items > sizeof calls->items / sizeof *calls->items)
        abort();
    if (count)
        memcpy(to, items, count * sizeof *items);
    calls_add(calls, (struct plumb_arg){.kind = kind, .items = to, .n_items = count});
}

static inline const struct plumb_tensor *
calls_tensor(const struct calls *calls, enum plumb_dtype dtype, unsigned shape, unsigned fill)
{
    return &calls->tensors[((size_t)dtype * CALLS_SHAPES + shape) * CALLS_FILLS + fill];
}

static inline void calls_make_tensors(struct calls *calls)
{
    static const struct {
        unsigned rank;
        int64_t shape[5];
    } shapes[CALLS_SHAPES] = {
        {0, {0}},    {1, {1}},       {1, {0}},          {1, {3}},          {2, {3, 3}},
        {2, {1, 4}}, {3, {2, 3, 4}}, {4, {1, 2, 4, 4}}, {4, {2, 0, 3, 1}}, {5, {1, 2, 2, 3, 3}}};
    for (size_t k = 0; k < 128; k++) {
        calls->data[1][k] = UINT64_C(0x9e3779b97f4a7c15) * (k + 1); /* wild */
        calls->data[2][k] = k % 3 == 0 ? UINT64_MAX : UINT64_C(0x7ff0000000000000);
    }
    for (unsigned dtype = 0; dtype < PLUMB_DTYPE_COUNT; dtype++)
        for (unsigned shape = 0; shape < CALLS_SHAPES; shape++)
            for (unsigned fill = 0; fill < CALLS_FILLS; fill++) {
                struct plumb_tensor *tensor =
                    &calls->tensors[((size_t)dtype * CALLS_SHAPES + shape) * CALLS_FILLS + fill];
                if (plumb_tensor_init(tensor, (enum plumb_dtype)dtype, shapes[shape].rank,
                                      shapes[shape].shape, NULL) ||
                    plumb_tensor_bytes(tensor) > sizeof calls->data[fill])
                    abort();
                tensor->data = calls->data[fill];
                /* Every type and every shape, but not all of them together. */
                bool common = dtype == PLUMB_F32 || dtype == PLUMB_I64 || dtype == PLUMB_C64;
                if (common ? fill > 1 : (dtype + shape) % CALLS_FILLS != fill || shape % 3)
                    continue;
                calls_add(calls, (struct plumb_arg){.kind = PLUMB_ARG_TENSOR,
                                                    .tensor = tensor,
                                                    .requires_grad = (shape + fill) % 2 == 0});
            }
}

static inline void calls_make_plain(struct calls *calls)
{
    static const int64_t integers[] = {
        0,  1,         -1,        2,         3,         7,  -3,      64,         65, 127,
        -9, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 62, 1 << 20, -(1 << 20), 63, INT64_MIN + 1};
    static const double numbers[] = {0.0, -0.0,  0.5,         -1.5,     1e-320,    1e308,  -1e308,
                                     1e9, 1e300, (double)NAN, INFINITY, -INFINITY, 9.3e18, -9.3e18};
    static const char *const texts[] = {
        "",     "mean",      "sum", "none", "nonsense", "floor", "trunc", "bilinear", "reflect",
        "tanh", "ij,jk->ik", "...", "->",   "constant", "%s%n",  "BSND",  "SBH",      "i,i,i->"};
    calls_add(calls, (struct plumb_arg){.kind = PLUMB_ARG_NONE});
    for (int k = 0; k < 2; k++)
        calls_add(calls, (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = k});
    for (size_t k = 0; k < sizeof integers / sizeof *integers; k++)
        calls_add(calls, (struct plumb_arg){.kind = PLUMB_ARG_INT, .integer = integers[k]});
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        calls_add(calls, (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = numbers[k]});
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        calls_add(calls, (struct plumb_arg){.kind = PLUMB_ARG_TEXT, .text = texts[k]});
    for (unsigned k = 0; k < PLUMB_DTYPE_COUNT; k++)
        calls_add(calls, (struct plumb_arg){.kind = PLUMB_ARG_DTYPE, .dtype = (enum plumb_dtype)k});
    calls_add(calls, (struct plumb_arg){.kind = PLUMB_ARG_ELLIPSIS});
    calls_add(calls, (struct plumb_arg){.kind = PLUMB_ARG_DEVICE, .text = "npu:0"});
    calls_add(calls, (struct plumb_arg){.kind = PLUMB_ARG_OTHER, .text = "object"});
}

static inline void calls_make_lists(struct calls *calls)
{
#define INT(value)                                                                                 \
    {                                                                                              \
        .kind = PLUMB_ARG_INT, .integer = (value)                                                  \
    }
#define TENSOR(dtype, shape, fill)                                                                 \
    {                                                                                              \
        .kind = PLUMB_ARG_TENSOR, .tensor = calls_tensor(calls, dtype, shape, fill)                \
    }
    const struct plumb_arg none = {.kind = PLUMB_ARG_NONE};
    const struct plumb_arg lists[][6] = {
        {INT(0)},
        {INT(1), INT(1)},
        {INT(-1), INT(-1)},
        {INT(0), INT(1)},
        {INT(1), INT(0)},
        {INT(2), INT(3), INT(4)},
        {INT(INT64_MAX), INT(INT64_MAX)},
        {INT(INT64_MIN), INT(1)},
        {INT(1), INT(1), INT(1), INT(1), INT(1), INT(1)},
        {INT(-2), INT(1 << 30), INT(-1)},
        {INT(3), INT(3), INT(3), INT(3)},
        {INT(0), INT(0), INT(0), INT(0), INT(0), INT(0)},
        {{.kind = PLUMB_ARG_FLOAT, .number = 0.5}, {.kind = PLUMB_ARG_FLOAT, .number = NAN}},
        {{.kind = PLUMB_ARG_TEXT, .text = "x"}, INT(1)},
        {TENSOR(PLUMB_F32, 4, 0), TENSOR(PLUMB_F32, 4, 1)},
        {TENSOR(PLUMB_F32, 3, 0), TENSOR(PLUMB_I64, 6, 1), TENSOR(PLUMB_BOOL, 0, 1)},
        {TENSOR(PLUMB_C64, 1, 1), TENSOR(PLUMB_F64, 2, 0)},
        {TENSOR(PLUMB_C128, 0, 1), INT(1)},
        {TENSOR(PLUMB_I64, 3, 2), TENSOR(PLUMB_I64, 3, 2)},
        {TENSOR(PLUMB_F16, 7, 1)},
        {none, TENSOR(PLUMB_I64, 3, 1)},
        {{.kind = PLUMB_ARG_ELLIPSIS}, INT(0)},
    };
    static const size_t counts[] = {1, 2, 2, 2, 2, 3, 2, 2, 6, 3, 4,
                                    6, 2, 2, 2, 3, 2, 2, 2, 1, 2, 2};
    _Static_assert(sizeof counts / sizeof *counts == sizeof lists / sizeof *lists, "a count each");
    calls_add_list(calls, PLUMB_ARG_LIST, NULL, 0);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        calls_add_list(calls, PLUMB_ARG_LIST, lists[k], counts[k]);
    const struct plumb_arg nested = {
        .kind = PLUMB_ARG_LIST, .items = calls->args[calls->n_args - 1].items, .n_items = 2};
    calls_add_list(calls, PLUMB_ARG_LIST, (struct plumb_arg[]){nested, nested}, 2);
    const struct plumb_arg slices[][3] = {
        {none, none, none},        {INT(INT64_MIN), INT(INT64_MAX), INT(1)},
        {INT(2), INT(-9), INT(3)}, {none, none, INT(INT64_MAX)},
        {none, none, INT(0)},      {none, none, INT(-1)}};
    for (size_t k = 0; k < sizeof slices / sizeof *slices; k++)
        calls_add_list(calls, PLUMB_ARG_SLICE, slices[k], 3);
#undef INT
#undef TENSOR
}

/* Fills what is all zero. */
static inline void calls_make(struct calls *calls)
{
    calls_make_plain(calls);
    calls_make_tensors(calls);
    calls_make_lists(calls);
}

/* An argument that the parameter takes, for shapes of tensors that go together. */
static inline struct plumb_arg calls_usual(struct calls *calls, const struct calls_param *param,
                                           enum plumb_dtype dtype, unsigned shape)
{
    const struct plumb_arg tensor = {.kind = PLUMB_ARG_TENSOR,
                                     .tensor = calls_tensor(calls, dtype, shape, 0),
                                     .requires_grad = true};
    static struct plumb_arg pair[2];
    struct plumb_arg arg = {.kind = PLUMB_ARG_INT, .integer = 1};
    if (strcmp(param->type, "Tensor") == 0 || strcmp(param->type, "Operand") == 0)
        arg = tensor;
    else if (strcmp(param->type, "bool") == 0)
        arg = (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = 1};
    else if (strcmp(param->type, "float") == 0)
        arg = (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = 0.5};
    else if (strcmp(param->type, "str") == 0)
        arg = (struct plumb_arg){.kind = PLUMB_ARG_TEXT, .text = "mean"};
    else if (strcmp(param->type, "dtype") == 0)
        arg = (struct plumb_arg){.kind = PLUMB_ARG_DTYPE, .dtype = dtype};
    if (!param->list || arg.kind != PLUMB_ARG_TENSOR)
        return arg;
    pair[0] = pair[1] = tensor;
    return (struct plumb_arg){.kind = PLUMB_ARG_LIST, .items = pair, .n_items = 2};
}

/* ---- Running --------------------------------------------------------------------------------- */

enum { CALLS_MEMORY = 8 << 20 };

/* Runs the call of an operator with one argument for each parameter: positional ones up to the
 * first that is left out (kind other without text), the rest by name. Whatever comes of it, it
 * comes back as a result or as an error that says something. */
static inline void calls_run(const struct plumb_op *op, const struct calls_param *params,
                             const struct plumb_arg *given, size_t count, bool backward)
{
    char name[CALLS_NAME];
    struct plumb_arg args[CALLS_MAX_PARAMS];
    struct plumb_kwarg kwargs[CALLS_MAX_PARAMS];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(op->names, " "), op->names);
    struct plumb_call call = {
        .prefix = "Torch", .name = name, .args = args, .kwargs = kwargs, .memory = CALLS_MEMORY};
    bool by_name = false;
    for (size_t k = 0; k < count; k++) {
        bool left_out = given[k].kind == PLUMB_ARG_OTHER && !given[k].text;
        by_name |= left_out || params[k].keyword_only;
        if (left_out)
            continue;
        if (by_name && !params[k].rest)
            kwargs[call.n_kwargs++] = (struct plumb_kwarg){params[k].name, given[k]};
        else if (!by_name)
            args[call.n_args++] = given[k];
    }
    for (int raised = 0; raised < 2; raised++) {
        struct plumb_result result;
        struct plumb_error err = {0};
        enum plumb_code code =
            plumb_op_run(&call, raised ? PLUMB_RAISED : PLUMB_OWN, &result, &err);
        if (code && !err.message[0])
            abort();
        if (!code && backward && result.n_outputs) {
            const struct plumb_tensor *grads[8];
            struct plumb_call again = call;
            for (size_t k = 0; k < result.n_outputs && k < 8; k++)
                grads[again.n_grads++] =
                    result.outputs[k].kind == PLUMB_ARG_TENSOR ? result.outputs[k].tensor : NULL;
            struct plumb_result second;
            again.grads = grads;
            if (plumb_op_run(&again, raised ? PLUMB_RAISED : PLUMB_OWN, &second, &err) &&
                !err.message[0])
                abort();
            plumb_result_destroy(&second);
        }
        plumb_result_destroy(&result);
    }
}

/* A call made of bytes: two choose the operator, one the signature, one the usual arguments,
 * then two for each parameter an argument, where 0 stands for the usual one. */
static inline void calls_from_bytes(struct calls *calls, const uint8_t *bytes, size_t size)
{
    static size_t n_ops;
    while (plumb_op_at(n_ops))
        n_ops++;
    if (size < 4 || !n_ops)
        return;
    const struct plumb_op *op = plumb_op_at((bytes[0] | (size_t)bytes[1] << 8) % n_ops);
    struct calls_param params[CALLS_MAX_PARAMS];
    struct plumb_arg given[CALLS_MAX_PARAMS];
    size_t count = 0, at = 4;
    const char *line = op->schema;
    for (unsigned k = bytes[2] % 4 + 1u; k && line && *line; k--)
        line = calls_params(line, params, &count);
    for (size_t k = 0; k < count; k++) {
        size_t choice = at + 1 < size ? bytes[at] | (size_t)bytes[at + 1] << 8 : 0;
        at += 2;
        if (choice % 4 || !calls->n_args) /* most are usual, or hardly a call would fit together */
            given[k] = params[k].optional && choice % 4 != 1
                           ? (struct plumb_arg){.kind = PLUMB_ARG_OTHER}
                           : calls_usual(calls, &params[k], (enum plumb_dtype)(bytes[3] % 13),
                                         bytes[3] / 13 % CALLS_SHAPES);
        else
            given[k] = calls->args[choice / 4 % calls->n_args];
    }
    calls_run(op, params, given, count, bytes[2] >= 128);
}

#endif
