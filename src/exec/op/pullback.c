/* A stretch of the tape, walked back at once: gradients as results of an operator. */
#include "exec/op/pullback.h"

#include "exec/op/elem.h"

#include <string.h>

bool pull_begin(struct op *o, struct pullback *p, unsigned n, struct val *const *in)
{
    *p = (struct pullback){.start = o->tape, .n = n};
    for (unsigned k = 0; k < n; k++) {
        if (!in[k])
            continue;
        if (!in[k]->f) {
            op_fail(o, PLUMB_E_ARG, "%s: needs floating-point numbers", o->call->name);
            return false;
        }
        p->in[k] = in[k];
        p->needed[k] = in[k]->needs_grad;
        in[k]->needs_grad = true;
    }
    return !o->failed;
}

static void start_from(struct op *o, struct val *out, const struct val *grad)
{
    if (!grad->f || grad->count != out->count) {
        op_fail(o, PLUMB_E_ARG, "%s: the gradient has %lld elements, the output %lld",
                o->call->name, (long long)grad->count, (long long)out->count);
        return;
    }
    real *to = val_grad(o, out);
    for (int64_t k = 0; to && k < out->count; k++)
        to[k] += grad->f[k];
}

bool pull_end(struct op *o, struct pullback *p, unsigned n_outputs, struct val *const *outputs,
              struct val *const *grads, struct val **to)
{
    for (unsigned k = 0; k < n_outputs && !o->failed; k++)
        if (outputs[k] && grads[k])
            start_from(o, outputs[k], grads[k]);
    for (struct val *x = o->tape; x != p->start && !o->failed; x = x->earlier)
        if (x->grad)
            x->backward(o, x);
    o->tape = p->start;
    for (unsigned k = 0; k < p->n; k++) {
        struct val *in = p->in[k];
        to[k] = in ? val_like(o, in, in->dtype) : NULL;
        if (!in)
            continue;
        if (to[k] && in->grad && in->count)
            memcpy(to[k]->f, in->grad, (size_t)in->count * sizeof *in->grad);
        in->grad = NULL;
        in->needs_grad = p->needed[k];
    }
    return !o->failed;
}

void elem_pullback(struct op *o, void (*forward)(struct op *o), const char *const *inputs)
{
    struct val *grad = arg_tensor(o, "grad_output"), *in[2], *to[2];
    struct pullback p;
    unsigned n = 0;
    for (; n < 2 && inputs[n]; n++)
        in[n] = arg_tensor(o, inputs[n]);
    if (!pull_begin(o, &p, n, in))
        return;
    forward(o);
    if (o->failed || !grad)
        return;
    o->result->n_outputs = 0;
    if (!pull_end(o, &p, 1, &o->outputs[0], &grad, to))
        return;
    for (unsigned k = 0; k < n; k++)
        op_return(o, to[k]);
}
