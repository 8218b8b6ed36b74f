/* Elementwise operators over lists of tensors: one result for each. */
#include "exec/op/bind.h"

#include <string.h>

extern const struct op_def op_unary[], op_special[], op_gamma[];

typedef struct val *one(struct op *o, struct val *x);
typedef struct val *two(struct op *o, struct val *x, struct val *y);

/* The k-th of a list argument, or the number that stands for all of them. */
static struct val *other_of(struct op *o, const char *name, size_t k, size_t n)
{
    const struct plumb_arg *arg = arg_raw(o, name);
    if (!arg)
        return NULL;
    if (arg->kind != PLUMB_ARG_LIST)
        return arg_operand(o, name);
    if (arg->n_items != n)
        return op_fail(o, PLUMB_E_ARG, "%s: lists of %zu and %zu", o->call->name, n, arg->n_items);
    const struct plumb_arg *item = &arg->items[k];
    return item->kind == PLUMB_ARG_TENSOR  ? arg_value(o, item)
           : item->kind == PLUMB_ARG_FLOAT ? v_number(o, item->number)
                                           : v_int(o, item->integer);
}

static void each(struct op *o, one *function)
{
    size_t n;
    struct val **xs = arg_tensors(o, "input", &n);
    for (size_t k = 0; xs && k < n; k++)
        op_return(o, function(o, xs[k]));
    op_return_tuple(o);
}

static void each_pair(struct op *o, two *function)
{
    size_t n;
    struct val **xs = arg_tensors(o, "input", &n);
    const bool scaled = arg_given(o, "alpha");
    for (size_t k = 0; xs && k < n && !o->failed; k++) {
        struct val *other = other_of(o, "other", k, n);
        if (scaled)
            other = v_mul(o, other, arg_operand(o, "alpha"));
        op_return(o, function(o, xs[k], other));
    }
    op_return_tuple(o);
}

/* The operator of one tensor that goes by the name. */
static const struct op_def *single(const char *name)
{
    const struct op_def *const tables[] = {op_unary, op_special, op_gamma};
    const size_t n = strlen(name);
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct op_def *def = tables[t]; def->names; def++)
            if (strncmp(def->names, name, n) == 0 && (def->names[n] == ' ' || !def->names[n]))
                return def;
    return NULL;
}

/* Runs that operator with one tensor of the list after the other in the place of its input. */
static void each_as(struct op *o, const char *name)
{
    const struct op_def *def = single(name);
    struct op_bound *bound = &o->bound[op_param_index(o, "input")];
    const struct plumb_arg *list = bound->value;
    for (size_t k = 0; k < list->n_items && !o->failed; k++) {
        bound->value = &list->items[k];
        def->run(o);
    }
    bound->value = list;
    op_return_tuple(o);
}

/* A number to the power of each. */
static void run_pow_of(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "other", &n);
    for (size_t k = 0; xs && k < n; k++)
        op_return(o, v_pow(o, arg_operand(o, "input"), xs[k]));
    op_return_tuple(o);
}

static struct val *all_max(struct op *o, struct val *x)
{
    if (!x)
        return NULL;
    return v_max_dim(o, v_reshape(o, x, 1, &x->count), 0, false, NULL);
}

/* sum of |x|^p */
static void run_powsum(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "input", &n);
    const double p = arg_number(o, "ord");
    for (size_t k = 0; xs && k < n; k++) {
        struct val *x = v_abs(o, xs[k]);
        if (arg_given(o, "dtype"))
            x = v_cast(o, x, arg_dtype(o, "dtype"));
        op_return(o, v_sum(o, p == 2 ? v_square(o, x) : v_pow(o, x, v_number(o, p)), 0, false));
    }
    op_return_tuple(o);
}

static void run_mm(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "input", &n);
    for (size_t k = 0; xs && k < n && !o->failed; k++)
        op_return(o, v_matmul(o, xs[k], other_of(o, "other", k, n)));
    op_return_tuple(o);
}

/* input + value * join(tensor1, tensor2) */
static void each_sum(struct op *o, two *join)
{
    size_t n;
    struct val **xs = arg_tensors(o, "input", &n);
    for (size_t k = 0; xs && k < n && !o->failed; k++) {
        struct val *joined = join(o, other_of(o, "tensor1", k, n), other_of(o, "tensor2", k, n));
        op_return(o, v_add(o, xs[k], v_mul(o, joined, other_of(o, "value", k, n))));
    }
    op_return_tuple(o);
}

static struct val *sign(struct op *o, struct val *x)
{
    struct val *above = v_compare(o, CMP_GT, x, v_int(o, 0));
    struct val *below = v_compare(o, CMP_LT, x, v_int(o, 0));
    return x ? v_sub(o, v_cast(o, above, x->dtype), v_cast(o, below, x->dtype)) : NULL;
}

