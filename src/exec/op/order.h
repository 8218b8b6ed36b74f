/* Rows in order. */
#ifndef OP_ORDER_H
#define OP_ORDER_H

#include "exec/op/rows.h"

/* Does element a come before b? Ties go by place, NaN counts as the largest number. */
static inline bool comes_before(const struct row *row, int64_t a, int64_t b, bool descending)
{
    if (row->int_in) {
        const int64_t u = row->int_in[a], v = row->int_in[b];
        return u == v ? a < b : descending ? u > v : u < v;
    }
    const real u = row->in[0][a], v = row->in[0][b];
    if (descending ? u > v : u < v)
        return true;
    if (u == v)
        return a < b;
    const bool nan_u = isnan(u), nan_v = isnan(v);
    if (nan_u && nan_v)
        return a < b;
    return descending ? nan_u : nan_v && !nan_u;
}

/* Fills order with the places of the row's elements, in their order. scratch has room for as
 * many. */
void sort_row(const struct row *row, bool descending, int64_t *order, int64_t *scratch);

/* How elements of a row are chosen: fn writes the places of `take` of them to `order`, which like
 * `scratch` has room for a row. */
struct chooser {
    void (*fn)(const struct row *row, const struct chooser *self);
    int64_t take;
    bool descending;
    int64_t k;
    int64_t *order, *scratch;
};

/* Chooses along a dimension: values, with gradients to where they come from, and *index. The
 * dimension becomes `take` long or, with drop, goes. */
struct val *v_choose(struct op *o, struct val *x, unsigned dim, struct chooser chooser, bool drop,
                     struct val **index);

#endif
