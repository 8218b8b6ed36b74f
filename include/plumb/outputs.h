/* Outputs of a call against those of a reference, output by output and number by number: what is
 * close enough, which special values agree, and what else may be wrong with an output.
 *
 * Thread-safe; nothing of the arguments is kept. */
#ifndef PLUMB_OUTPUTS_H
#define PLUMB_OUTPUTS_H

#include "plumb/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum plumb_fault {
    PLUMB_FAULT_NONE,
    PLUMB_FAULT_NOT_CLOSE,
    PLUMB_FAULT_SPECIAL, /* NaN or infinity on one side only, or opposite infinities */
    PLUMB_FAULT_SHAPE,
    PLUMB_FAULT_DTYPE,
    PLUMB_FAULT_MISSING, /* an output is there on one side only */
    PLUMB_FAULT_COUNT,   /* the sides have different numbers of outputs */
    PLUMB_FAULT_INPUT,   /* the kernel wrote into what it was only to read */
    PLUMB_FAULTS
};

/* "not_close", "special_value_mismatch", "shape_mismatch", "dtype_mismatch", "missing_output",
 * "output_count_mismatch", "input_changed"; "" for none. */
const char *plumb_fault_name(enum plumb_fault fault);

/* Of the first output that fails; of all outputs when none does. Largest errors are over pairs of
 * finite values. */
struct plumb_outputs_verdict {
    enum plumb_fault fault;
    size_t output;           /* lists opened */
    double rtol, atol;       /* as applied */
    double max_abs, max_rel; /* |a-b|, and |a-b| / (|b| + 1e-12) */
    double max_ulp;          /* in units of the output's type; NaN for integers */
    uint64_t index;          /* special: of the first such number, in C order */
    double actual, expected; /* special: the pair */
    char message[512];       /* what is wrong, one line; empty when nothing is */
};

/* Compares: |a-b| <= atol + rtol*|b| everywhere, b the reference; integers and bool exactly.
 * raised: the reference is float64 whatever the type of the outputs, and a number that the output's
 * type cannot hold counts as its infinity. Fails for packed 4-bit types (PLUMB_E_UNSUPPORTED) and
 * when memory runs out. */
enum plumb_code plumb_outputs_compare(const struct plumb_arg *outputs, size_t n_outputs,
                                      const struct plumb_arg *reference, size_t n_reference,
                                      bool raised, double rtol, double atol,
                                      struct plumb_outputs_verdict *out, struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
