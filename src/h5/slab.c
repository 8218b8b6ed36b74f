/* A dataspace cut into pieces, along whole chunks where possible. */
#include "h5/h5.h"

/* Rows that fit into limit bytes. Whole chunks where possible, and up to 16 times the limit for
 * that: a chunk that two slabs share is decoded twice. */
static hsize_t rows_in(hsize_t row_bytes, uint64_t align, size_t limit)
{
    hsize_t rows = limit / row_bytes;
    if (rows > align)
        return rows - rows % align;
    if (align <= 16 * (hsize_t)limit / row_bytes)
        return align;
    return rows ? rows : 1;
}

bool slab_each(hid_t space, size_t element, uint64_t align, size_t limit,
               bool (*use)(void *context, const struct slab *slab), void *context)
{
    hsize_t shape[H5S_MAX_RANK], start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 0 || H5Sget_simple_extent_dims(space, shape, NULL) < 0)
        return false;
    if (rank == 0) {
        struct slab all = {H5S_ALL, H5S_ALL, element};
        return use(context, &all);
    }

    /* The slabs run along one dimension, the first whose rows are small enough; of those before it,
     * one index is taken at a time. */
    hsize_t row = element;
    int along = rank - 1;
    while (along > 0 && shape[along] <= limit / row)
        row *= shape[along--];
    for (int i = 0; i < rank; i++)
        count[i] = i < along ? 1 : shape[i];
    hsize_t most = rows_in(row, along == 0 ? align : 1, limit);

    for (;;) {
        hsize_t left = shape[along] - start[along];
        count[along] = left < most ? left : most;
        struct slab slab = {space, H5Screate_simple(rank, count, NULL), row * count[along]};
        bool going = slab.memory_space >= 0 &&
                     H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                     use(context, &slab);
        H5Sclose(slab.memory_space);
        if (!going)
            return false;
        start[along] += count[along];
        int i = along;
        while (start[i] == shape[i]) {
            if (i == 0)
                return true;
            start[i--] = 0;
            start[i]++;
        }
    }
}
