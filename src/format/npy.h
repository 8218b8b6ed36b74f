/* The header of a .npy array, for .npy files and the members of .npz archives. */
#ifndef FORMAT_NPY_H
#define FORMAT_NPY_H

#include "plumb/tensor.h"

struct npy_header {
    enum plumb_dtype dtype;
    bool swap;    /* stored in the byte order that is not this machine's */
    bool fortran; /* the first index varies fastest */
    unsigned ndim;
    int64_t shape[PLUMB_MAX_RANK];
    uint64_t data_offset; /* of the first element, from the start of the array's bytes */
};

/* Reads the header at the start of size bytes, which need not reach beyond it: whether the elements
 * fit is for the caller to check. The shape is one that plumb_tensor_init takes. Byte positions in
 * err count from data. Types plumb does not read are PLUMB_E_UNSUPPORTED, and named. */
enum plumb_code npy_parse(const uint8_t *data, uint64_t size, struct npy_header *out,
                          struct plumb_error *err);

/* Strides, in elements, of a Fortran-order array of that shape. */
void npy_fortran_strides(unsigned ndim, const int64_t *shape, int64_t *stride);

#endif
