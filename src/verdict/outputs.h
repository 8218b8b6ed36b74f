/* Outputs of a call against those of a reference, with room for what rounding explains. */
#ifndef VERDICT_OUTPUTS_H
#define VERDICT_OUTPUTS_H

#include "base/buf.h"
#include "metric/kernel.h"
#include "plumb/outputs.h"
#include "verdict/noise.h"

/* What is compared with what, and how: see plumb_outputs_compare. */
struct outputs_sides {
    const struct plumb_arg *outputs, *reference;
    size_t n_outputs, n_reference;
    bool raised;
    double rtol, atol;
};

/* The comparison, with room for noise, or NULL for none. */
enum plumb_code outputs_compare(const struct outputs_sides *sides, const struct noise *noise,
                                struct plumb_outputs_verdict *out, struct plumb_error *err);

/* The same, where results that are not close are looked at again with room for noise. n_own: so
 * many of the outputs, from the first on, are those of the call; what follows has no noise. */
enum plumb_code outputs_compare_call(const struct outputs_sides *sides,
                                     const struct plumb_call *call, size_t n_own,
                                     struct plumb_outputs_verdict *out, struct plumb_error *err);

/* ---- One pair of tensors (outputs_pair.c) ---------------------------------------------------- */

struct outputs_pair {
    const struct plumb_tensor *a, *b; /* b is the reference */
    const double *noise;              /* NULL, or by how much each element may be off besides */
    bool raised;
    struct close_limits limits;
    struct plumb_outputs_verdict *out;
    bool close;
};

enum plumb_code outputs_pair_compare(struct outputs_pair *pair, struct plumb_error *err);

/* Puts a fault into the verdict; frees the text. */
void outputs_say(struct plumb_outputs_verdict *out, enum plumb_fault fault, struct buf *text);

#endif
