/* Comparisons of two operands. */
#include "op/elem.h"

/* Two loops each: floats with floats, integers with integers; results 0 or 1. */
#define COMPARISON(name, operator)                                                                 \
    ELEM_LOOP(name##_real, real, int64_t, a operator b)                                            \
    ELEM_LOOP(name##_int, int64_t, int64_t, a operator b)                                          \
    static void name##_run(const struct val *a, int64_t at_a, int64_t sa, const struct val *b,     \
                           int64_t at_b, int64_t sb, int64_t *y, int64_t n)                        \
    {                                                                                              \
        if (a->f)                                                                                  \
            ELEM_STRIDES(sa, sb, name##_real_each, a->f + at_a, b->f + at_b, y, n, NULL);          \
        else                                                                                       \
            ELEM_STRIDES(sa, sb, name##_int_each, a->i + at_a, b->i + at_b, y, n, NULL);           \
    }

COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

typedef void run(const struct val *a, int64_t at_a, int64_t sa, const struct val *b, int64_t at_b,
                 int64_t sb, int64_t *y, int64_t n);

/* A number or 0-d tensor next to a tensor is rounded to the tensor's type, as torch does. */
static struct val *comparand(struct op *o, struct val *x, enum plumb_dtype dtype)
{
    const bool light = x->weak || (x->rank == 0 && x->dtype != dtype);
    x = elem_operand(o, x, dtype);
    if (!x || !light || !x->f)
        return x;
    struct val *rounded = val_new(o, dtype, 0, NULL);
    if (rounded)
        rounded->f[0] = elem_rounded(dtype, x->f[0]);
    return rounded;
}

struct val *v_compare(struct op *o, enum compare how, struct val *a, struct val *b)
{
    static run *const runs[] = {[CMP_EQ] = eq_run, [CMP_NE] = ne_run, [CMP_LT] = lt_run,
                                [CMP_LE] = le_run, [CMP_GT] = gt_run, [CMP_GE] = ge_run};
    if (!a || !b)
        return NULL;
    const enum plumb_dtype dtype = promote(a, b);
    a = comparand(o, a, dtype);
    b = comparand(o, b, dtype);
    struct elem_plan plan;
    if (!elem_plan(o, 2, (struct val *const[]){a, b}, &plan))
        return NULL;
    struct val *out = val_new(o, PLUMB_BOOL, plan.out_rank, plan.out_shape);
    const unsigned last = plan.rank - 1;
    struct elem_place place = {0};
    for (bool more = out && out->count; more; more = elem_next(&plan, &place))
        runs[how](a, place.offset[0], plan.stride[0][last], b, place.offset[1],
                  plan.stride[1][last], out->i + place.at, plan.shape[last]);
    return out;
}

/* ---- Operators --------------------------------------------------------------------------------- */

static void run_compare(struct op *o, enum compare how)
{
    struct val *x = arg_operand(o, "input");
    elem_return(o, x, v_compare(o, how, x, arg_operand(o, "other")));
}

#define RUN(name, how)                                                                             \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        run_compare(o, how);                                                                       \
    }

RUN(eq, CMP_EQ)
RUN(ne, CMP_NE)
RUN(lt, CMP_LT)
RUN(le, CMP_LE)
RUN(gt, CMP_GT)
RUN(ge, CMP_GE)

#define PAIR "(Operand input|self, Operand other)"

const struct op_def op_compare[] = {
    {"eq eq_ __eq__", "eq" PAIR, run_eq, OP_NO_GRAD, NULL},
    {"ne ne_ not_equal not_equal_ __ne__", "ne" PAIR, run_ne, OP_NO_GRAD, NULL},
    {"lt lt_ less less_ __lt__", "lt" PAIR, run_lt, OP_NO_GRAD, NULL},
    {"le le_ less_equal less_equal_ __le__", "le" PAIR, run_le, OP_NO_GRAD, NULL},
    {"gt gt_ greater greater_ __gt__", "gt" PAIR, run_gt, OP_NO_GRAD, NULL},
    {"ge ge_ greater_equal greater_equal_ __ge__", "ge" PAIR, run_ge, OP_NO_GRAD, NULL},
    {0},
};
