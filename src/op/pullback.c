/* Backward operators under names of their own (gelu_backward, ...): what a gradient of the output
 * is worth to the input, by the tape of the forward operator. */
#include "op/elem.h"

#include <string.h>

void elem_pullback(struct op *o, void (*forward)(struct op *o), const char *const *inputs)
{
    struct val *grad = arg_tensor(o, "grad_output"), *start = o->tape;
    struct val *in[2] = {NULL, NULL};
    bool needed[2] = {false, false};
    for (unsigned v = 0; v < 2 && inputs[v]; v++) {
        in[v] = arg_tensor(o, inputs[v]);
        if (!in[v] || !in[v]->f) {
            op_fail(o, PLUMB_E_ARG, "%s: needs floating-point numbers", o->call->name);
            return;
        }
        needed[v] = in[v]->needs_grad;
        in[v]->needs_grad = true;
    }
    forward(o);
    if (o->failed || !grad)
        return;
    const struct val *out = o->outputs[o->result->n_outputs = 0];
    if (!grad->f || grad->count != out->count) {
        op_fail(o, PLUMB_E_ARG, "%s: the gradient has %lld elements, the output %lld",
                o->call->name, (long long)grad->count, (long long)out->count);
        return;
    }
    for (struct val *x = o->tape; x != start && !o->failed; x = x->earlier) {
        if (x == out && out->count)
            memcpy(val_grad(o, x), grad->f, (size_t)out->count * sizeof *grad->f);
        if (x->grad)
            x->backward(o, x);
    }
    o->tape = start;
    for (unsigned v = 0; v < 2 && inputs[v]; v++) {
        struct val *result = val_like(o, in[v], in[v]->dtype);
        if (result && in[v]->grad)
            memcpy(result->f, in[v]->grad, (size_t)result->count * sizeof *result->f);
        in[v]->grad = NULL;
        in[v]->needs_grad = needed[v];
        op_return(o, result);
    }
}
