/* Undoing the layouts in which devices keep tensors. */
#include "format/ge_layout.h"

#include <string.h>

/* The products below are of dimensions whose whole product is known to fit: see ge_order_find. */

static void add_axis(struct ge_order *order, uint64_t size, uint64_t step)
{
    uint64_t inner = size ? size : 1;
    order->axis[order->axes++] = (struct ge_axis){size, inner, 0, step};
}

/* A dimension that the device keeps as `blocks` blocks of `inner`. */
static void add_blocks(struct ge_order *order, uint64_t blocks, uint64_t block_step, uint64_t inner,
                       uint64_t step)
{
    order->axis[order->axes++] =
        (struct ge_axis){blocks * inner, inner ? inner : 1, block_step, step};
}

static uint64_t product(const uint64_t *dim, unsigned count)
{
    uint64_t result = 1;
    for (unsigned i = 0; i < count; i++)
        if (__builtin_mul_overflow(result, dim[i], &result))
            return UINT64_MAX; /* larger than any file */
    return result;
}

static void cut_axis(struct ge_axis *axis, uint64_t size)
{
    if (size < axis->size)
        axis->size = size;
}

bool ge_undo_nz(struct ge_order *order, const struct ge_dims *s, const struct ge_dims *o)
{
    if (s->rank < 4 || o->rank < 1)
        return false;
    const uint64_t *last = s->dim + s->rank - 4;
    uint64_t c1 = last[0], no = last[1], ni = last[2], c0 = last[3];
    uint64_t n = o->rank > 1 ? o->dim[o->rank - 2] : 1, c = o->dim[o->rank - 1];
    uint64_t h = o->rank > 2 ? product(o->dim, o->rank - 2) : 1;
    if (product(s->dim, s->rank - 4) != h)
        return false;
    if (o->rank > 2)
        add_axis(order, h, c1 * no * ni * c0);
    if (o->rank > 1) {
        add_axis(order, no * ni, c0);
        cut_axis(&order->axis[order->axes - 1], n);
    }
    add_blocks(order, c1, no * ni * c0, c0, 1);
    cut_axis(&order->axis[order->axes - 1], c);
    return true;
}

bool ge_undo_5hd(struct ge_order *order, const struct ge_dims *s)
{
    if (s->rank != 5)
        return false;
    uint64_t c1 = s->dim[1], h = s->dim[2], w = s->dim[3], c0 = s->dim[4];
    add_axis(order, s->dim[0], c1 * h * w * c0);
    add_blocks(order, c1, h * w * c0, c0, 1);
    add_axis(order, h, w * c0);
    add_axis(order, w, c0);
    return true;
}

bool ge_undo_fractal_z(struct ge_order *order, const struct ge_dims *s, const struct ge_dims *o)
{
    if (s->rank != 4 || o->rank != 4)
        return false;
    uint64_t h = o->dim[2], w = o->dim[3], no = s->dim[1], ni = s->dim[2], c0 = s->dim[3], area;
    if (__builtin_mul_overflow(h, w, &area) || area == 0 || s->dim[0] % area)
        return false;
    uint64_t block = no * ni * c0;
    add_axis(order, no * ni, c0);
    add_blocks(order, s->dim[0] / area, area * block, c0, 1);
    add_axis(order, h, w * block);
    add_axis(order, w, block);
    cut_axis(&order->axis[0], o->dim[0]);
    cut_axis(&order->axis[1], o->dim[1]);
    return true;
}

bool ge_undo_permutation(struct ge_order *order, const struct ge_dims *s, const unsigned from[4])
{
    if (s->rank != 4)
        return false;
    for (unsigned i = 0; i < 4; i++)
        add_axis(order, s->dim[from[i]], product(s->dim + from[i] + 1, 3 - from[i]));
    return true;
}

bool ge_undo_ndc1hwc0(struct ge_order *order, const struct ge_dims *s)
{
    if (s->rank != 6)
        return false;
    uint64_t d = s->dim[1], c1 = s->dim[2], h = s->dim[3], w = s->dim[4], c0 = s->dim[5];
    uint64_t plane = h * w * c0;
    add_axis(order, s->dim[0], d * c1 * plane);
    add_blocks(order, c1, plane, c0, 1);
    add_axis(order, d, c1 * plane);
    add_axis(order, h, w * c0);
    add_axis(order, w, c0);
    return true;
}

void ge_order_cut(struct ge_order *order, const uint64_t *size, unsigned rank)
{
    unsigned longest = order->axes > rank ? order->axes : rank;
    unsigned long_here = 0;
    uint64_t here = 1, there = 1;
    for (unsigned i = 0; i < order->axes; i++) {
        long_here += order->axis[i].size != 1;
        here *= order->axis[i].size;
    }
    there = product(size, rank);
    if (here == there && long_here <= 1)
        return;
    for (unsigned i = 0; i < longest; i++) {
        uint64_t have = i < order->axes ? order->axis[i].size : 1;
        uint64_t want = i < rank ? size[i] : 1;
        if (have < want)
            return;
        if (have > want) {
            for (unsigned k = 0; k < order->axes; k++)
                cut_axis(&order->axis[k], k < rank ? size[k] : 1);
            return;
        }
    }
}

const unsigned ge_nhwc[4] = {0, 3, 1, 2}, ge_hwcn[4] = {3, 2, 0, 1};

/* The original shape in the order (N, C, H, W); it is kept in the order of the format. */
static void cut_permuted(struct ge_order *order, const struct ge_dims *o, const unsigned from[4])
{
    uint64_t size[4];
    if (o->rank != 4)
        return;
    for (unsigned i = 0; i < 4; i++)
        size[i] = o->dim[from[i]];
    ge_order_cut(order, size, 4);
}

