/* One dataset: its shape, type and attributes, and where its bytes or chunks lie. */
#define _GNU_SOURCE
#include "h5/dataset.h"

#include <stdlib.h>
#include <string.h>

/* libhdf5 1.10 walks over all chunks before the one asked for: a table of n takes n^2/2 steps of
 * about 17 ns. What would take longer than this, in one dataset or in a file, is read by libhdf5
 * instead. */
#define MAX_CHUNKS 8192
#define MAX_STEPS ((uint64_t)1 << 27)

/* The pipelines plumb decodes itself: nothing, or shuffle and deflate in that order. */
static bool known_filters(hid_t create_plist, size_t element, uint8_t filters[H5_MAX_FILTERS])
{
    int count = H5Pget_nfilters(create_plist);
    if (count < 0 || count > 2)
        return false;
    for (int i = 0; i < count; i++) {
        unsigned flags, values[8] = {0}, config;
        size_t value_count = sizeof values / sizeof values[0];
        H5Z_filter_t id = H5Pget_filter2(create_plist, (unsigned)i, &flags, &value_count, values, 0,
                                         NULL, &config);
        if (id == H5Z_FILTER_SHUFFLE && i == 0 && value_count == 1 && values[0] == element)
            filters[i] = H5_SHUFFLE;
        else if (id == H5Z_FILTER_DEFLATE && i == count - 1)
            filters[i] = H5_DEFLATE;
        else
            return false;
    }
    return true;
}

static bool fill_is_zero(hid_t create_plist, hid_t type, size_t element)
{
    static const char zero[16];
    char value[16] = {0};
    H5D_fill_value_t status;
    if (element > sizeof value || H5Pfill_value_defined(create_plist, &status) < 0)
        return false;
    if (status != H5D_FILL_VALUE_USER_DEFINED)
        return true;
    return H5Pget_fill_value(create_plist, type, value) >= 0 && !memcmp(value, zero, element);
}

/* The chunk table; false where it is better left to libhdf5. */
static bool describe_chunks(struct dataset *out, hid_t dataset, hid_t space, hid_t create_plist,
                            uint64_t *steps)
{
    int rank = out->head.ndim;
    hsize_t chunk[H5S_MAX_RANK], count;
    unsigned options;
    if (rank == 0 || H5Pget_chunk(create_plist, rank, chunk) != rank ||
        H5Pget_chunk_opts(create_plist, &options) < 0 || options != 0 ||
        H5Dget_num_chunks(dataset, space, &count) < 0 || count > MAX_CHUNKS)
        return false;
    *steps += count * count / 2;
    if (*steps > MAX_STEPS)
        return false;

    out->chunks = calloc(count ? count : 1, sizeof *out->chunks);
    if (!out->chunks)
        return false;
    for (hsize_t i = 0; i < count; i++) {
        hsize_t at[H5S_MAX_RANK] = {0}, bytes = 0;
        haddr_t address = HADDR_UNDEF;
        unsigned mask = 0;
        if (H5Dget_chunk_info(dataset, space, i, at, &mask, &address, &bytes) < 0 ||
            address == HADDR_UNDEF || bytes > UINT32_MAX)
            return false;
        uint64_t index = 0;
        for (int d = 0; d < rank; d++) {
            if (!chunk[d] || at[d] % chunk[d] || at[d] >= out->shape[d])
                return false;
            uint64_t across = (out->shape[d] - 1) / chunk[d] + 1;
            if (__builtin_mul_overflow(index, across, &index))
                return false;
            index += at[d] / chunk[d];
        }
        out->chunks[i] = (struct h5_chunk){index, address, (uint32_t)bytes, mask};
    }
    for (int d = 0; d < rank; d++)
        out->chunk_shape[d] = chunk[d];
    out->head.chunk_count = count;
    return true;
}

static void describe_layout(struct dataset *out, hid_t dataset, hid_t type, hid_t space,
                            hid_t create_plist, bool shifted, uint64_t *steps)
{
    size_t element = out->head.size;
    out->head.layout = H5_ASK;
    if (H5Sget_simple_extent_npoints(space) == 0) {
        out->head.layout = H5_CONTIGUOUS;
    } else if (shifted) {
        return;
    } else if (H5Pget_layout(create_plist) == H5D_CONTIGUOUS) {
        haddr_t address = H5Dget_offset(dataset);
        if (address == HADDR_UNDEF)
            return;
        out->head.layout = H5_CONTIGUOUS;
        out->head.offset = address;
        out->head.bytes = H5Dget_storage_size(dataset);
    } else if (H5Pget_layout(create_plist) == H5D_CHUNKED &&
               known_filters(create_plist, element, out->head.filters) &&
               fill_is_zero(create_plist, type, element) &&
               describe_chunks(out, dataset, space, create_plist, steps)) {
        out->head.layout = H5_CHUNKED;
    }
}

