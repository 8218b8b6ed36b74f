/* `read`: the elements of one dataset, which only libhdf5 can decode. */
#include "h5/h5.h"

#include <stdlib.h>
#include <string.h>

#define SLAB ((size_t)64 << 20)

struct reading {
    hid_t dataset, type;
    struct outcome *outcome;
    char *buffer;
    size_t capacity;
};

static bool read_slab(void *context, const struct slab *slab)
{
    struct reading *reading = context;
    if (slab->bytes > reading->capacity) {
        free(reading->buffer);
        reading->buffer = calloc(1, slab->bytes);
        reading->capacity = slab->bytes;
        if (!reading->buffer)
            return fail(reading->outcome, H5_EXIT_IO, "out of memory for %zu bytes", slab->bytes);
    }
    /* What libhdf5 leaves alone (an undefined fill value) must not be an earlier slab. */
    memset(reading->buffer, 0, slab->bytes);
    if (H5Dread(reading->dataset, reading->type, slab->memory_space, slab->space, H5P_DEFAULT,
                reading->buffer) < 0)
        return fail_hdf5(reading->outcome, H5_EXIT_DAMAGED, "the data cannot be read");
    if (!put_bytes(reading->buffer, slab->bytes))
        return fail(reading->outcome, H5_EXIT_IO, "the reader went away");
    return true;
}

static uint64_t chunk_rows(hid_t create_plist)
{
    hsize_t chunk[H5S_MAX_RANK];
    if (H5Pget_layout(create_plist) != H5D_CHUNKED ||
        H5Pget_chunk(create_plist, H5S_MAX_RANK, chunk) < 1)
        return 1;
    return chunk[0];
}

bool dataset_is_inside(hid_t create_plist, struct outcome *outcome)
{
    if (H5Pget_layout(create_plist) == H5D_VIRTUAL)
        return fail(
            outcome, H5_EXIT_UNSUPPORTED,
            "it is a virtual dataset, which points to other files: make a real one with h5repack");
    if (H5Pget_layout(create_plist) == H5D_CONTIGUOUS && H5Pget_external_count(create_plist) > 0)
        return fail(outcome, H5_EXIT_UNSUPPORTED,
                    "its data lies in other files: bring it in with h5repack");
    return true;
}

bool read_dataset(const char *path, const char *name, struct outcome *outcome)
{
    hid_t file = open_file(path, outcome);
    if (file < 0)
        return false;
    hid_t dataset = H5Dopen2(file, name, inside_only(H5P_DATASET_ACCESS));
    if (dataset < 0)
        return fail_hdf5(outcome, H5_EXIT_DAMAGED, "the dataset cannot be opened");
    hid_t create_plist = H5Dget_create_plist(dataset);
    if (!dataset_is_inside(create_plist, outcome))
        return false;

    struct h5_dataset about;
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    if (!type_describe(type, &about, outcome))
        return false;
    if (H5Sget_simple_extent_npoints(space) == 0)
        return true;

    struct reading reading = {dataset, type, outcome, NULL, 0};
    bool good = slab_each(space, about.size, chunk_rows(create_plist), SLAB, read_slab, &reading);
    free(reading.buffer);
    if (!good && outcome->code == H5_EXIT_OK)
        fail_hdf5(outcome, H5_EXIT_DAMAGED, "the shape cannot be read");
    return good;
}
