/* Operators whose results are drawn: known by name, so that a check says why there is nothing to
 * compare instead of not knowing them. */
#include "exec/op/op.h"

static void run_random(struct op *o)
{
    op_fail(o, PLUMB_E_UNSUPPORTED, "%s: the results are random, there is nothing to compare",
            o->call->name);
}

#define ALL "(any...? arguments)"
#define DRAWN(names, first, about)                                                                 \
    {                                                                                              \
        names, first ALL, run_random, OP_NO_GRAD | OP_RANDOM, about                                \
    }

const struct op_def op_random[] = {
    DRAWN("bernoulli bernoulli_", "bernoulli", "1 with a probability, else 0"),
    DRAWN("binomial", "binomial", "successes among a number of trials"),
    DRAWN("cauchy cauchy_", "cauchy", "from the Cauchy distribution"),
    DRAWN("exponential exponential_ npu_sim_exponential_", "exponential",
          "from the exponential distribution"),
    DRAWN("geometric geometric_", "geometric", "from the geometric distribution"),
    DRAWN("log_normal log_normal_", "log_normal", "exp of a normal number"),
    DRAWN("multinomial", "multinomial", "places drawn by their weights"),
    DRAWN("normal normal_ randn randn_like", "normal", "from the normal distribution"),
    DRAWN("poisson", "poisson", "from the Poisson distribution"),
    DRAWN("rand rand_like uniform uniform_", "rand", "evenly from an interval"),
    DRAWN("randint randint_like random random_", "randint", "integers evenly from a range"),
    DRAWN("randperm", "randperm", "a permutation"),
    DRAWN("gumbel_softmax", "gumbel_softmax", "softmax((x + Gumbel noise) / tau)"),
    DRAWN("fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d "
          "fractional_max_pool3d_with_indices",
          "fractional_max_pool2d", "maximum of windows at drawn places"),
    DRAWN("_fused_dropout _npu_dropout npu_dropout_with_add_softmax", "_fused_dropout",
          "dropout with a mask of the device"),
    DRAWN("npu_dropout_add_layer_norm dropout_add_layer_norm.npu_dropout_add_layer_norm",
          "npu_dropout_add_layer_norm", "layer_norm(dropout(x) + residual)"),
    DRAWN("npu_random_choice_with_mask", "npu_random_choice_with_mask", "places drawn of a mask"),
    DRAWN("npu_sub_sample", "npu_sub_sample", "labels drawn of many"),
    DRAWN("npu_top_k_top_p_sample", "npu_top_k_top_p_sample", "a token drawn of the likely ones"),
    {0},
};
