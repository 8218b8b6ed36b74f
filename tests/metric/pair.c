/* Making pairs of tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/op/quad.h"
#include "random.h"
#include "reference.h"

#include <stdlib.h>

__extension__ typedef __int128 wide;

static bool is_int64(enum plumb_dtype dtype)
{
    return dtype == PLUMB_I64 || dtype == PLUMB_U64;
}

/* The number of a part (a whole element, or half of a complex one) with the given bits. */
static double decode_part(enum plumb_dtype dtype, uint64_t bits)
{
    double value;
    plumb_to_f64(dtype, &bits, 0, 1, false, &value);
    return value;
}

static unsigned part_bits(enum plumb_dtype dtype)
{
    return plumb_dtype_info(dtype)->bits / plumb_dtype_parts(dtype);
}

/* Random bits of a finite number that is neither very large nor very small. */
static uint64_t random_part(enum plumb_dtype dtype, uint64_t *seed)
{
    unsigned bits = part_bits(dtype);
    double scale = ldexp(1, (int)random_below(seed, 12) - 6);
    double real = random_unit(seed) * scale;
    float single = (float)real;
    uint32_t word;
    uint64_t code;
    if (random_below(seed, 20) == 0)
        return 0;
    switch (dtype) {
    case PLUMB_F32:
    case PLUMB_C64:
        memcpy(&word, &single, sizeof word);
        return word;
    case PLUMB_F64:
    case PLUMB_C128:
        memcpy(&code, &real, sizeof code);
        return code;
    case PLUMB_BF16:
        memcpy(&word, &single, sizeof word);
        return word >> 16;
    case PLUMB_I64:
    case PLUMB_U64: /* around 2^62, where float64 cannot tell neighbours apart */
        code = random_bits(seed) >> random_below(seed, 60);
        return random_below(seed, 2) ? code : (UINT64_C(1) << 62) + (code & 0xFFFF);
    case PLUMB_BOOL:
        return random_below(seed, 2);
    default:
        for (;;) {
            code = random_bits(seed) & (UINT64_MAX >> (64 - bits));
            double value = decode_part(dtype, code);
            if (isfinite(value) && fabs(value) < 0x1p40)
                return code;
        }
    }
}

static uint64_t special_part(enum plumb_dtype dtype, uint64_t fallback, uint64_t *seed)
{
    static const uint64_t codes[PLUMB_DTYPE_COUNT][3] = {
        [PLUMB_F16] = {0x7C00, 0xFC00, 0x7E00},
        [PLUMB_BF16] = {0x7F80, 0xFF80, 0x7FC0},
        [PLUMB_F32] = {0x7F800000, 0xFF800000, 0x7FC00000},
        [PLUMB_C64] = {0x7F800000, 0xFF800000, 0xFFC00001},
        [PLUMB_F64] = {0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000},
        [PLUMB_C128] = {0x7FF0000000000000, 0xFFF0000000000000, 0xFFF8000000000000},
        [PLUMB_F8_E5M2] = {0x7C, 0xFC, 0x7F},
        [PLUMB_F8_E4M3FN] = {0x7F, 0xFF, 0x7F},
        [PLUMB_HIF8] = {0x6F, 0xEF, 0x80},
    };
    uint64_t code = codes[dtype][random_below(seed, 3)];
    return code ? code : fallback;
}

/* Sets number `at` of packed parts. */
static void put_part(enum plumb_dtype dtype, unsigned char *bytes, uint64_t at, uint64_t code)
{
    unsigned bits = part_bits(dtype);
    if (bits == 4) {
        unsigned shift = at % 2 ? 4 : 0;
        bytes[at / 2] = (unsigned char)((bytes[at / 2] & ~(15u << shift)) | (code & 15) << shift);
    } else {
        memcpy(bytes + at * bits / 8, &code, bits / 8); /* little endian */
    }
}

/* Fills values from the dense bytes. */
static void read_values(struct side *side)
{
    enum plumb_dtype dtype = side->tensor.dtype;
    uint64_t numbers = side->tensor.count * plumb_dtype_parts(dtype);
    side->values = calloc((size_t)numbers + 1, sizeof *side->values);
    assert_non_null(side->values);
    for (uint64_t i = 0; i < numbers; i++) {
        int64_t integer;
        double real;
        if (is_int64(dtype)) {
            memcpy(&integer, side->dense + 8 * i, 8);
            side->values[i] =
                dtype == PLUMB_I64 ? (long double)integer : (long double)(uint64_t)integer;
        } else {
            plumb_to_f64(dtype, side->dense, i, 1, false, &real);
            side->values[i] = (long double)real;
        }
    }
}

static void reverse(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size / 2; i++) {
        unsigned char byte = bytes[i];
        bytes[i] = bytes[size - 1 - i];
        bytes[size - 1 - i] = byte;
    }
}

/* Lays the dense bytes out as the tensor is to have them: in order, or as [rows, columns]
 * transposed and with gaps. */
