/* Elementwise operators over lists of tensors: one result for each. */
#include "exec/op/op.h"

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
RUN(pow, each_pair, v_pow)
RUN(maximum, each_pair, v_maximum)
RUN(minimum, each_pair, v_minimum)
RUN(copy, each_pair, copy)
RUN(addcmul, each_sum, v_mul)
RUN(addcdiv, each_sum, v_div)

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
    {"_foreach_pow _foreach_pow_", "_foreach_pow" PAIR, run_pow, 0, NULL},
    {"_foreach_maximum _foreach_maximum_", "_foreach_maximum" PAIR, run_maximum, 0, NULL},
    {"_foreach_minimum _foreach_minimum_", "_foreach_minimum" PAIR, run_minimum, 0, NULL},
    {"_foreach_copy _foreach_copy_", "_foreach_copy(Tensor[] input|self, any other|src)", run_copy,
     0, NULL},
    {"_foreach_addcmul _foreach_addcmul_", "_foreach_addcmul" SUM, run_addcmul, 0, NULL},
    {"_foreach_addcdiv _foreach_addcdiv_", "_foreach_addcdiv" SUM, run_addcdiv, 0, NULL},
    {"_foreach_lerp _foreach_lerp_",
     "_foreach_lerp(Tensor[] input|self, Tensor[] other|tensors1|end, any weight|weights)",
     run_lerp, 0, NULL},
    {0},
};
