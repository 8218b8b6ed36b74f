/* Calls as people read them: shapes and types as Python shows them, numbers as its repr. */
#define _GNU_SOURCE
#include "verdict/spell.h"

#include "base/number.h"

#include <inttypes.h>
#include <math.h>

void spell_shape(struct buf *out, const struct plumb_tensor *tensor)
{
    buf_text(out, "(");
    for (unsigned k = 0; k < tensor->rank; k++)
        buf_printf(out, "%s%" PRId64, k ? ", " : "", tensor->shape[k]);
    buf_text(out, tensor->rank == 1 ? ",)" : ")");
}

void spell_tensor(struct buf *out, const struct plumb_tensor *tensor)
{
    spell_shape(out, tensor);
    buf_printf(out, ":torch.%s", plumb_dtype_info(tensor->dtype)->name);
}

void spell_number(struct buf *out, double value)
{
    char text[NUMBER_BYTES];
    if (isnan(value))
        buf_text(out, "nan");
    else
        buf_append(out, text, number_exact(value, true, text));
}

void spell_arg(struct buf *out, const struct plumb_arg *arg)
{
    switch (arg->kind) {
    case PLUMB_ARG_TENSOR:
        spell_tensor(out, arg->tensor);
        break;
    case PLUMB_ARG_BOOL:
        buf_text(out, arg->integer ? "True" : "False");
        break;
    case PLUMB_ARG_INT:
        buf_printf(out, "%" PRId64, arg->integer);
        break;
    case PLUMB_ARG_FLOAT:
        spell_number(out, arg->number);
        break;
    case PLUMB_ARG_LIST:
        buf_text(out, "[");
        for (size_t k = 0; k < arg->n_items; k++) {
            buf_text(out, k ? ", " : "");
            spell_arg(out, &arg->items[k]);
        }
        buf_text(out, "]");
        break;
    case PLUMB_ARG_NONE:
        buf_text(out, "None");
        break;
    default:
        buf_text(out, arg->text ? arg->text : "?");
    }
}

void spell_json_number(struct buf *out, double value)
{
    if (isfinite(value)) {
        spell_number(out, value);
        return;
    }
    buf_text(out, "\"");
    spell_number(out, value);
    buf_text(out, "\"");
}

void spell_place(struct buf *out, const struct plumb_tensor *tensor, uint64_t number)
{
    uint64_t element = number / plumb_dtype_parts(tensor->dtype), left = tensor->count;
    buf_text(out, "[");
    for (unsigned k = 0; k < tensor->rank; k++) {
        left /= (uint64_t)tensor->shape[k];
        buf_printf(out, "%s%" PRIu64, k ? ", " : "", element / left);
        element %= left;
    }
    buf_text(out, "]");
}

static void visit_arg(const struct plumb_arg *arg,
                      void (*visit)(void *context, const struct plumb_tensor *tensor),
                      void *context)
{
    if (arg->kind == PLUMB_ARG_TENSOR)
        visit(context, arg->tensor);
    for (size_t k = 0; arg->kind == PLUMB_ARG_LIST && k < arg->n_items; k++)
        visit_arg(&arg->items[k], visit, context);
}

void call_tensors(const struct plumb_call *call,
                  void (*visit)(void *context, const struct plumb_tensor *tensor), void *context)
{
    for (size_t k = 0; k < call->n_args; k++)
        visit_arg(&call->args[k], visit, context);
    for (size_t k = 0; k < call->n_kwargs; k++)
        visit_arg(&call->kwargs[k].value, visit, context);
}
