/* A tensor is a view: somebody else's bytes, with a type, a shape and strides. */
#ifndef PLUMB_TENSOR_H
#define PLUMB_TENSOR_H

#include "plumb/dtype.h"
#include "plumb/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUMB_MAX_RANK 64

struct plumb_tensor {
    enum plumb_dtype dtype;
    bool swap;      /* elements are stored in the byte order that is not this machine's */
    unsigned rank;  /* 0 for a scalar, which has one element */
    uint64_t count; /* elements: the product of shape */
    int64_t shape[PLUMB_MAX_RANK];
    int64_t stride[PLUMB_MAX_RANK]; /* in elements; may be 0 or negative; not used when dense */
    bool dense;                     /* C order without gaps: strides need not be looked at */
    const void *data;               /* first element; no alignment is promised */
};

/* Sets dtype, shape, count and C-order strides; data becomes NULL. Refuses (PLUMB_E_FORMAT)
 * negative sizes, too many dimensions, and shapes whose byte size does not fit in 63 bits. */
enum plumb_code plumb_tensor_init(struct plumb_tensor *tensor, enum plumb_dtype dtype,
                                  unsigned rank, const int64_t *shape, struct plumb_error *err);

/* Replaces the strides. Refuses (PLUMB_E_FORMAT) a view that, starting at element `offset` of a
 * storage of `available` elements, would leave it. Sets dense. Call before data is set. */
enum plumb_code plumb_tensor_set_strides(struct plumb_tensor *tensor, const int64_t *stride,
                                         uint64_t offset, uint64_t available,
                                         struct plumb_error *err);

/* Bytes of the dense form. */
uint64_t plumb_tensor_bytes(const struct plumb_tensor *tensor);

/* Converts elements [first, first+count) in C order to float64 (complex: two numbers an
 * element). */
void plumb_tensor_to_f64(const struct plumb_tensor *tensor, uint64_t first, size_t count,
                         double *out);

/* Are all elements from `first` on zero? */
bool plumb_tensor_is_zero(const struct plumb_tensor *tensor, uint64_t first);

/* Copies elements [first, first+count) in C order as stored, packed without gaps. Packed 4-bit
 * types are always dense; there, first must be even. */
void plumb_tensor_gather(const struct plumb_tensor *tensor, uint64_t first, size_t count,
                         void *out);

/* "[2, 3]" into text, cut to size; returns text. The second writes any shape. */
const char *plumb_shape_text(const struct plumb_tensor *tensor, char *text, size_t size);
const char *plumb_dims_text(unsigned rank, const int64_t *shape, char *text, size_t size);

/* True when the shapes are equal once dimensions of size 1 are dropped. */
bool plumb_shape_equivalent(const struct plumb_tensor *a, const struct plumb_tensor *b);

#ifdef __cplusplus
}
#endif
#endif
