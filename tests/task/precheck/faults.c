#include "task/precheck/faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

double *fault_values(const struct plumb_tensor *tensor)
{
    double *values = malloc(tensor->count * sizeof *values);
    assert_non_null(values);
    plumb_tensor_to_f64(tensor, 0, (size_t)tensor->count, values);
    return values;
}

void fault_scale(const struct target *t)
{
    for (int64_t k = 0; k < t->rows * t->columns; k++)
        t->x[k] *= 1.01;
}

void fault_wrong_tile(const struct target *t)
{
    for (int64_t r = 0; r < 8; r++)
        memcpy(t->x + r * t->columns, t->x + (r + 8) * t->columns + 8, 8 * sizeof *t->x);
}

void fault_stale_row(const struct target *t)
{
    memcpy(t->x + 5 * t->columns, t->x + 4 * t->columns, (size_t)t->columns * sizeof *t->x);
}

void fault_one_nan(const struct target *t)
{
    t->x[t->columns + 3] = NAN;
}

void fault_zero_sign(const struct target *t)
{
    for (int64_t k = 0; k < t->rows * t->columns; k++)
        if (t->x[k] == 0)
            t->x[k] = -t->x[k];
}

/* The result of another call in place of the right one. */
static void run_instead(const struct target *t, const struct plumb_call *call)
{
    struct plumb_result result = {0};
    assert_int_equal(t->cpu->run(t->cpu, call, &result, NULL), PLUMB_OK);
    const struct plumb_arg *arg = t->direction == FORWARD ? &result.outputs[0] : &result.grads[0];
    assert_int_equal(arg->tensor->count, t->rows * t->columns);
    plumb_tensor_to_f64(arg->tensor, 0, (size_t)arg->tensor->count, t->x);
    plumb_result_destroy(&result);
}

/* The tensor with the last eighth of each row, along which is summed, left out. */
static void *without_tail(const struct plumb_tensor *from, struct plumb_tensor *out)
{
    double *values = malloc(from->count * sizeof *values);
    void *data = malloc(plumb_tensor_bytes(from));
    assert_true(values && data);
    plumb_tensor_to_f64(from, 0, (size_t)from->count, values);
    int64_t columns = from->shape[from->rank - 1], kept = columns - columns / 8;
    for (int64_t k = 0; k < (int64_t)from->count; k++)
        if (k % columns >= kept)
            values[k] = 0;
    plumb_from_f64(from->dtype, values, (size_t)from->count, data);
    free(values);
    assert_int_equal(plumb_tensor_init(out, from->dtype, from->rank, from->shape, NULL), PLUMB_OK);
    out->data = data;
    return data;
}

void fault_dropped_tail(const struct target *t)
{
    struct plumb_call call = *t->call;
    struct plumb_tensor cut;
    struct plumb_arg args[3];
    const struct plumb_tensor *grad = &cut;
    assert_true(call.n_args >= 1 && call.n_args <= 3);
    memcpy(args, call.args, call.n_args * sizeof *args);
    void *data = without_tail(t->direction == FORWARD ? args[0].tensor : call.grads[0], &cut);
    if (t->direction == FORWARD)
        args[0].tensor = &cut;
    else
        call.grads = &grad;
    call.args = args;
    run_instead(t, &call);
    free(data);
}

void fault_wrong_axis(const struct target *t)
{
    struct plumb_call call = *t->call;
    struct plumb_kwarg dim = call.kwargs[0];
    dim.value.integer--;
    call.kwargs = &dim;
    run_instead(t, &call);
}

/* Sums that are rounded to bfloat16 at every addition: the product of two matrices, the second of
 * them transposed for linear, with its bias; and their gradients for the first. */
void fault_bf16_sums(const struct target *t)
{
    const bool linear = strcmp(t->call->name, "linear") == 0, forward = t->direction == FORWARD;
    const struct plumb_tensor *weight = t->call->args[1].tensor;
    double *a = fault_values(forward ? t->call->args[0].tensor : t->call->grads[0]);
    double *b = fault_values(weight);
    double *bias = linear && forward ? fault_values(t->call->args[2].tensor) : NULL;
    const bool across = linear == forward; /* the sum runs along the rows of the weight */
    const int64_t n = weight->shape[across ? 1 : 0], width = weight->shape[1];
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t c = 0; c < t->columns; c++) {
            double sum = bias ? bias[c] : 0;
            for (int64_t k = 0; k < n; k++)
                sum = plumb_round_to(
                    PLUMB_BF16, sum + a[r * n + k] * b[across ? c * width + k : k * width + c]);
            t->x[r * t->columns + c] = sum;
        }
    free(a);
    free(b);
    free(bias);
}
