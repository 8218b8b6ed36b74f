/* `list`: every dataset of a file, in the order of creation where the file kept it. */
#define _GNU_SOURCE
#include "h5/dataset.h"
#include "h5/seen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64
#define MAX_LINKS ((uint64_t)1 << 22)

struct walk {
    struct outcome *outcome;
    struct seen groups;
    hid_t link_access;
    bool shifted;
    uint64_t links, steps;
    unsigned depth;
    char path[H5_MAX_PATH];
    size_t length;
};

static void emit(const void *data, size_t size)
{
    if (size)
        fwrite(data, 1, size, stdout);
}

static void emit_dataset(const struct walk *walk, struct dataset *dataset)
{
    struct h5_dataset *head = &dataset->head;
    head->path_length = (uint32_t)walk->length;
    head->dtype_length = (uint32_t)strlen(dataset->dtype);
    emit(head, sizeof *head);
    emit(dataset->shape, head->ndim * sizeof *dataset->shape);
    if (head->layout == H5_CHUNKED)
        emit(dataset->chunk_shape, head->ndim * sizeof *dataset->chunk_shape);
    emit(dataset->chunks, head->chunk_count * sizeof *dataset->chunks);
    emit(walk->path, walk->length);
    emit(dataset->dtype, head->dtype_length);
}

/* Lists what lies at the current path as unreadable. */
static void emit_failure(const struct walk *walk, const struct outcome *why)
{
    size_t length = strnlen(why->text, H5_MAX_TEXT);
    struct h5_dataset head = {.status = (uint8_t)why->code,
                              .path_length = (uint32_t)walk->length,
                              .reason_length = (uint32_t)length};
    emit(&head, sizeof head);
    emit(walk->path, walk->length);
    emit(why->text, length);
}

static void list_dataset(struct walk *walk, hid_t object)
{
    struct dataset dataset;
    struct outcome why = {.code = H5_EXIT_OK};
    if (dataset_describe(&dataset, object, walk->shifted, &walk->steps, &why))
        emit_dataset(walk, &dataset);
    else
        emit_failure(walk, &why);
    free(dataset.chunks);
}

static bool list_group(struct walk *walk, hid_t group, struct outcome *why);

static void list_object(struct walk *walk, hid_t object, H5L_type_t link)
{
    struct outcome why = {.code = H5_EXIT_OK};
    H5I_type_t kind = H5Iget_type(object);
    if (kind == H5I_DATASET) {
        list_dataset(walk, object);
    } else if (kind == H5I_GROUP && link == H5L_TYPE_HARD &&
               seen_first_time(&walk->groups, object)) {
        if (walk->depth >= MAX_DEPTH)
            fail(&why, H5_EXIT_UNSUPPORTED, "groups nested deeper than %d", MAX_DEPTH);
        else
            list_group(walk, object, &why);
        if (why.code != H5_EXIT_OK)
            emit_failure(walk, &why);
    }
}

/* What a link stands for; where it leads nowhere plumb goes, that is listed instead. */
static void list_link(struct walk *walk, hid_t group, const char *name, H5L_type_t link)
{
    struct outcome why = {.code = H5_EXIT_OK};
    bool followed = link == H5L_TYPE_HARD || link == H5L_TYPE_SOFT;
    hid_t object = followed ? H5Oopen(group, name, walk->link_access) : -1;
    if (object >= 0) {
        list_object(walk, object, link);
        H5Oclose(object);
        return;
    }
    if (link == H5L_TYPE_HARD)
        fail_hdf5(&why, H5_EXIT_DAMAGED, "it cannot be opened");
    else
        fail(&why, H5_EXIT_UNSUPPORTED,
             "a link that leads nowhere, or into another file: bring the data in with h5repack");
    emit_failure(walk, &why);
}

static herr_t on_link(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    struct walk *walk = context;
    if (++walk->links > MAX_LINKS) {
        fail(walk->outcome, H5_EXIT_UNSUPPORTED, "more than %llu links",
             (unsigned long long)MAX_LINKS);
        return -1;
    }
    size_t before = walk->length;
    int added = snprintf(walk->path + before, sizeof walk->path - before, "/%s", name);
    struct outcome why = {.code = H5_EXIT_OK};
    if (added < 0 || (size_t)added >= sizeof walk->path - before) {
        walk->length = sizeof walk->path - 1;
        fail(&why, H5_EXIT_UNSUPPORTED, "a path of more than %d bytes", H5_MAX_PATH - 1);
        emit_failure(walk, &why);
    } else {
        walk->length = before + (size_t)added;
        list_link(walk, group, name, info->type);
        H5Eclear2(H5E_DEFAULT);
    }
    walk->length = before;
    walk->path[before] = '\0';
    return walk->outcome->code == H5_EXIT_OK && !ferror(stdout) ? 0 : -1;
}

/* The order of creation, where the group kept it. */
static H5_index_t best_index(hid_t group)
{
    unsigned flags = 0;
    hid_t plist = H5Gget_create_plist(group);
    if (plist < 0 || H5Pget_link_creation_order(plist, &flags) < 0)
        flags = 0;
    H5Pclose(plist);
    return flags & H5P_CRT_ORDER_TRACKED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
}

static bool list_group(struct walk *walk, hid_t group, struct outcome *why)
{
    walk->depth++;
    herr_t status = H5Literate(group, best_index(group), H5_ITER_INC, NULL, on_link, walk);
    walk->depth--;
    if (status < 0)
        return fail_hdf5(why, H5_EXIT_DAMAGED, "the group cannot be listed");
    return true;
}

/* An attribute that is one integer; -1 when there is none. */
static int64_t rank_attribute(hid_t group, const char *name)
{
    int64_t value = -1;
    if (H5Aexists(group, name) <= 0)
        return -1;
    hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    if (H5Tget_class(type) != H5T_INTEGER || H5Sget_simple_extent_npoints(space) != 1 ||
        H5Aread(attribute, H5T_NATIVE_INT64, &value) < 0 || value < 0)
        value = -1;
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return value;
}

bool list_file(const char *path, struct outcome *outcome)
{
    hid_t file = open_file(path, outcome);
    if (file < 0)
        return false;
    hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);
    if (root < 0)
        return fail_hdf5(outcome, H5_EXIT_DAMAGED, "the root group cannot be opened");

    hsize_t user_block = 0;
    hid_t create_plist = H5Fget_create_plist(file);
    H5Pget_userblock(create_plist, &user_block);
    struct h5_hello hello = {H5_MAGIC, rank_attribute(root, "globalrank"),
                             rank_attribute(root, "localrank")};
    emit(&hello, sizeof hello);

    struct walk walk = {.outcome = outcome,
                        .link_access = inside_only(H5P_LINK_ACCESS),
                        .shifted = user_block != 0};
    seen_first_time(&walk.groups, root);
    struct outcome why = {.code = H5_EXIT_OK};
    bool good = list_group(&walk, root, &why);
    seen_free(&walk.groups);

    struct h5_dataset end = {0};
    emit(&end, sizeof end);
    if (fflush(stdout) != 0)
        return fail(outcome, H5_EXIT_IO, "the reader went away");
    if (!good && outcome->code == H5_EXIT_OK)
        *outcome = why;
    return good;
}
