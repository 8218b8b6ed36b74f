/* A call: the name of an operator with its arguments, as a dump.json records it. Plain data, which
 * owns nothing that its pointers lead to. */
#ifndef PLUMB_CALL_H
#define PLUMB_CALL_H

#include "plumb/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum plumb_arg_kind {
    PLUMB_ARG_NONE,
    PLUMB_ARG_TENSOR,
    PLUMB_ARG_BOOL,
    PLUMB_ARG_INT,
    PLUMB_ARG_FLOAT,
    PLUMB_ARG_TEXT,
    PLUMB_ARG_DTYPE,
    PLUMB_ARG_LIST,  /* list, tuple or torch.Size */
    PLUMB_ARG_SLICE, /* items: start, stop, step, each an integer or none */
    PLUMB_ARG_ELLIPSIS,
    PLUMB_ARG_DEVICE, /* text: "npu:0" */
    PLUMB_ARG_OTHER,  /* recorded, but not what it was: an empty object, a process group, ... */
    PLUMB_ARG_COMPLEX,
};

/* One argument or result. Only the fields of its kind mean something. */
struct plumb_arg {
    enum plumb_arg_kind kind;
    bool requires_grad;                /* tensor */
    const struct plumb_tensor *tensor; /* tensor */
    int64_t integer;                   /* int, bool */
    double number;                     /* float, and the real part of complex */
    double imaginary;                  /* complex */
    const char *text;                  /* text, device, other */
    enum plumb_dtype dtype;            /* dtype */
    const struct plumb_arg *items;     /* list, slice */
    size_t n_items;
};

struct plumb_kwarg {
    const char *name;
    struct plumb_arg value;
};

/* Where operators that drop elements at random take their 32-bit draws from. */
struct plumb_draws {
    uint32_t (*next)(void *state);
    void *state;
};

enum plumb_stored {
    PLUMB_STORED_ALL,
    PLUMB_STORED_SINGLE, /* single numbers: the sum, mean or scale of a row */
    PLUMB_STORED_ARRAYS, /* all but these */
    PLUMB_STORED_NODES,  /* whole tensors between two operators, not what is inside of one */
    PLUMB_STORED_BOTH,   /* these and single numbers, not arrays inside of an operator */
    PLUMB_STORED_BACK,   /* the same, single numbers only on the way back */
};

/* Computing a call as if with errors, to see what they do to its results. */
struct plumb_noise {
    double relative; /* every floating-point input, and every result on the way to an output, is
                        multiplied by 1 + r, r uniform in [-relative, relative]; 0: none */
    uint64_t seed;   /* of the r */
    enum plumb_dtype store;   /* to which results on the way are rounded; PLUMB_DTYPE_COUNT: none */
    enum plumb_stored stored; /* which of them */
    unsigned input_bits;      /* inputs keep that many significant bits; 0: all */
    bool input_cut;           /* and the others are cut off, not rounded */
    unsigned sum_bits; /* sums keep that many significant bits from one addition to the next, one
                          term after the other; 0: all */
    bool grads_only;   /* arguments are left alone, gradients of the outputs are not: what an
                                 exact operator decides about its arguments stays as it is */
    /* Instead of all these: results are the root mean square changes that r uniform in [-1, 1]
     * would make, from squared inputs. Operators that are no sums of products (plumb_op.closed)
     * refuse: PLUMB_E_UNSUPPORTED. */
    bool squares;
};

struct plumb_call {
    const char *prefix; /* "Functional", "Tensor", "Torch", "Aten", "NPU", "VF" */
    const char *name;   /* "layer_norm", "linalg.norm" */
    const struct plumb_arg *args;
    size_t n_args;
    const struct plumb_kwarg *kwargs;
    size_t n_kwargs;
    const struct plumb_tensor *const *grads; /* gradients of the outputs, in their order; NULL where
                                                an output has none. No grads: forward only */
    size_t n_grads;
    const struct plumb_draws *draws; /* NULL: from a fixed seed */
    const struct plumb_noise *noise; /* NULL: as exactly as can be */
    size_t memory; /* what it may take, in bytes; 0: three quarters of what this process may */
    bool benchmark_forms; /* fused operators as their benchmark functions compute them, where those
                             depart from the documentation (attention's scale and bands, an
                             epsilon) */
};

#ifdef __cplusplus
}
#endif
#endif
