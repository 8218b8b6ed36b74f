/* The values of a tensor of a GE dump file. */
#include "base/mapped.h"
#include "format/ge_layout.h"
#include "format/ge_type.h"

#include <stdlib.h>
#include <string.h>

static const char *const format_names[] = {"NCHW",
                                           "NHWC",
                                           "ND",
                                           "NC1HWC0",
                                           "FRACTAL_Z",
                                           "NC1C0HWPAD",
                                           "NHWC1C0",
                                           "FSR_NCHW",
                                           "FRACTAL_DECONV",
                                           "C1HWNC0",
                                           "FRACTAL_DECONV_TRANSPOSE",
                                           "FRACTAL_DECONV_SP_STRIDE_TRANS",
                                           "NC1HWC0_C04",
                                           "FRACTAL_Z_C04",
                                           "CHWN",
                                           "FRACTAL_DECONV_SP_STRIDE8_TRANS",
                                           "HWCN",
                                           "NC1KHKWHWC0",
                                           "BN_WEIGHT",
                                           "FILTER_HWCK",
                                           "HASHTABLE_LOOKUP_LOOKUPS",
                                           "HASHTABLE_LOOKUP_KEYS",
                                           "HASHTABLE_LOOKUP_VALUE",
                                           "HASHTABLE_LOOKUP_OUTPUT",
                                           "HASHTABLE_LOOKUP_HITS",
                                           "C1HWNCoC0",
                                           "MD",
                                           "NDHWC",
                                           "FRACTAL_ZZ",
                                           "FRACTAL_NZ",
                                           "NCDHW",
                                           "DHWCN",
                                           "NDC1HWC0",
                                           "FRACTAL_Z_3D",
                                           "CN",
                                           "NC",
                                           "DHWNC",
                                           "FRACTAL_Z_3D_TRANSPOSE",
                                           "FRACTAL_ZN_LSTM",
                                           "FRACTAL_Z_G",
                                           "RESERVED",
                                           "ALL",
                                           "NULL",
                                           "ND_RNN_BIAS",
                                           "FRACTAL_ZN_RNN",
                                           "YUV",
                                           "YUV_A",
                                           "NCL",
                                           "FRACTAL_Z_WINO",
                                           "C1HWC0"};

const char *ge_format_name(int32_t format)
{
    bool known = format >= 0 && (size_t)format < sizeof format_names / sizeof *format_names;
    return known ? format_names[format] : "unknown";
}

const char *ge_dtype_shown(const struct ge_tensor *tensor, const struct ge_reading *reading)
{
    const struct ge_type *type = ge_type_find(tensor->type);
    if (!type)
        return "unknown";
    const char *other = reading->shown ? reading->shown(tensor) : NULL;
    if (other)
        return other;
    if (type->storage == GE_NO_VALUE)
        return type->name;
    return plumb_dtype_info(type->dtype)->name;
}

/* Bits of one stored element. */
static unsigned stored_bits(const struct ge_type *type)
{
    switch (type->storage) {
    case GE_BITS:
        return 1;
    case GE_PAIRS:
        return 2;
    case GE_E1M2:
        return 4;
    case GE_BYTES:
        return 8;
    case GE_HALVES:
        return 32;
    default:
        return plumb_dtype_info(type->dtype)->bits;
    }
}

/* Four-bit floats: sign, one exponent bit, two mantissa bits: 0, .25, .. .75 and 1, 1.25, ..
 * 1.75. */
static float decode_e1m2(unsigned code)
{
    float size = (float)(code & 7) / 4;
    return code & 8 ? -size : size;
}

/* Spreads packed elements out, one to a place of `to`. */
static void unpack(const struct ge_type *type, const uint8_t *from, uint64_t count, void *to)
{
    uint8_t *bytes = to;
    float *floats = to;
    switch (type->storage) {
    case GE_BITS:
        for (uint64_t i = 0; i < count; i++)
            bytes[i] = from[i / 8] >> (7 - i % 8) & 1;
        return;
    case GE_PAIRS:
        for (uint64_t i = 0; i < count; i++) {
            unsigned code = (unsigned)from[i / 4] >> i % 4 * 2 & 3u;
            bytes[i] = (uint8_t)(type->dtype == PLUMB_I8 && code > 1 ? code - 4 : code);
        }
        return;
    case GE_E1M2:
        for (uint64_t i = 0; i < count; i++)
            floats[i] = decode_e1m2((unsigned)from[i / 2] >> i % 2 * 4 & 15u);
        return;
    case GE_HALVES:
        for (uint64_t i = 0; i < count; i++) {
            double parts[2];
            plumb_to_f64(PLUMB_F16, from, i * 2, 2, false, parts);
            floats[i * 2] = (float)parts[0];
            floats[i * 2 + 1] = (float)parts[1];
        }
        return;
    default: /* packed types of plumb, which no permutation can take apart */
        for (uint64_t i = 0; i < count; i++) {
            double value;
            plumb_to_f64(type->dtype, from, i, 1, false, &value);
            if (type->dtype == PLUMB_I4)
                bytes[i] = (uint8_t)(int8_t)value;
            else
                floats[i] = (float)value;
        }
    }
}

/* What unpack makes of the type. */
static enum plumb_dtype unpacked_dtype(const struct ge_type *type)
{
    if (type->storage != GE_AS_IS)
        return type->dtype;
    return type->dtype == PLUMB_I4 ? PLUMB_I8 : PLUMB_F32;
}

