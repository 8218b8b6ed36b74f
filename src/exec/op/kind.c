/* What a message calls each kind of argument. */
#include "plumb/op.h"

const char *plumb_arg_kind_text(enum plumb_arg_kind kind)
{
    static const char *const text[] = {
        [PLUMB_ARG_NONE] = "None",
        [PLUMB_ARG_TENSOR] = "a tensor",
        [PLUMB_ARG_BOOL] = "a bool",
        [PLUMB_ARG_INT] = "an int",
        [PLUMB_ARG_FLOAT] = "a float",
        [PLUMB_ARG_TEXT] = "a str",
        [PLUMB_ARG_DTYPE] = "a dtype",
        [PLUMB_ARG_LIST] = "a list",
        [PLUMB_ARG_SLICE] = "a slice",
        [PLUMB_ARG_ELLIPSIS] = "an ellipsis",
        [PLUMB_ARG_DEVICE] = "a device",
        [PLUMB_ARG_OTHER] = "an object of unknown type",
        [PLUMB_ARG_COMPLEX] = "a complex number",
    };
    return text[kind];
}
