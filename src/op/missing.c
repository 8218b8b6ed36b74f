/* TEMPORARY while families are being written: empty tables that the real ones override. */
#include "op/families.h"
#include "op/op.h"
#define EMPTY(name)                                                                                \
    extern const struct op_def op_##name[];                                                        \
    __attribute__((weak)) const struct op_def op_##name[1] = {{0}};
OP_FAMILIES(EMPTY)
