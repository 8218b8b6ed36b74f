#include "h5/h5.h"

#include <stdio.h>

#include <stdlib.h>
#include <string.h>

#define SLAB ((size_t)4 << 20)

struct target {
    hid_t file;
    hid_t ordered; /* how groups are created: links keep their order */
    struct outcome *outcome;
};

/* One tensor as announced. */
struct incoming {
    struct h5_tensor head;
    hsize_t shape[H5_MAX_RANK];
    char *name, *dtype;
};

struct writing {
    hid_t dataset, type;
    struct outcome *outcome;
    char *buffer;
};

static bool ended_early(struct outcome *outcome)
{
    return fail(outcome, H5_EXIT_IO, "the writer went away before the end of the file");
}

static bool write_attribute(hid_t object, const char *name, hid_t type, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
    if (attribute >= 0)
        good = H5Aclose(attribute) >= 0 && good;
    H5Sclose(space);
    return good;
}

/* h5py reads a variable-length UTF-8 string as str. */
static bool write_text_attribute(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    bool good = write_attribute(object, name, type, &text);
    H5Tclose(type);
    return good;
}

/* The group `name` of parent, made when missing. Negative on failure. */
static hid_t enter_group(struct target *target, hid_t parent, const char *name)
{
    htri_t there = H5Lexists(parent, name, H5P_DEFAULT);
    if (there > 0)
        return H5Gopen2(parent, name, H5P_DEFAULT);
    return H5Gcreate2(parent, name, H5P_DEFAULT, target->ordered, H5P_DEFAULT);
}

static bool usable_component(const char *name)
{
    return *name && strcmp(name, ".") != 0;
}

/* Opens the group that is to hold the tensor and leaves the last component of its name in *leaf. */
static hid_t enter_path(struct target *target, struct incoming *tensor, char **leaf)
{
    char step[32];
    hid_t group = H5Gopen2(target->file, "/", H5P_DEFAULT);
    char *name = tensor->head.step >= 0 ? step : tensor->name;
    if (tensor->head.step >= 0)
        snprintf(step, sizeof step, "%lld", (long long)tensor->head.step);
    for (;;) {
        char *slash = name == step ? NULL : strchr(name, '/');
        if (name != step && !slash)
            break;
        if (slash)
            *slash = '\0';
        hid_t inner = usable_component(name) ? enter_group(target, group, name) : -1;
        H5Gclose(group);
        if (slash)
            *slash = '/';
        if (inner < 0)
            return -1;
        group = inner;
        name = slash ? slash + 1 : tensor->name;
    }
    *leaf = name;
    return group;
}

static bool write_slab(void *context, const struct slab *slab)
{
    struct writing *writing = context;
    if (slab->bytes > SLAB) {
        char *larger = realloc(writing->buffer, slab->bytes);
        if (!larger)
            return fail(writing->outcome, H5_EXIT_IO, "out of memory for %zu bytes", slab->bytes);
        writing->buffer = larger;
    }
    if (!get_bytes(writing->buffer, slab->bytes))
        return ended_early(writing->outcome);
    if (H5Dwrite(writing->dataset, writing->type, slab->memory_space, slab->space, H5P_DEFAULT,
                 writing->buffer) < 0)
        return fail_hdf5(writing->outcome, H5_EXIT_IO, "cannot write");
    return true;
}

static bool write_elements(struct target *target, const struct incoming *tensor, hid_t dataset,
                           hid_t type, hid_t space)
{
    if (!tensor->head.bytes)
        return true;
    struct writing writing = {dataset, type, target->outcome, malloc(SLAB)};
    if (!writing.buffer)
        return fail(target->outcome, H5_EXIT_IO, "out of memory");
    bool good = slab_each(space, tensor->head.size, 1, SLAB, write_slab, &writing);
    free(writing.buffer);
    if (!good && target->outcome->code == H5_EXIT_OK)
        fail_hdf5(target->outcome, H5_EXIT_IO, "cannot write \"%s\"", tensor->name);
    return good;
}

