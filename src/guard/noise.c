/* How large the terms are that a result adds up. Where they cancel, a right kernel is off by some
 * roundings of the terms, however small the result: the operator on absolute values tells. */
#include "guard/guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Operators that only add and multiply. In-place forms are these too. */
static const char sums[] =
    " _adaptive_avg_pool2d _adaptive_avg_pool3d _convolution _slow_conv2d_forward _trilinear "
    "add addbmm addcmul addmm addmv addr avg_pool1d avg_pool2d avg_pool2d_backward avg_pool3d "
    "avg_pool3d_backward baddbmm bilinear bmm col2im conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d convolution convolution_backward cumsum dot "
    "embedding_dense_backward index_add index_put inner linalg_matrix_exp linear matmul mean mm mv "
    "nansum scatter_add slow_conv3d_forward sum thnn_conv2d trace upsample_bicubic2d "
    "upsample_bilinear2d upsample_linear1d upsample_trilinear3d vdot ";

/* Operators that subtract, and what adds instead. */
static const char *const differences[][2] = {{"sub", "add"}, {"rsub", "add"}};

/* The name without overload and in-place mark, between blanks; false when it is too long. */
static bool base_name(const char *name, char *word, size_t room)
{
    size_t length = strcspn(name, ".");
    if (length > 1 && name[length - 1] == '_')
        length--;
    if (length + 3 > room)
        return false;
    word[0] = ' ';
    memcpy(word + 1, name, length);
    memcpy(word + 1 + length, " ", 2);
    return true;
}

/* What adds up the absolute values of the terms of such an operator; NULL for others. */
static const char *adding_name(const char *name)
{
    char word[96];
    if (!base_name(name, word, sizeof word))
        return NULL;
    if (strstr(sums, word))
        return name;
    word[strlen(word) - 1] = '\0';
    for (size_t k = 0; k < sizeof differences / sizeof *differences; k++)
        if (strcmp(word + 1, differences[k][0]) == 0)
            return differences[k][1];
    return NULL;
}

bool noise_is_known(const char *name)
{
    return adding_name(name) != NULL;
}

/* Absolute values as float32, which is more than enough; integers and bool as they are. */
static bool absolute_tensor(struct arena *arena, const struct plumb_tensor *from,
                            const struct plumb_tensor **to)
{
    const enum plumb_kind kind = plumb_dtype_info(from->dtype)->kind;
    *to = from;
    if (kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX)
        return true;
    struct plumb_tensor *tensor = arena_alloc(arena, sizeof *tensor);
    float *values = arena_array(arena, from->count ? (size_t)from->count : 1, sizeof *values);
    if (!tensor || !values)
        return false;
    for (uint64_t k = 0; k < from->count; k++) {
        double x[2] = {0, 0};
        plumb_tensor_to_f64(from, k, 1, x);
        values[k] = (float)hypot(x[0], x[1]);
    }
    plumb_tensor_init(tensor, PLUMB_F32, from->rank, from->shape, NULL);
    tensor->data = values;
    *to = tensor;
    return true;
}

static bool absolute_arg(struct arena *arena, const struct plumb_arg *from, struct plumb_arg *to)
{
    *to = *from;
    if (from->kind == PLUMB_ARG_TENSOR)
        return absolute_tensor(arena, from->tensor, &to->tensor);
    if (from->kind == PLUMB_ARG_FLOAT)
        to->number = fabs(from->number);
    if (from->kind != PLUMB_ARG_LIST)
        return true;
    struct plumb_arg *items = arena_array(arena, from->n_items, sizeof *items);
    bool fine = items != NULL;
    for (size_t k = 0; fine && k < from->n_items; k++)
        fine = absolute_arg(arena, &from->items[k], &items[k]);
    to->items = items;
    return fine;
}

/* Factors may be whole numbers; other whole numbers are places. */
static bool is_factor(const char *name)
{
    return strcmp(name, "alpha") == 0 || strcmp(name, "beta") == 0 || strcmp(name, "value") == 0;
}

static bool absolute_call(struct arena *arena, struct plumb_call *call)
{
    struct plumb_arg *args = arena_array(arena, call->n_args, sizeof *args);
    struct plumb_kwarg *kwargs = arena_array(arena, call->n_kwargs, sizeof *kwargs);
    bool fine = args && kwargs;
    for (size_t k = 0; fine && k < call->n_args; k++)
        fine = absolute_arg(arena, &call->args[k], &args[k]);
    for (size_t k = 0; fine && k < call->n_kwargs; k++) {
        kwargs[k].name = call->kwargs[k].name;
        fine = absolute_arg(arena, &call->kwargs[k].value, &kwargs[k].value);
        if (fine && is_factor(kwargs[k].name) && kwargs[k].value.integer > INT64_MIN)
            kwargs[k].value.integer = llabs(kwargs[k].value.integer);
    }
    call->args = args;
    call->kwargs = kwargs;
    return fine;
}

enum plumb_code noise_run(const struct plumb_call *call, struct arena *arena,
                          struct plumb_result *out, struct plumb_error *err)
{
    struct plumb_call absolute = *call;
    enum plumb_code code = PLUMB_OK;
    absolute.name = adding_name(call->name);
    if (!absolute.name)
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "%s adds nothing up", call->name);
    else if (!absolute_call(arena, &absolute))
        code = plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
    else
        code = plumb_op_run(&absolute, PLUMB_RAISED, out, err);
    return code;
}