/* Formats that cut dimensions into blocks: taken as they lie, values would meet the wrong
 * partner. */
static bool is_blocked(int32_t format)
{
    static const int32_t formats[] = {3,  4,  5,  6,  8,  9,  10, 11, 12, 13, 15, 17,
                                      25, 28, 29, 32, 33, 37, 38, 39, 43, 44, 48, 49};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i] == format)
            return true;
    return false;
}

static bool undo_all(struct ge_order *order, const struct ge_tensor *tensor, int32_t format)
{
    const struct ge_dims *s = &tensor->shape, *o = &tensor->original;
    bool done = false;
    if (!o->rank)
        return false;
    if (format == GE_FRACTAL_NZ)
        return ge_undo_nz(order, s, o);
    if (format == GE_NHWC && o->rank == 4) {
        done = ge_undo_permutation(order, s, ge_nhwc);
        cut_permuted(order, o, ge_nhwc);
        return done;
    }
    if (format == GE_HWCN && o->rank == 4) {
        done = ge_undo_permutation(order, s, ge_hwcn);
        cut_permuted(order, o, ge_hwcn);
        return done;
    }
    if (format == GE_NC1HWC0 && o->rank == 4)
        done = ge_undo_5hd(order, s);
    else if (format == GE_FRACTAL_Z && tensor->sub_format < 2)
        done = ge_undo_fractal_z(order, s, o);
    else if (format == GE_NDC1HWC0 && (o->rank == 5 || o->rank == 3 || o->rank == 2))
        done = ge_undo_ndc1hwc0(order, s);
    if (done)
        ge_order_cut(order, o->dim, o->rank);
    return done;
}

static enum plumb_code take_plain(struct ge_order *order, const struct ge_dims *s,
                                  struct plumb_error *err)
{
    order->plain = true;
    order->rank = s->rank;
    for (unsigned i = 0; i < s->rank; i++) {
        if (s->dim[i] > INT64_MAX)
            return plumb_fail(err, PLUMB_E_FORMAT, "dimension %u has %llu elements", i,
                              (unsigned long long)s->dim[i]);
        order->shape[i] = (int64_t)s->dim[i];
    }
    return PLUMB_OK;
}

enum plumb_code ge_order_find(struct ge_order *order, const struct ge_tensor *tensor,
                              const struct ge_reading *reading, struct plumb_error *err)
{
    const struct ge_dims *s = &tensor->shape, *o = &tensor->original;
    int32_t format = tensor->format;
    *order = (struct ge_order){0};
    uint64_t elements = product(s->dim, s->rank);
    if (elements > INT64_MAX)
        return plumb_fail(err, PLUMB_E_FORMAT, "a shape of more elements than any file has");
    if ((format == GE_NCHW || format == GE_NHWC || format == GE_HWCN) && s->rank != 4)
        format = GE_ND;
    /* Nothing to undo in nothing, and no dimension of zero to divide by. */
    if (elements == 0)
        return take_plain(order, s, err);
    bool done = (reading->undo ? reading->undo : undo_all)(order, tensor, format);
    if (!done) {
        *order = (struct ge_order){0};
        if (!reading->undo && is_blocked(format) && o->rank)
            return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                              "the format %s of %u dimensions (originally %u) cannot be undone",
                              ge_format_name(tensor->format), s->rank, o->rank);
        return take_plain(order, s, err);
    }
    order->rank = order->axes;
    for (unsigned i = 0; i < order->axes; i++)
        order->shape[i] = (int64_t)order->axis[i].size;
    /* Only the order of values matters, but people look for the shape they know. */
    if (!reading->undo && ge_order_count(order) == product(o->dim, o->rank) &&
        tensor->format != GE_NHWC && tensor->format != GE_HWCN) {
        order->rank = o->rank;
        for (unsigned i = 0; i < o->rank; i++)
            order->shape[i] = (int64_t)o->dim[i];
    }
    return PLUMB_OK;
}

uint64_t ge_order_count(const struct ge_order *order)
{
    uint64_t count = 1;
    for (unsigned i = 0; i < order->axes; i++)
        count *= order->axis[i].size;
    return count;
}

static void copy_elements(uint8_t *to, const uint8_t *from, uint64_t count, uint64_t step,
                          size_t element)
{
    if (step == 1) {
        memcpy(to, from, count * element);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        memcpy(to + i * element, from + i * step * element, element);
}

void ge_order_copy(const struct ge_order *order, const void *from, void *to, size_t element)
{
    uint64_t at[GE_MAX_AXES] = {0}, rows = 1;
    const struct ge_axis *last = &order->axis[order->axes - 1];
    uint8_t *out = to;
    for (unsigned i = 0; i + 1 < order->axes; i++)
        rows *= order->axis[i].size;
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t start = 0;
        for (unsigned i = 0; i + 1 < order->axes; i++) {
            const struct ge_axis *axis = &order->axis[i];
            start +=
                at[i] / axis->inner * axis->outer_step + at[i] % axis->inner * axis->inner_step;
        }
        for (uint64_t i = 0; i < last->size; i += last->inner) {
            uint64_t run = last->size - i < last->inner ? last->size - i : last->inner;
            uint64_t place = start + i / last->inner * last->outer_step;
            copy_elements(out, (const uint8_t *)from + place * element, run, last->inner_step,
                          element);
            out += run * element;
        }
        for (unsigned i = order->axes - 1; i-- > 0;) {
            if (++at[i] < order->axis[i].size)
                break;
            at[i] = 0;
        }
    }
}
