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
 * device shape. PLUMB_E_UNSUPPORTED for a blocked format plumb cannot undo, PLUMB_E_FORMAT for
 * shapes that contradict each other (under the origin's reading both are taken as plain). */
enum plumb_code ge_order_find(struct ge_order *order, const struct ge_tensor *tensor,
                              const struct ge_reading *reading, struct plumb_error *err);

/* Elements of the result. */
uint64_t ge_order_count(const struct ge_order *order);

/* Copies elements of that many bytes into order. */
void ge_order_copy(const struct ge_order *order, const void *from, void *to, size_t element);

#endif