static struct val *zero(struct op *o, struct val *x)
{
    return x ? v_full(o, x->dtype, x->rank, x->shape, 0) : NULL;
}

static struct val *clone(struct op *o, struct val *x)
{
    return x ? v_reshape(o, x, x->rank, x->shape) : NULL;
}

static struct val *copy(struct op *o, struct val *x, struct val *y)
{
    return x && y ? v_cast(o, v_broadcast(o, y, x->rank, x->shape), x->dtype) : NULL;
}

static void run_lerp(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "input", &n);
    for (size_t k = 0; xs && k < n && !o->failed; k++) {
        struct val *way = v_sub(o, other_of(o, "other", k, n), xs[k]);
        op_return(o, v_add(o, xs[k], v_mul(o, other_of(o, "weight", k, n), way)));
    }
    op_return_tuple(o);
}

#define RUN(name, how, function)                                                                   \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        how(o, function);                                                                          \
    }

RUN(abs, each, v_abs)
RUN(neg, each, v_neg)
RUN(zero, each, zero)
RUN(exp, each, v_exp)
RUN(log, each, v_log)
RUN(sign, each, sign)
RUN(sqrt, each, v_sqrt)
RUN(tanh, each, v_tanh)
RUN(sigmoid, each, v_sigmoid)
RUN(reciprocal, each, v_reciprocal)
RUN(add, each_pair, v_add)
RUN(sub, each_pair, v_sub)
RUN(mul, each_pair, v_mul)
RUN(div, each_pair, v_div)
RUN(maximum, each_pair, v_maximum)
RUN(minimum, each_pair, v_minimum)
RUN(copy, each_pair, copy)
RUN(addcmul, each_sum, v_mul)
RUN(addcdiv, each_sum, v_div)

static void run_pow(struct op *o)
{
    if (arg_raw(o, "input")->kind == PLUMB_ARG_LIST)
        each_pair(o, v_pow);
    else
        run_pow_of(o);
}

