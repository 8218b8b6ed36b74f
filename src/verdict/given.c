/* Recorded outputs and gradients in the places where an operator would have put them. */
#include "verdict/given.h"

static size_t count_leaves(const struct plumb_arg *arg)
{
    size_t n = arg->kind == PLUMB_ARG_TENSOR;
    for (size_t k = 0; arg->kind == PLUMB_ARG_LIST && k < arg->n_items; k++)
        n += count_leaves(&arg->items[k]);
    return n;
}

struct leaves {
    size_t of_args, all;
};

static struct leaves leaves_of(const struct plumb_call *call)
{
    struct leaves n = {0};
    for (size_t k = 0; k < call->n_args; k++)
        n.of_args += count_leaves(&call->args[k]);
    n.all = n.of_args;
    for (size_t k = 0; k < call->n_kwargs; k++)
        n.all += count_leaves(&call->kwargs[k].value);
    return n;
}

size_t given_gradient(const struct plumb_call *call, size_t n, size_t tensor)
{
    const struct leaves leaves = leaves_of(call);
    if (n == leaves.of_args || n == leaves.all)
        return tensor < n ? tensor : SIZE_MAX;
    for (size_t k = 0, leaf = 0; n == call->n_args && k < n; k++) {
        if (call->args[k].kind == PLUMB_ARG_TENSOR && leaf == tensor)
            return k;
        leaf += count_leaves(&call->args[k]);
    }
    return SIZE_MAX;
}

/* Puts gradients beside the tensors. */
static enum plumb_code place_grads(const struct plumb_call *call, struct plumb_arg *given, size_t n,
                                   struct arena *arena, struct plumb_result *out,
                                   struct plumb_error *err)
{
    const struct leaves leaves = leaves_of(call);
    const bool known = n == leaves.of_args || n == leaves.all || n == call->n_args;
    struct plumb_arg none = {.kind = PLUMB_ARG_NONE};
    if (!known && n > 0) {
        none.kind = PLUMB_ARG_OTHER;
        none.text = "which tensors the recorded gradients belong to cannot be told";
    }
    out->n_arg_grads = leaves.of_args;
    out->n_grads = leaves.all;
    out->grads = arena_array(arena, leaves.all + 1, sizeof *out->grads);
    if (!out->grads)
        return plumb_no_memory(err);
    for (size_t k = 0; k < leaves.all; k++) {
        const size_t place = given_gradient(call, n, k);
        out->grads[k] = place != SIZE_MAX ? given[place] : none;
    }
    return PLUMB_OK;
}

enum plumb_code given_result(const struct case_file *file, const struct check_case *from,
                             const struct plumb_call *call, const struct generate_options *options,
                             struct arena *arena, struct plumb_result *out, struct plumb_error *err)
{
    struct case_results results;
    struct plumb_arg *grads = NULL;
    *out = (struct plumb_result){0};
    enum plumb_code code = case_parse_results(file, from->index, arena, &results, err);
    if (!code)
        code = recorded_args(from, "forward.output", results.outputs, results.n_outputs, options,
                             arena, &out->outputs, err);
    out->n_outputs = code ? 0 : results.n_outputs;
    if (!code)
        code = recorded_args(from, "backward.output", results.grads, results.n_grads, options,
                             arena, &grads, err);
    return code ? code : place_grads(call, grads, results.n_grads, arena, out, err);
}
