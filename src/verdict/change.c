/* A call with other values in it. */
#include "verdict/change.h"

static bool change_arg(struct arena *arena, change_fn *change, void *context, const char *name,
                       const struct plumb_arg *from, struct plumb_arg *to)
{
    if (from->kind != PLUMB_ARG_LIST)
        return change(context, name, from, to);
    struct plumb_arg *items = arena_array(arena, from->n_items, sizeof *items);
    bool fine = items != NULL;
    for (size_t k = 0; fine && k < from->n_items; k++)
        fine = change_arg(arena, change, context, name, &from->items[k], &items[k]);
    *to = *from;
    to->items = items;
    return fine;
}

bool change_call(struct arena *arena, change_fn *change, void *context, struct plumb_call *call)
{
    struct plumb_arg *args = arena_array(arena, call->n_args, sizeof *args);
    struct plumb_kwarg *kwargs = arena_array(arena, call->n_kwargs, sizeof *kwargs);
    bool fine = args && kwargs;
    for (size_t k = 0; fine && k < call->n_args; k++)
        fine = change_arg(arena, change, context, "", &call->args[k], &args[k]);
    for (size_t k = 0; fine && k < call->n_kwargs; k++) {
        kwargs[k].name = call->kwargs[k].name;
        fine = change_arg(arena, change, context, kwargs[k].name, &call->kwargs[k].value,
                          &kwargs[k].value);
    }
    call->args = args;
    call->kwargs = kwargs;
    return fine;
}
