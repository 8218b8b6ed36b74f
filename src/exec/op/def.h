/* A row of an operator table. */
#ifndef OP_DEF_H
#define OP_DEF_H

#include "base/arena.h"
#include "plumb/op.h"

struct op;

enum op_flag {
    OP_NO_GRAD = 1, /* results have no gradient */
    /* What its results are (enum plumb_op_class), where most of the family are something else. */
    OP_RANDOM = 2,
    OP_EXACT = 4,
    OP_DECISION = 8,
    OP_ELEMENTWISE = 16,
    OP_LINEAR = 32,
    OP_BILINEAR = 64,
    OP_COMPOSITE = 128,
    OP_COMPUTED = 256, /* of a decision: about numbers that it computes first */
    OP_COMPLEX = 512,  /* knows what to do with complex numbers */
};

struct op_def {
    const char *names;  /* "add add_ __add__": separated by blanks, the usual one first. A name may
                           be bound to a prefix: "Tensor.max"; Complex.NAME is what NAME means
                           where an argument is complex */
    const char *schema; /* one signature a line; see bind.h for the types */
    void (*run)(struct op *o);
    unsigned flags;
    const char *about; /* the formula or a remark, or NULL */
};

/* What each copy of the room offers to the registry. */
typedef enum plumb_code op_call_fn(size_t family, size_t def, const struct plumb_call *call,
                                   bool raised, struct arena *arena, struct plumb_result *result,
                                   struct plumb_error *err);
typedef const struct op_def *op_family_fn(size_t family); /* NULL behind the last */

extern op_call_fn op_call_f32, op_call_f64, op_call_f128;
#ifdef OP_HAVE_AVX2
extern op_call_fn op_call_f32_avx2, op_call_f64_avx2;
#endif
extern op_family_fn op_family_f64;

/* Whether an argument is complex, a number, a tensor or its type. */
bool op_call_is_complex(const struct plumb_call *call);

/* Sums of products of arguments, and nothing else: "input * weight + bias". NULL: it is no such
 * sum. */
typedef const char *op_form_fn(const struct op_def *def);
extern op_form_fn op_form_f64;

/* Whether an operator of real numbers can run on the parts of complex ones. */
typedef bool op_in_parts_fn(const struct op_def *def);
extern op_in_parts_fn op_in_parts_f64;

#endif
