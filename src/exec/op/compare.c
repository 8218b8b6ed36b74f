/* Comparisons of two operands. */
#include "exec/op/elem.h"

/* Two loops each: floats with floats, integers with integers; results 0 or 1. */
#define COMPARISON(name, operator)                                                                 \
    ELEM_INTEGERS(name, a operator b)                                                              \
    ELEM_LOOP(name, real, int64_t, a operator b)                                                   \
    static void name##_reals(const real *a, int64_t sa, const real *b, int64_t sb, int64_t *y,     \
                             int64_t n)                                                            \
    {                                                                                              \
        ELEM_STRIDES(sa, sb, name##_each, a, b, y, n, NULL);                                       \
    }

COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

struct comparison {
    void (*reals)(const real *a, int64_t sa, const real *b, int64_t sb, int64_t *y, int64_t n);
    void (*integers)(const int64_t *a, int64_t sa, const int64_t *b, int64_t sb, int64_t *y,
                     int64_t n);
};

static const struct comparison comparisons[] = {
    [CMP_EQ] = {eq_reals, eq_integers}, [CMP_NE] = {ne_reals, ne_integers},
    [CMP_LT] = {lt_reals, lt_integers}, [CMP_LE] = {le_reals, le_integers},
    [CMP_GT] = {gt_reals, gt_integers}, [CMP_GE] = {ge_reals, ge_integers},
};

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
    const int64_t sa = plan.stride[0][last], sb = plan.stride[1][last];
    struct elem_place place = {0};
    for (bool more = out && out->count; more; more = elem_next(&plan, &place)) {
        const int64_t *at = place.offset;
        if (a->f)
            comparisons[how].reals(a->f + at[0], sa, b->f + at[1], sb, out->i + place.at,
                                   plan.shape[last]);
        else
            comparisons[how].integers(a->i + at[0], sa, b->i + at[1], sb, out->i + place.at,
                                      plan.shape[last]);
    }
    return out;
}

/* ---- Operators ------------------------------------------------------------------------------- */

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