#define EACH(name)                                                                                 \
    static void run_each_##name(struct op *o)                                                      \
    {                                                                                              \
        each_as(o, #name);                                                                         \
    }

EACH(acos)
EACH(asin)
EACH(atan)
EACH(ceil)
EACH(cosh)
EACH(erf)
EACH(erfc)
EACH(expm1)
EACH(floor)
EACH(frac)
EACH(lgamma)
EACH(log10)
EACH(log1p)
EACH(log2)
EACH(round)
EACH(sinh)
EACH(sin)
EACH(cos)
EACH(tan)
EACH(trunc)
EACH(rsqrt)
RUN(max, each, all_max)
RUN(clone, each, clone)

#define LIST "(Tensor[] input|self)"
#define PAIR "(Tensor[] input|self, any other|scalar|scalars|exponent)"
#define ALPHA "(Tensor[] input|self, any other|scalar|scalars, *, number? alpha=None)"
#define SUM "(Tensor[] input|self, Tensor[] tensor1, Tensor[] tensor2, any value|scalars=1)"

const struct op_def op_foreach[] = {
    {"_foreach_abs _foreach_abs_", "_foreach_abs" LIST, run_abs, 0, NULL},
    {"_foreach_neg _foreach_neg_", "_foreach_neg" LIST, run_neg, 0, NULL},
    {"_foreach_zero _foreach_zero_", "_foreach_zero" LIST, run_zero, OP_NO_GRAD, NULL},
    {"_foreach_exp _foreach_exp_", "_foreach_exp" LIST, run_exp, 0, NULL},
    {"_foreach_log _foreach_log_", "_foreach_log" LIST, run_log, 0, NULL},
    {"_foreach_sign _foreach_sign_", "_foreach_sign" LIST, run_sign, OP_NO_GRAD, NULL},
    {"_foreach_sqrt _foreach_sqrt_", "_foreach_sqrt" LIST, run_sqrt, 0, NULL},
    {"_foreach_tanh _foreach_tanh_", "_foreach_tanh" LIST, run_tanh, 0, NULL},
    {"_foreach_sigmoid _foreach_sigmoid_", "_foreach_sigmoid" LIST, run_sigmoid, 0, NULL},
    {"_foreach_reciprocal _foreach_reciprocal_", "_foreach_reciprocal" LIST, run_reciprocal, 0,
     NULL},
    {"_foreach_add _foreach_add_", "_foreach_add" ALPHA, run_add, 0, NULL},
    {"_foreach_sub _foreach_sub_", "_foreach_sub" ALPHA, run_sub, 0, NULL},
    {"_foreach_mul _foreach_mul_", "_foreach_mul" PAIR, run_mul, 0, NULL},
    {"_foreach_div _foreach_div_", "_foreach_div" PAIR, run_div, 0, NULL},
    {"_foreach_pow _foreach_pow_",
     "_foreach_pow" PAIR "\n"
     "_foreach_pow(number input|self, Tensor[] other|exponent)",
     run_pow, 0, "each to a power, or a number to the power of each"},
    {"_foreach_maximum _foreach_maximum_", "_foreach_maximum" PAIR, run_maximum, 0, NULL},
    {"_foreach_minimum _foreach_minimum_", "_foreach_minimum" PAIR, run_minimum, 0, NULL},
    {"_foreach_copy _foreach_copy_",
     "_foreach_copy(Tensor[] input|self, any other|src, bool non_blocking=False)", run_copy, 0,
     NULL},
    {"_foreach_acos _foreach_acos_", "_foreach_acos" LIST, run_each_acos, 0, NULL},
    {"_foreach_asin _foreach_asin_", "_foreach_asin" LIST, run_each_asin, 0, NULL},
    {"_foreach_atan _foreach_atan_", "_foreach_atan" LIST, run_each_atan, 0, NULL},
    {"_foreach_ceil _foreach_ceil_", "_foreach_ceil" LIST, run_each_ceil, OP_EXACT, NULL},
    {"_foreach_cosh _foreach_cosh_", "_foreach_cosh" LIST, run_each_cosh, 0, NULL},
    {"_foreach_erf _foreach_erf_", "_foreach_erf" LIST, run_each_erf, 0, NULL},
    {"_foreach_erfc _foreach_erfc_", "_foreach_erfc" LIST, run_each_erfc, 0, NULL},
    {"_foreach_expm1 _foreach_expm1_", "_foreach_expm1" LIST, run_each_expm1, 0, NULL},
    {"_foreach_floor _foreach_floor_", "_foreach_floor" LIST, run_each_floor, OP_EXACT, NULL},
    {"_foreach_frac _foreach_frac_", "_foreach_frac" LIST, run_each_frac, OP_EXACT, NULL},
    {"_foreach_lgamma _foreach_lgamma_", "_foreach_lgamma" LIST, run_each_lgamma, 0, NULL},
    {"_foreach_log10 _foreach_log10_", "_foreach_log10" LIST, run_each_log10, 0, NULL},
    {"_foreach_log1p _foreach_log1p_", "_foreach_log1p" LIST, run_each_log1p, 0, NULL},
    {"_foreach_log2 _foreach_log2_", "_foreach_log2" LIST, run_each_log2, 0, NULL},
    {"_foreach_round _foreach_round_", "_foreach_round(Tensor[] input|self, *, int decimals=0)",
     run_each_round, OP_EXACT, NULL},
    {"_foreach_sinh _foreach_sinh_", "_foreach_sinh" LIST, run_each_sinh, 0, NULL},
    {"_foreach_sin _foreach_sin_", "_foreach_sin" LIST, run_each_sin, 0, NULL},
    {"_foreach_cos _foreach_cos_", "_foreach_cos" LIST, run_each_cos, 0, NULL},
    {"_foreach_tan _foreach_tan_", "_foreach_tan" LIST, run_each_tan, 0, NULL},
    {"_foreach_trunc _foreach_trunc_", "_foreach_trunc" LIST, run_each_trunc, OP_EXACT, NULL},
    {"_foreach_rsqrt _foreach_rsqrt_", "_foreach_rsqrt" LIST, run_each_rsqrt, 0, NULL},
    {"_foreach_max", "_foreach_max" LIST, run_max, OP_DECISION, "the largest element of each"},
    {"_foreach_clone", "_foreach_clone" LIST, run_clone, OP_EXACT, NULL},
    {"_foreach_clamp_min _foreach_clamp_min_", "_foreach_clamp_min" PAIR, run_maximum, OP_EXACT,
     NULL},
    {"_foreach_clamp_max _foreach_clamp_max_", "_foreach_clamp_max" PAIR, run_minimum, OP_EXACT,
     NULL},
    {"_foreach_powsum", "_foreach_powsum(Tensor[] input|self, number ord=2, dtype? dtype=None)",
     run_powsum, OP_COMPOSITE, "the sum of |x|^ord of each"},
    {"_foreach_mm", "_foreach_mm(Tensor[] input|self, Tensor[] other|mat2)", run_mm, OP_BILINEAR,
     NULL},
    {"_foreach_addcmul _foreach_addcmul_", "_foreach_addcmul" SUM, run_addcmul, 0, NULL},
    {"_foreach_addcdiv _foreach_addcdiv_", "_foreach_addcdiv" SUM, run_addcdiv, 0, NULL},
    {"_foreach_lerp _foreach_lerp_",
     "_foreach_lerp(Tensor[] input|self, Tensor[] other|tensors1|end, any weight|weights)",
     run_lerp, 0, NULL},
    {0},
};
