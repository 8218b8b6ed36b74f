/* For the tests of operators: a library that Python loads. Besides plumb_op_run it offers an output
 * in extended precision, which finite differences need. Compiled with OP_REAL=128. */
#include "exec/op/run.h"

#include <string.h>

/* <gradient, output> for the one output whose gradient is given, in extended precision, as the
 * sum of two doubles. Returns 0, or a code. */
int op_objective(const struct plumb_call *call, double out[2], struct plumb_error *err);

static bool find(const struct plumb_call *call, size_t *family, size_t *def)
{
    const struct plumb_op *op = plumb_op_of(call);
    const struct op_def *table;
    for (*family = 0; op && (table = op_family_f64(*family)); ++*family)
        for (*def = 0; table[*def].names; ++*def)
            if (strcmp(table[*def].names, op->names) == 0)
                return true;
    return false;
}

int op_objective(const struct plumb_call *call, double out[2], struct plumb_error *err)
{
    size_t family, def;
    if (!find(call, &family, &def))
        return PLUMB_E_UNSUPPORTED;
    size_t k = 0;
    while (k + 1 < call->n_grads && !call->grads[k])
        k++;
    struct plumb_call forward = *call;
    forward.n_grads = 0;
    struct arena arena = {0};
    struct plumb_result result = {0};
    struct op o;
    op_begin(&o, &forward, true, &arena, &result, err);
    real sum = 0;
    if (op_execute(&o, family, def) && k < result.n_outputs) {
        const struct val *y = o.outputs[k];
        struct val *g = op_load_plain(&o, call->grads[k]);
        if (!y || !g || y->count != g->count || !y->f)
            op_fail(&o, PLUMB_E_ARG, "the gradient does not fit the output");
        for (int64_t e = 0; !o.failed && e < y->count; e++)
            sum += y->f[e] * g->f[e];
    }
    out[0] = (double)sum;
    out[1] = (double)(sum - (real)out[0]);
    arena_free(&arena);
    return o.failed ? (int)err->code : 0;
}