static void lay_out(struct side *side, enum pair_layout layout, uint64_t *seed)
{
    struct plumb_tensor *tensor = &side->tensor;
    size_t size = plumb_dtype_info(tensor->dtype)->bits / 8;
    bool strided = size && layout >= STRIDED && tensor->count;
    bool swap = size && (layout == SWAPPED || layout == SWAPPED_AND_STRIDED);
    uint64_t count = tensor->count, rows = 1;
    for (uint64_t r = 2; strided && r * r <= count; r++)
        if (count % r == 0)
            rows = r;
    uint64_t columns = count ? count / rows : 0, gap = 1 + random_below(seed, 3);
    int64_t shape[2] = {(int64_t)rows, (int64_t)columns};
    int64_t stride[2] = {(int64_t)gap, (int64_t)(gap * rows)};
    uint64_t available = strided ? gap * count : count;
    if (strided)
        assert_int_equal(plumb_tensor_init(tensor, tensor->dtype, 2, shape, NULL), PLUMB_OK);
    uint64_t bytes;
    assert_true(plumb_dtype_bytes(tensor->dtype, available, &bytes));
    /* One byte further: no alignment is promised. */
    side->storage = calloc(1, (size_t)bytes + 2);
    assert_non_null(side->storage);
    unsigned char *data = side->storage + 1;
    if (strided) {
        assert_int_equal(plumb_tensor_set_strides(tensor, stride, 0, available, NULL), PLUMB_OK);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t at = i / columns * gap + i % columns * gap * rows;
            memcpy(data + at * size, side->dense + i * size, size);
        }
    } else {
        memcpy(data, side->dense, (size_t)side->dense_bytes);
    }
    size_t part = size / plumb_dtype_parts(tensor->dtype);
    for (uint64_t i = 0; swap && i < bytes; i += part)
        reverse(data + i, part);
    tensor->swap = swap;
    tensor->data = data;
}

static void side_init(struct side *side, enum plumb_dtype dtype, uint64_t count)
{
    int64_t shape = (int64_t)count;
    *side = (struct side){0};
    assert_int_equal(plumb_tensor_init(&side->tensor, dtype, 1, &shape, NULL), PLUMB_OK);
    side->dense_bytes = plumb_tensor_bytes(&side->tensor);
    side->dense = calloc(1, (size_t)side->dense_bytes + 8);
    assert_non_null(side->dense);
}

/* Real numbers beside complex ones are complex ones without an imaginary part. */
static void pad(struct side *side, uint64_t numbers)
{
    uint64_t count = side->tensor.count;
    if (numbers == count)
        return;
    long double *padded = calloc((size_t)numbers + 1, sizeof *padded);
    assert_non_null(padded);
    for (uint64_t i = 0; i < count; i++)
        padded[2 * i] = side->values[i];
    free(side->values);
    side->values = padded;
}

/* Once both sides have their bytes. */
static void finish(struct pair *pair)
{
    struct side *t = &pair->target, *g = &pair->golden;
    read_values(t);
    read_values(g);
    unsigned parts[2] = {plumb_dtype_parts(t->tensor.dtype), plumb_dtype_parts(g->tensor.dtype)};
    pair->numbers = t->tensor.count * (parts[0] > parts[1] ? parts[0] : parts[1]);
    if (parts[0] < parts[1])
        pad(t, pair->numbers);
    if (parts[1] < parts[0])
        pad(g, pair->numbers);
    bool exact = is_int64(t->tensor.dtype) && is_int64(g->tensor.dtype);
    bool mixed = (is_int64(t->tensor.dtype) || is_int64(g->tensor.dtype)) && parts[0] == parts[1];
    pair->d = calloc((size_t)pair->numbers + 1, sizeof *pair->d);
    assert_non_null(pair->d);
    for (uint64_t i = 0; i < pair->numbers; i++)
        pair->d[i] = exact   ? (double)((wide)t->values[i] - (wide)g->values[i])
                     : mixed ? (double)((quad)t->values[i] - (quad)g->values[i])
                             : (double)t->values[i] - (double)g->values[i];
}

void pair_make(struct pair *pair, enum plumb_dtype target, enum plumb_dtype golden, uint64_t count,
               enum pair_layout layout, unsigned special, uint64_t *seed)
{
    struct side *t = &pair->target, *g = &pair->golden;
    side_init(t, target, count);
    side_init(g, golden, count);
    uint64_t numbers[2] = {count * plumb_dtype_parts(target), count * plumb_dtype_parts(golden)};
    for (uint64_t i = 0; i < numbers[1]; i++) {
        uint64_t code = random_part(golden, seed);
        if (special && random_below(seed, numbers[1]) < special)
            code = special_part(golden, code, seed);
        put_part(golden, g->dense, i, code);
    }
    for (uint64_t i = 0; i < numbers[0]; i++) {
        uint64_t code = random_part(target, seed), bits = 0;
        if (target == golden && random_below(seed, 4) && part_bits(target) >= 8) {
            size_t bytes = part_bits(target) / 8;
            memcpy(&bits, g->dense + i * bytes, bytes);
            uint64_t near = bits ^ random_below(seed, bytes == 1 ? 2 : 8);
            if (target == PLUMB_BOOL)
                near &= 1;
            if (special || isfinite(decode_part(target, near)))
                code = near;
        }
        if (special && random_below(seed, numbers[0]) < special)
            code = special_part(target, code, seed);
        put_part(target, t->dense, i, code);
    }
    lay_out(t, layout, seed);
    lay_out(g, layout, seed);
    finish(pair);
}

void pair_from(struct pair *pair, enum plumb_dtype dtype, const void *target, const void *golden,
               uint64_t count)
{
    uint64_t seed = 1;
    side_init(&pair->target, dtype, count);
    side_init(&pair->golden, dtype, count);
    memcpy(pair->target.dense, target, (size_t)pair->target.dense_bytes);
    memcpy(pair->golden.dense, golden, (size_t)pair->golden.dense_bytes);
    lay_out(&pair->target, DENSE, &seed);
    lay_out(&pair->golden, DENSE, &seed);
    finish(pair);
}

void pair_free(struct pair *pair)
{
    struct side *sides[2] = {&pair->target, &pair->golden};
    for (int i = 0; i < 2; i++) {
        free(sides[i]->storage);
        free(sides[i]->dense);
        free(sides[i]->values);
    }
    free(pair->d);
}
