/* From the order in which a device keeps a tensor back to the order of its original shape. */
#ifndef FORMAT_GE_LAYOUT_H
#define FORMAT_GE_LAYOUT_H

#include "format/ge_file.h"

/* One dimension of the result. Element i of it lies (i / inner) * outer_step + (i % inner) *
 * inner_step elements from the start: devices split a dimension into blocks of `inner`. */
struct ge_axis {
    uint64_t size, inner, outer_step, inner_step;
};

enum { GE_MAX_AXES = 5 };

struct ge_order {
    bool plain; /* the bytes already lie in order: shape is all that is to say */
    unsigned rank;
    int64_t shape[PLUMB_MAX_RANK];
    unsigned axes;
    struct ge_axis axis[GE_MAX_AXES];
};

/* How to undo the tensor's format. Every element the axes name lies below the product of the
 * device shape. PLUMB_E_UNSUPPORTED for a blocked format that cannot be undone, unless the reading
 * takes it as it lies; PLUMB_E_FORMAT for a shape that no file can have. */
enum plumb_code ge_order_find(struct ge_order *order, const struct ge_tensor *tensor,
                              const struct ge_reading *reading, struct plumb_error *err);

/* Elements of the result. */
uint64_t ge_order_count(const struct ge_order *order);

/* -- What a reading is made of ----------------------------------------------------------------- */

/* Each adds the axes of (N, C, H, W) and the like, false where the shapes are none of that format.
 * s is the shape on the device, o the original one. */

/* (.., C1, No, Ni, C0) -> (H, N, C), H being all leading dimensions of the original together. */
bool ge_undo_nz(struct ge_order *order, const struct ge_dims *s, const struct ge_dims *o);
/* (N, C1, H, W, C0) -> (N, C, H, W) */
bool ge_undo_5hd(struct ge_order *order, const struct ge_dims *s);
/* (C1*H*W, No, Ni, C0) -> (N, C, H, W) */
bool ge_undo_fractal_z(struct ge_order *order, const struct ge_dims *s, const struct ge_dims *o);
/* Four dimensions in another order: from[i] is the place in s of dimension i of (N, C, H, W). */
bool ge_undo_permutation(struct ge_order *order, const struct ge_dims *s, const unsigned from[4]);
extern const unsigned ge_nhwc[4], ge_hwcn[4];
/* (N, D, C1, H, W, C0) -> (N, C, D, H, W) */
bool ge_undo_ndc1hwc0(struct ge_order *order, const struct ge_dims *s);

/* Cuts what padding added: the first dimension that differs decides whether anything is cut. */
void ge_order_cut(struct ge_order *order, const uint64_t *size, unsigned rank);

/* Copies elements of that many bytes into order. */
void ge_order_copy(const struct ge_order *order, const void *from, void *to, size_t element);

#endif