static bool write_tensor(struct target *target, struct incoming *tensor)
{
    const struct h5_tensor *head = &tensor->head;
    char *leaf = tensor->name;
    hid_t group = enter_path(target, tensor, &leaf);
    if (group < 0 || !usable_component(leaf))
        return fail_hdf5(target->outcome, H5_EXIT_USAGE,
                         "no place in the file for a tensor called \"%s\"", tensor->name);
    if (H5Lexists(group, leaf, H5P_DEFAULT) > 0)
        return fail(target->outcome, H5_EXIT_USAGE, "\"%s\" is already in the file", tensor->name);

    /* Contiguous, and never filled with zeros first: every element follows. */
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(plist, H5D_CONTIGUOUS);
    H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER);
    hid_t type = type_make(head->type, head->size, head->big_endian);
    hid_t space =
        head->ndim ? H5Screate_simple(head->ndim, tensor->shape, NULL) : H5Screate(H5S_SCALAR);
    hid_t dataset = H5Dcreate2(group, leaf, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    bool good = true;
    int64_t call = (int64_t)head->path_call - 1;
    if (dataset < 0 || !write_text_attribute(dataset, "dtype", tensor->dtype) ||
        (call >= 0 && !write_attribute(dataset, "path_call", H5T_STD_I64LE, &call)))
        good = fail_hdf5(target->outcome, H5_EXIT_IO, "cannot create \"%s\"", tensor->name);
    good = good && write_elements(target, tensor, dataset, type, space);
    if (dataset >= 0 && H5Dclose(dataset) < 0 && good)
        good = fail_hdf5(target->outcome, H5_EXIT_IO, "cannot write \"%s\"", tensor->name);
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(plist);
    H5Gclose(group);
    return good;
}

/* The end mark is a head with an empty name. */
static bool receive_head(struct incoming *tensor, struct outcome *outcome)
{
    const struct h5_tensor *head = &tensor->head;
    if (!get_bytes(&tensor->head, sizeof tensor->head))
        return ended_early(outcome);
    if (!head->name_length)
        return true;
    if (head->ndim > H5_MAX_RANK || head->name_length >= H5_MAX_PATH ||
        head->dtype_length >= H5_MAX_TEXT)
        return fail(outcome, H5_EXIT_UNSUPPORTED, "a tensor that HDF5 cannot hold");
    tensor->name = calloc(1, head->name_length + 1);
    tensor->dtype = calloc(1, head->dtype_length + 1);
    if (!tensor->name || !tensor->dtype)
        return fail(outcome, H5_EXIT_IO, "out of memory");
    if (!get_bytes(tensor->shape, head->ndim * sizeof *tensor->shape) ||
        !get_bytes(tensor->name, head->name_length) ||
        !get_bytes(tensor->dtype, head->dtype_length))
        return ended_early(outcome);
    return true;
}

static bool receive_all(struct target *target)
{
    for (;;) {
        struct incoming tensor = {0};
        bool good = receive_head(&tensor, target->outcome);
        bool end = good && !tensor.head.name_length;
        good = good && (end || write_tensor(target, &tensor));
        free(tensor.name);
        free(tensor.dtype);
        if (!good || end)
            return good;
    }
}

bool write_file(const char *path, int64_t global_rank, int64_t local_rank, struct outcome *outcome)
{
    struct target target = {.outcome = outcome};
    unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    hid_t create_plist = H5Pcreate(H5P_FILE_CREATE);
    target.ordered = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_link_creation_order(create_plist, order);
    H5Pset_link_creation_order(target.ordered, order);
    target.file = H5Fcreate(path, H5F_ACC_TRUNC, create_plist, H5P_DEFAULT);
    if (target.file < 0)
        return fail_hdf5(outcome, H5_EXIT_IO, "cannot create the file");

    hid_t root = H5Gopen2(target.file, "/", H5P_DEFAULT);
    bool good =
        (global_rank < 0 || write_attribute(root, "globalrank", H5T_STD_I64LE, &global_rank)) &&
        (local_rank < 0 || write_attribute(root, "localrank", H5T_STD_I64LE, &local_rank));
    H5Gclose(root);
    if (!good)
        fail_hdf5(outcome, H5_EXIT_IO, "cannot write the ranks");
    good = good && receive_all(&target);
    if (H5Fclose(target.file) < 0 && good)
        good = fail_hdf5(outcome, H5_EXIT_IO, "cannot finish the file");
    return good;
}
