/* Recorded outputs and gradients in the places where an operator would have put them. */
#include "verdict/given.h"

static size_t count_leaves(const struct plumb_arg *arg)
{
    size_t n = arg->kind == PLUMB_ARG_TENSOR;
    for (size_t k = 0; arg->kind == PLUMB_ARG_LIST && k < arg->n_items; k++)
        n += count_leaves(&arg->items[k]);
    return n;
}

/* Puts gradients beside the tensors. */
static enum plumb_code place_grads(const struct plumb_call *call, struct plumb_arg *given, size_t n,
                                   struct arena *arena, struct plumb_result *out,
                                   struct plumb_error *err)
{
    size_t leaves = 0;
    for (size_t k = 0; k < call->n_args; k++)
        leaves += count_leaves(&call->args[k]);
    out->n_arg_grads = leaves;
    for (size_t k = 0; k < call->n_kwargs; k++)
        leaves += count_leaves(&call->kwargs[k].value);
    out->n_grads = leaves;
    out->grads = arena_array(arena, leaves + 1, sizeof *out->grads);
    if (!out->grads)
        return plumb_no_memory(err);
    for (size_t k = 0; k < leaves; k++)
        out->grads[k] = (struct plumb_arg){.kind = PLUMB_ARG_NONE};
    if (n == out->n_arg_grads || n == leaves) {
        for (size_t k = 0; k < n; k++)
            out->grads[k] = given[k];
        return PLUMB_OK;
    }
    for (size_t k = 0, leaf = 0; n == call->n_args && k < n; k++) {
        if (call->args[k].kind == PLUMB_ARG_TENSOR)
            out->grads[leaf] = given[k];
        leaf += count_leaves(&call->args[k]);
    }
    for (size_t k = 0; n != call->n_args && n > 0 && k < leaves; k++)
        out->grads[k] = (struct plumb_arg){
            .kind = PLUMB_ARG_OTHER,
            .text = "which tensors the recorded gradients belong to cannot be told"};
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
