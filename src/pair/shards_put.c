/* Putting parts into the whole: copied as they are stored, or added up. */
#include "pair/shards.h"

#include <string.h>

enum { PIECE = 4096 };

enum plumb_dtype shards_dtype(const struct shards_layout *layout, enum plumb_dtype part)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(part);
    if (layout->reduce == SHARDS_ONE && layout->divisor < 2)
        return part;
    if (info->kind == PLUMB_KIND_COMPLEX)
        return part;
    if (info->kind != PLUMB_KIND_FLOAT)
        return shards_scale(layout) == 1 ? PLUMB_I64 : PLUMB_F64;
    /* Rounded once more, a sum of 16-bit numbers would differ by more than what made it. */
    return part == PLUMB_F64 ? PLUMB_F64 : PLUMB_F32;
}

struct putting {
    const struct plumb_tensor *part;
    const struct shards_layout *layout;
    enum plumb_dtype dtype;
    unsigned width; /* numbers of an element */
    uint64_t bytes; /* of one */
    char *whole;
};

static void copy_box(void *context, const struct shards_box *box)
{
    const struct putting *p = context;
    plumb_tensor_gather(p->part, box->from, box->count, p->whole + box->to * p->bytes);
}

static void add_piece(const struct putting *p, uint64_t from, uint64_t to, size_t count)
{
    double part[2 * PIECE], sum[2 * PIECE];
    const size_t numbers = count * p->width;
    const double share = shards_scale(p->layout);
    char *place = p->whole + to * p->bytes;
    plumb_tensor_to_f64(p->part, from, count, part);
    plumb_to_f64(p->dtype, place, 0, numbers, false, sum);
    for (size_t i = 0; i < numbers; i++)
        sum[i] += part[i] * share;
    if (p->dtype == PLUMB_C64)
        plumb_from_f64(PLUMB_F32, sum, numbers, place);
    else if (p->dtype == PLUMB_C128)
        plumb_from_f64(PLUMB_F64, sum, numbers, place);
    else
        plumb_from_f64(p->dtype, sum, numbers, place);
}

static void add_box(void *context, const struct shards_box *box)
{
    for (size_t done = 0; done < box->count; done += PIECE) {
        const size_t left = box->count - done;
        add_piece(context, box->from + done, box->to + done, left < PIECE ? left : PIECE);
    }
}

enum plumb_code shards_put(const struct shards_plan *plan, const struct shards_layout *layout,
                           unsigned part, const struct plumb_tensor *tensor, void *whole,
                           struct plumb_error *err)
{
    struct putting p = {.part = tensor,
                        .layout = layout,
                        .dtype = shards_dtype(layout, tensor->dtype),
                        .width = plumb_dtype_parts(tensor->dtype),
                        .whole = whole};
    if (plumb_dtype_info(tensor->dtype)->bits % 8)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "parts of %s cannot be put together: two elements share a byte",
                          plumb_dtype_info(tensor->dtype)->name);
    p.bytes = plumb_dtype_info(p.dtype)->bits / 8;
    const bool as_is = layout->reduce == SHARDS_ONE && layout->divisor < 2;
    shards_boxes(plan, part, tensor, as_is ? copy_box : add_box, &p);
    return PLUMB_OK;
}
