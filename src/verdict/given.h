/* What a recorded call gave, as the result of running it. */
#ifndef VERDICT_GIVEN_H
#define VERDICT_GIVEN_H

#include "exec/values/values.h"
#include "plumb/op.h"

/* Loads what call i of the file gave; call is that call. Recorded gradients are put beside the
 * tensors that they belong to: a dump has one for each tensor, or one for each positional
 * argument. All memory is from the arena; there is nothing to destroy. A tensor whose values
 * were not recorded is of kind other, and its text says why. */
enum plumb_code given_result(const struct case_file *file, const struct check_case *from,
                             const struct plumb_call *call, const struct generate_options *options,
                             struct arena *arena, struct plumb_result *out,
                             struct plumb_error *err);

/* Where the gradient of a call's tensor, counted as in a result, stands among the n that were
 * recorded; SIZE_MAX: it is not among them, or that cannot be told. */
size_t given_gradient(const struct plumb_call *call, size_t n, size_t tensor);

#endif