static enum plumb_code check_size(const struct ge_tensor *tensor, const struct ge_type *type,
                                  uint64_t count, uint64_t *bytes, struct plumb_error *err)
{
    unsigned bits = stored_bits(type);
    if (bits < 8)
        *bytes = count / (8 / bits) + (count % (8 / bits) != 0);
    else if (__builtin_mul_overflow(count, bits / 8, bytes))
        *bytes = UINT64_MAX;
    if (*bytes > tensor->size)
        return plumb_fail_at(err, PLUMB_E_FORMAT, tensor->offset,
                             "the shape needs %llu bytes of %s where %llu are stored",
                             (unsigned long long)*bytes, type->name,
                             (unsigned long long)tensor->size);
    return PLUMB_OK;
}

/* Decodes and reorders mapped bytes into memory of its own, and lets the mapping go. */
static enum plumb_code decode(struct plumb_payload *payload, const struct ge_type *type,
                              const struct ge_order *order, uint64_t stored,
                              struct plumb_error *err)
{
    struct plumb_tensor *tensor = &payload->tensor;
    bool packed = stored_bits(type) < 8 || type->storage == GE_HALVES;
    enum plumb_dtype dtype = packed ? unpacked_dtype(type) : type->dtype;
    size_t element = plumb_dtype_info(dtype)->bits / 8;
    uint64_t count = order->plain ? stored : ge_order_count(order);
    enum plumb_code code = PLUMB_OK;
    /* stored elements take at least a bit of a file that is there, so this is within reason */
    void *unpacked = packed ? malloc(stored * element + 1) : NULL;
    void *ordered = order->plain ? NULL : malloc(count * element + 1);
    if ((packed && !unpacked) || (!order->plain && !ordered)) {
        code = plumb_no_memory(err);
        goto out;
    }
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &payload->file);
    const void *values = payload->file.data;
    if (packed) {
        unpack(type, payload->file.data, stored, unpacked);
        values = unpacked;
    }
    if (!order->plain)
        ge_order_copy(order, values, ordered, element);
    if (plumb_file_guard_leave(&guard)) {
        code = mapped_fail_shrank(err);
        goto out;
    }
    code = plumb_tensor_init(tensor, dtype, order->rank, order->shape, err);
    if (code)
        goto out;
    payload->owned = ordered ? ordered : unpacked;
    tensor->data = payload->owned;
    *(ordered ? &ordered : &unpacked) = NULL;
    plumb_file_unmap(&payload->file);
    payload->file = (struct plumb_file){0};
out:
    free(ordered);
    free(unpacked);
    return code;
}

static enum plumb_code load(const struct ge_file *ge, const struct ge_tensor *tensor,
                            const struct ge_reading *reading, struct plumb_payload *payload,
                            struct plumb_error *err)
{
    static const char nothing[16];
    const struct ge_type *type = ge_type_find(tensor->type);
    if (!type)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "the data type %d is none that plumb knows",
                          tensor->type);
    if (type->storage == GE_NO_VALUE)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "tensors of type %s cannot be compared",
                          type->name);
    struct ge_order order;
    uint64_t stored = 1, bytes;
    if (type->storage == GE_BYTES) {
        if (tensor->size > INT64_MAX)
            return plumb_fail(err, PLUMB_E_FORMAT, "a tensor larger than any file");
        order = (struct ge_order){.plain = true, .rank = 1, .shape = {(int64_t)tensor->size}};
        stored = tensor->size;
    } else {
        enum plumb_code code = ge_order_find(&order, tensor, reading, err);
        if (code)
            return code;
        for (unsigned i = 0; i < tensor->shape.rank; i++)
            stored *= tensor->shape.dim[i];
    }
    enum plumb_code code = check_size(tensor, type, stored, &bytes, err);
    if (!code && bytes)
        code = plumb_file_map(&payload->file, ge->path, tensor->offset, bytes, err);
    if (code)
        return code;
    if (bytes && (payload->file.file_size != ge->size || payload->file.mtime_ns != ge->mtime_ns))
        return plumb_fail(err, PLUMB_E_IO, "the file changed since it was listed");
    bool as_is = type->storage == GE_AS_IS || type->storage == GE_BYTES;
    if (stored && !(as_is && order.plain))
        return decode(payload, type, &order, stored, err);
    code = plumb_tensor_init(&payload->tensor, type->dtype, order.rank, order.shape, err);
    payload->tensor.data = stored ? (const void *)payload->file.data : nothing;
    return code;
}

enum plumb_code ge_load(const struct ge_file *ge, const struct ge_tensor *tensor,
                        const struct ge_reading *reading, struct plumb_payload *payload,
                        struct plumb_error *err)
{
    *payload = (struct plumb_payload){0};
    if (tensor->error) {
        if (err)
            *err = *tensor->error;
        return tensor->error->code;
    }
    enum plumb_code code =
        tensor->recorded ? plumb_fail(err, PLUMB_E_UNSUPPORTED,
                                      "condensed: its statistics were kept, its values were not")
                         : load(ge, tensor, reading, payload, err);
    if (code) {
        plumb_error_in_file(err, ge->path);
        plumb_payload_release(payload);
    }
    return code;
}
