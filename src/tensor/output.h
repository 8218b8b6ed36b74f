/* The elements of a tensor, written to a file. */
#ifndef TENSOR_OUTPUT_H
#define TENSOR_OUTPUT_H

#include "base/output.h"
#include "plumb/tensor.h"

/* Writes the elements in C order, packed, little-endian; strided tensors are gathered in pieces. */
enum plumb_code tensor_output(struct output *out, const struct plumb_tensor *tensor,
                              struct plumb_error *err);

#endif