/* Says now what reading would stumble over: a filter that this libhdf5 lacks, and that was used. */
static bool filters_are_there(hid_t dataset, hid_t space, hid_t create_plist,
                              struct outcome *outcome)
{
    int count = H5Pget_nfilters(create_plist);
    for (int i = 0; i < count; i++) {
        unsigned flags, config, passed_over = 0;
        size_t value_count = 0;
        char name[64] = "";
        H5Z_filter_t id = H5Pget_filter2(create_plist, (unsigned)i, &flags, &value_count, NULL,
                                         sizeof name, name, &config);
        if (id < 0 || H5Zfilter_avail(id) > 0)
            continue;
        hsize_t at[H5S_MAX_RANK], bytes;
        haddr_t address;
        if (H5Dget_chunk_info(dataset, space, 0, at, &passed_over, &address, &bytes) >= 0 &&
            !(passed_over >> i & 1))
            return fail(outcome, H5_EXIT_UNSUPPORTED,
                        "packed with filter %d (%s), which libhdf5 has not here: unpack it with "
                        "h5repack",
                        (int)id, name);
    }
    return true;
}

/* A dtype attribute that is not one short string is as good as none. */
static void describe_attribute(struct dataset *out, hid_t dataset)
{
    if (H5Aexists(dataset, "dtype") <= 0)
        return;
    hid_t attribute = H5Aopen(dataset, "dtype", H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    if (H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1) {
        char *text = NULL;
        if (H5Tis_variable_str(type) > 0) {
            if (H5Aread(attribute, type, &text) >= 0 && text && strlen(text) < sizeof out->dtype)
                memcpy(out->dtype, text, strlen(text) + 1);
            H5free_memory(text);
        } else if (H5Tget_size(type) < sizeof out->dtype) {
            if (H5Aread(attribute, type, out->dtype) < 0)
                out->dtype[0] = '\0';
            size_t length = strnlen(out->dtype, H5Tget_size(type));
            while (length > 0 && out->dtype[length - 1] == ' ')
                length--;
            out->dtype[length] = '\0';
        }
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
}

/* So is a path_call that is not one whole number. */
static void describe_call(struct dataset *out, hid_t dataset)
{
    int64_t call = -1;
    if (H5Aexists(dataset, "path_call") <= 0)
        return;
    hid_t attribute = H5Aopen(dataset, "path_call", H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    if (H5Tget_class(type) == H5T_INTEGER && H5Sget_simple_extent_npoints(space) == 1 &&
        H5Aread(attribute, H5T_NATIVE_INT64, &call) >= 0 && call >= 0 && call < UINT16_MAX)
        out->head.path_call = (uint16_t)(call + 1);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
}

static bool describe_shape(struct dataset *out, hid_t space, struct outcome *outcome)
{
    int rank = H5Sget_simple_extent_ndims(space);
    if (H5Sget_simple_extent_type(space) == H5S_NULL) {
        out->head.ndim = 1; /* h5py.Empty: a type without elements */
        return true;
    }
    if (rank < 0 || rank > H5_MAX_RANK)
        return fail_hdf5(outcome, H5_EXIT_DAMAGED, "the shape cannot be read");
    hsize_t shape[H5S_MAX_RANK];
    if (H5Sget_simple_extent_dims(space, shape, NULL) < 0)
        return fail_hdf5(outcome, H5_EXIT_DAMAGED, "the shape cannot be read");
    for (int i = 0; i < rank; i++)
        out->shape[i] = shape[i];
    out->head.ndim = (uint8_t)rank;
    return true;
}

bool dataset_describe(struct dataset *out, hid_t dataset, bool shifted, uint64_t *steps,
                      struct outcome *outcome)
{
    *out = (struct dataset){0};
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    hid_t create_plist = H5Dget_create_plist(dataset);
    bool good = false;
    if (type < 0 || space < 0 || create_plist < 0) {
        fail_hdf5(outcome, H5_EXIT_DAMAGED, "the dataset cannot be read");
    } else {
        good = dataset_is_inside(create_plist, outcome) &&
               filters_are_there(dataset, space, create_plist, outcome) &&
               type_describe(type, &out->head, outcome) && describe_shape(out, space, outcome);
    }
    if (good) {
        describe_layout(out, dataset, type, space, create_plist, shifted, steps);
        describe_attribute(out, dataset);
        describe_call(out, dataset);
    }
    H5Pclose(create_plist);
    H5Sclose(space);
    H5Tclose(type);
    H5Eclear2(H5E_DEFAULT);
    return good;
}
