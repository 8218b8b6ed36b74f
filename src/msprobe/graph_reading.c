/* Tensors of GE files as msProbe reads them: which layouts it undoes, and which types it shows. */
#include "format/ge_layout.h"
#include "msprobe/graph.h"

static int32_t target_format(int32_t format, unsigned rank)
{
    return rank == 4 ? GE_NCHW : rank == 2 || rank == 3 ? GE_ND : format;
}

/* Only for two to four dimensions. NHWC becomes NCHW and is then cut with the sizes of NHWC. */
static bool undo(struct ge_order *order, const struct ge_tensor *tensor, int32_t format)
{
    const struct ge_dims *s = &tensor->shape, *o = &tensor->original;
    int32_t target = target_format(format, o->rank);
    bool to_nchw = target == GE_NCHW, done = false;
    if (format == target)
        return false;
    if (format == GE_FRACTAL_NZ)
        return ge_undo_nz(order, s, o);
    if (format == GE_NC1HWC0 && to_nchw)
        done = ge_undo_5hd(order, s);
    else if (format == GE_FRACTAL_Z && to_nchw && tensor->sub_format < 2)
        done = ge_undo_fractal_z(order, s, o);
    else if (format == GE_NHWC && to_nchw)
        done = ge_undo_permutation(order, s, ge_nhwc);
    else if (format == GE_HWCN && to_nchw)
        done = ge_undo_permutation(order, s, ge_hwcn);
    else if (format == GE_NDC1HWC0 && target == GE_ND)
        done = ge_undo_ndc1hwc0(order, s);
    if (done && o->rank)
        ge_order_cut(order, o->dim, o->rank);
    return done;
}

/* Types that PyTorch does not have become wider ones, and nothing at all is float64. */
static const char *shown(const struct ge_tensor *tensor)
{
    enum { UINT16 = 6, UINT32 = 9, BF16 = 27, HIFLOAT8 = 33, F8_E5M2 = 34, F8_E4M3FN = 35 };
    for (unsigned i = 0; i < tensor->shape.rank; i++)
        if (!tensor->shape.dim[i])
            return "float64";
    switch (tensor->type) {
    case UINT16:
        return "int32";
    case UINT32:
        return "int64";
    case BF16:
        return "float32";
    case HIFLOAT8:
    case F8_E5M2:
    case F8_E4M3FN:
        return "float64";
    default:
        return NULL;
    }
}

const struct ge_reading msprobe_ge_reading = {.undo = undo, .shown = shown};
