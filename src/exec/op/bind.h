/* Signatures, and fitting a call's arguments to them.
 *
 *     add(Tensor input, Operand other, *, number alpha=1)
 *     Functional.softmax(Tensor input, int? dim=None, int _stacklevel=3, dtype? dtype=None)
 *
 * A signature that starts with a prefix serves that prefix only. Types:
 *
 *     Tensor    a tensor                       Operand  a tensor or a number
 *     Tensor[]  a list of tensors              number   int, float, bool, or a 0-d tensor
 *     Tensor?[] a list of tensors or None
 *     int bool float str dtype                 float also takes an int, int also a bool
 *     int[]     a list of ints, or one int     int[2]   the same; one int stands for two
 *     int[]...  the rest of the positional arguments, or one list
 *     float[]   a list of numbers              bool[3]  the same, for flags
 *     any       whatever it is
 *
 * A type that ends in ? takes None. Parameters after * are given by name only. A parameter may
 * have several names: int dim|axis. A default is None, True, False, a number, 'text', or [1, 1].
 * `device`, `layout`, `pin_memory`, `memory_format`, `out`, `requires_grad` and names starting
 * with _ need not be listed: given by name, they are ignored. */
#ifndef OP_BIND_H
#define OP_BIND_H

#include "exec/op/op.h"

enum param_type {
    PARAM_TENSOR,
    PARAM_TENSORS,
    PARAM_OPERAND,
    PARAM_NUMBER,
    PARAM_INT,
    PARAM_BOOL,
    PARAM_FLOAT,
    PARAM_STR,
    PARAM_DTYPE,
    PARAM_INTS,
    PARAM_FLOATS,
    PARAM_ANY,
};

struct op_param {
    const char *names; /* "dim|axis", not terminated; */
    size_t names_length;
    enum param_type type;
    bool optional, rest, keyword_only;
    bool none_items;   /* Tensor?[] */
    unsigned expand;   /* int[2]: 2 */
    const char *given; /* default text or NULL, not terminated */
    size_t given_length;
};

enum { OP_MAX_PARAMS = 32 };

struct op_signature {
    size_t n;
    struct op_param params[OP_MAX_PARAMS];
};

/* A parameter's argument. */
struct op_bound {
    struct plumb_arg arg;          /* kind none: None */
    const struct plumb_arg *value; /* the call's own, or &arg for a default */
    enum op_part part;             /* of a number: what is taken of it */
};

/* Fits the call to the first signature of the schema that takes it. On failure says which argument
 * of the last signature does not fit. */
bool op_bind(struct op *o, const char *schema);

/* The parameter of that name; the number of parameters when there is none. */
size_t op_param_index(const struct op *o, const char *name);

/* The value of a tensor argument, the same one each time it is asked for. */
struct val *op_load(struct op *o, const struct plumb_arg *tensor);

/* The same, perhaps unread: see arg_unread(). */
struct val *op_load_unread(struct op *o, const struct plumb_arg *tensor);

/* A value of that tensor that is not read yet. */
struct val *val_unread(struct op *o, const struct plumb_tensor *tensor);

#endif
