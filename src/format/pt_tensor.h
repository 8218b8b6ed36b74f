/* The calls by which torch rebuilds tensors, read from a pickle. */
#ifndef FORMAT_PT_TENSOR_H
#define FORMAT_PT_TENSOR_H

#include "format/pickle.h"
#include "plumb/tensor.h"

struct pt_storage {
    enum plumb_dtype dtype; /* PLUMB_U8 for untyped storages */
    const char *key;        /* of the member that holds the bytes; not NUL-terminated */
    size_t key_length;
    uint64_t count; /* elements promised */
};

struct pt_tensor {
    enum plumb_dtype dtype;
    struct pt_storage storage;
    uint64_t start; /* element of the storage where the view begins */
    int8_t requires_grad;
    unsigned ndim;
    int64_t shape[PLUMB_MAX_RANK];
    int64_t stride[PLUMB_MAX_RANK];
};

/* Is the value a tensor, of whatever sort, or a storage on its own? */
bool pt_is_tensor(const struct pickle_value *value);

/* Reads such a value; a bare storage becomes a tensor of one dimension. Sorts of tensors that plumb
 * does not read (sparse, quantized) are PLUMB_E_UNSUPPORTED and named. Byte positions in err are
 * the pickle's. */
enum plumb_code pt_tensor_read(const struct pickle_value *value, struct pt_tensor *out,
                               struct plumb_error *err);

/* The dict of attributes that the tensor carries besides its data, or NULL. */
struct pickle_value *pt_tensor_attributes(const struct pickle_value *value);

#endif
