/* Operators: plumb's own implementation of what PyTorch programs call, forward and backward.
 *
 * A call (plumb/call.h) can be computed in the recorded types, or raised: all floating-point values
 * and results in float64 (float64 itself is computed in extended precision and rounded once), which
 * is the reference that devices are judged by.
 *
 * All functions are thread-safe; the same call may run on several threads at once. */
#ifndef PLUMB_OP_H
#define PLUMB_OP_H

#include "plumb/call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "a tensor", "an int", "None", ... */
const char *plumb_arg_kind_text(enum plumb_arg_kind kind);

enum plumb_precision {
    PLUMB_OWN,    /* float16 and bfloat16 are computed in float32 and rounded when stored */
    PLUMB_RAISED, /* the reference */
};

struct plumb_result {
    struct plumb_arg *outputs;
    size_t n_outputs;
    bool tuple;              /* a tuple or list came back, even if of one element */
    struct plumb_arg *grads; /* one for each tensor in args, depth first, then in kwargs; kind none
                                where there is no gradient */
    size_t n_grads, n_arg_grads; /* the first n_arg_grads belong to args */
    void *memory;                /* owns all of it */
    struct plumb_arg *written; /* as grads: tensors that the call changed and does not return, such
                                  as running statistics; NULL when there are none */
    const char *note;          /* what is to be known of how it was computed, or NULL */
    int64_t terms, grad_terms; /* how many numbers the longest sum on the way to an output, or to a
                                  gradient, adds up; at least 1 */
};

/* Runs a call. PLUMB_E_UNSUPPORTED: no such operator, or not with these arguments; PLUMB_E_ARG:
 * the arguments contradict each other (shapes, types, ranges); messages say which. out is always
 * safe to destroy. Nothing of the call is kept, but results may alias its tensors' data. */
enum plumb_code plumb_op_run(const struct plumb_call *call, enum plumb_precision precision,
                             struct plumb_result *out, struct plumb_error *err);
void plumb_result_destroy(struct plumb_result *result);

/* Operators are in a library of their own, which is opened when the first one is asked for. 0, or
 * why it is not there: nothing can be run then, and plumb_op_find and plumb_op_at find nothing. */
enum plumb_code plumb_op_ready(struct plumb_error *err);

/* What the results of an operator are, for the error that is expected of them. */
enum plumb_op_class {
    PLUMB_OP_EXACT,    /* elements of its inputs, whole numbers: no rounding */
    PLUMB_OP_DECISION, /* which elements are taken, or which number is nearest: exact, but equals,
                          and what rounding makes equal, may be decided either way */
    PLUMB_OP_ELEMENTWISE, /* a function of single elements */
    PLUMB_OP_LINEAR,      /* weighted sums of one input */
    PLUMB_OP_BILINEAR,    /* sums of products of two inputs */
    PLUMB_OP_COMPOSITE,   /* several of these */
    PLUMB_OP_RANDOM,
};

struct plumb_op {
    const char *names;  /* separated by blanks, the usual one first */
    const char *schema; /* one signature a line: "add(Tensor input, Operand other, *, number
                           alpha=1)" */
    const char *family; /* "unary", "norm", ... */
    const char *about;  /* one line: the formula or a remark; may be NULL */
    const char *types; /* what it takes: "floats", "floats, integers, bool, complex numbers", ... */
    bool backward;     /* has a gradient */
    enum plumb_op_class results;
    bool exact;  /* nothing is rounded on the way to them: exact ones, and decisions about arguments
                  */
    bool closed; /* takes plumb_noise.squares */
    bool random; /* results are random: run, but not comparable value by value */
};

/* The operator behind a name; prefix may be NULL (any). NULL when plumb has none. */
const struct plumb_op *plumb_op_find(const char *prefix, const char *name);

/* The operator that runs a call. Where an argument is complex, a name may mean another one than for
 * real numbers: abs takes a root then. */
const struct plumb_op *plumb_op_of(const struct plumb_call *call);

/* All of them: i from 0 until NULL comes back. */
const struct plumb_op *plumb_op_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
