/* The operators are a library of their own, libplumb-op.so: most of plumb's code, and no use to
 * whoever compares files. libplumb opens it when the first operator is asked for (open.c). It is
 * a private part of one build of plumb, so the two must be of the same version. */
#ifndef OP_LIBRARY_H
#define OP_LIBRARY_H

#include "plumb/op.h"

struct op_library {
    const char *version; /* PLUMB_VERSION */
    /* plumb_op_find, plumb_op_of, plumb_op_at and plumb_op_run. mask is that of plumb_cpu_mask. */
    const struct plumb_op *(*find)(const char *prefix, const char *name);
    const struct plumb_op *(*of)(const struct plumb_call *call);
    const struct plumb_op *(*at)(size_t i);
    enum plumb_code (*run)(const struct plumb_call *call, enum plumb_precision precision,
                           unsigned mask, struct plumb_result *out, struct plumb_error *err);
};

/* The one symbol that the library shows. */
extern const struct op_library plumb_operators;

#endif
