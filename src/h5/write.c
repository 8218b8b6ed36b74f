/* `write`: tensors from stdin into a file that stays whole from one sync to the next. */
#define _GNU_SOURCE
#include "h5/h5.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLAB ((size_t)4 << 20)
enum {
    MOST_UNSYNCED = 4096,      /* tensors whose metadata waits in memory */
    METADATA_ROOM = 64 * 1024, /* more than one tensor needs */
};

struct target {
    hid_t file;
    hid_t ordered; /* how groups are created: links keep their order */
    const struct write_request *request;
    bool kept;         /* the file has its name: it must be whole whatever happens */
    off_t reserved;    /* up to where the disk has room for it */
    off_t whole;       /* its size when it last was */
    hid_t step_group;  /* of a step that the root does not lead to yet; or -1 */
    int64_t step;      /* which */
    unsigned unsynced; /* tensors since then */
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

/* Writes what is new while nothing of the old leads there, and only then lets the root lead to it:
 * the few bytes of that are all that could be cut in half. */
static bool link_step(struct target *target)
{
    char name[32];
    if (target->step_group < 0)
        return true;
    snprintf(name, sizeof name, "%lld", (long long)target->step);
    bool good = (!target->kept || H5Fflush(target->file, H5F_SCOPE_GLOBAL) >= 0) &&
                H5Olink(target->step_group, target->file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0;
    good = H5Gclose(target->step_group) >= 0 && good;
    target->step_group = -1;
    return good;
}

/* The group of a step; a new one is linked when the next comes, or the file is closed. */
static hid_t enter_step(struct target *target, int64_t step)
{
    char name[32];
    if (target->step_group >= 0 && target->step != step && !link_step(target))
        return -1;
    snprintf(name, sizeof name, "%lld", (long long)step);
    if (target->step_group < 0 && H5Lexists(target->file, name, H5P_DEFAULT) > 0)
        return H5Gopen2(target->file, name, H5P_DEFAULT);
    if (target->step_group < 0) {
        target->step = step;
        target->step_group = H5Gcreate_anon(target->file, target->ordered, H5P_DEFAULT);
    }
    if (target->step_group >= 0)
        H5Iinc_ref(target->step_group); /* the caller closes it too */
    return target->step_group;
}

/* Opens the group that is to hold the tensor and leaves the last component of its name in *leaf. */
static hid_t enter_path(struct target *target, struct incoming *tensor, char **leaf)
{
    hid_t group = tensor->head.step >= 0 ? enter_step(target, tensor->head.step)
                                         : H5Gopen2(target->file, "/", H5P_DEFAULT);
    char *name = tensor->name, *slash;
    while (group >= 0 && (slash = strchr(name, '/'))) {
        *slash = '\0';
        hid_t inner = usable_component(name) ? enter_group(target, group, name) : -1;
        *slash = '/';
        H5Gclose(group);
        group = inner;
        name = slash + 1;
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

static bool create_and_write(struct target *target, const struct incoming *tensor, hid_t group,
                             const char *leaf)
{
    const struct h5_tensor *head = &tensor->head;
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
    if (dataset >= 0 && !good)
        H5Ldelete(group, leaf, H5P_DEFAULT); /* half a tensor is worse than none */
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(plist);
    return good;
}

/* Takes the room on the disk that the file will need when it grows by so many bytes, and its
 * metadata: whatever is accepted can also be closed. 0, or an errno. */
static int take_room(struct target *target, uint64_t bytes)
{
    void *handle;
    hsize_t size;
    struct rlimit limit;
    if (!target->kept)
        return 0;
    if (H5Fget_vfd_handle(target->file, H5P_DEFAULT, &handle) < 0 ||
        H5Fget_filesize(target->file, &size) < 0)
        return EIO;
    const off_t needed = (off_t)(size + bytes);
    if (needed <= target->reserved)
        return 0;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < (rlim_t)needed)
        return EFBIG;
    const off_t from = target->reserved;
    while (fallocate(*(const int *)handle, FALLOC_FL_KEEP_SIZE, from, needed - from) != 0)
        if (errno != EINTR) /* some file systems cannot promise anything */
            return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
    target->reserved = needed;
    return 0;
}

static bool write_tensor(struct target *target, struct incoming *tensor)
{
    char *leaf = tensor->name;
    int error = take_room(target, tensor->head.bytes + METADATA_ROOM);
    if (error)
        return fail(target->outcome, H5_EXIT_IO, "cannot write \"%s\": %s", tensor->name,
                    strerror(error));
    hid_t group = enter_path(target, tensor, &leaf);
    bool good;
    if (group < 0 || !usable_component(leaf))
        good = fail_hdf5(target->outcome, H5_EXIT_USAGE,
                         "no place in the file for a tensor called \"%s\"", tensor->name);
    else if (H5Lexists(group, leaf, H5P_DEFAULT) > 0)
        good = fail(target->outcome, H5_EXIT_USAGE, "\"%s\" is already in the file", tensor->name);
    else
        good = create_and_write(target, tensor, group, leaf);
    if (group >= 0)
        H5Gclose(group); /* a file with open groups would not be closed */
    return good;
}

/* A mark is a head with an empty name. */
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

/* -- Staying whole ----------------------------------------------------------------------------- */

/* Metadata stays in memory until the file is closed, and elements go behind what is there: until
 * then the file on the disk is the one that was closed last. */
static bool hold_metadata(hid_t file)
{
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
    if (H5Fget_mdc_config(file, &config) < 0)
        return false;
    config.evictions_enabled = false;
    config.incr_mode = H5C_incr__off;
    config.flash_incr_mode = H5C_flash_incr__off;
    config.decr_mode = H5C_decr__off;
    return H5Fset_mdc_config(file, &config) >= 0;
}

static bool close_whole(struct target *target)
{
    int error = take_room(target, 0);
    if (error) { /* as it was when it last was whole */
        const char *left = truncate(target->request->name, target->whole) == 0 ? "" : ", damaged";
        return fail(target->outcome, H5_EXIT_IO, "cannot finish the file: %s%s", strerror(error),
                    left);
    }
    if (!link_step(target) || H5Fclose(target->file) < 0)
        return fail_hdf5(target->outcome, H5_EXIT_IO, "cannot finish the file");
    target->file = -1;
    return true;
}

/* Gives back what was reserved behind the end, and notes where that is. */
static bool measure(struct target *target)
{
    struct stat now;
    const char *name = target->request->name;
    if (stat(name, &now) != 0 || truncate(name, now.st_size) != 0)
        return fail(target->outcome, H5_EXIT_IO, "cannot go on with the file: %s", strerror(errno));
    target->whole = target->reserved = now.st_size;
    target->unsynced = 0;
    return true;
}

static bool sync_file(struct target *target)
{
    const struct write_request *request = target->request;
    if (!close_whole(target))
        return false;
    if (!target->kept && rename(request->path, request->name) != 0)
        return fail(target->outcome, H5_EXIT_IO, "cannot rename it into place: %s",
                    strerror(errno));
    target->kept = true;
    if (!measure(target))
        return false;
    /* Nothing is allocated ahead: closing would cut it off, and be without the right end meanwhile.
     */
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_meta_block_size(access, 0);
    H5Pset_small_data_block_size(access, 0);
    H5Pset_alignment(access, 1, 8); /* elements are mapped */
    target->file = H5Fopen(request->name, H5F_ACC_RDWR, access);
    H5Pclose(access);
    if (target->file < 0 || !hold_metadata(target->file))
        return fail_hdf5(target->outcome, H5_EXIT_IO, "cannot go on with the file");
    return true;
}

/* -- The stream -------------------------------------------------------------------------------- */

static bool obey_mark(struct target *target, int64_t mark)
{
    const char done = 0;
    if (mark != H5_SYNC)
        return true;
    return sync_file(target) &&
           (write(STDIN_FILENO, &done, 1) == 1 || ended_early(target->outcome));
}

static bool receive_all(struct target *target)
{
    for (;;) {
        struct incoming tensor = {0};
        bool good = receive_head(&tensor, target->outcome);
        const bool mark = good && !tensor.head.name_length;
        const bool end = mark && tensor.head.step != H5_SYNC;
        if (mark)
            good = obey_mark(target, tensor.head.step);
        else
            good = good && write_tensor(target, &tensor);
        free(tensor.name);
        free(tensor.dtype);
        if (good && target->kept && ++target->unsynced > MOST_UNSYNCED)
            good = sync_file(target);
        if (!good || end)
            return good;
    }
}

static bool create_file(struct target *target)
{
    const struct write_request *request = target->request;
    unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    hid_t create_plist = H5Pcreate(H5P_FILE_CREATE);
    target->ordered = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_link_creation_order(create_plist, order);
    H5Pset_link_creation_order(target->ordered, order);
    target->file = H5Fcreate(request->path, H5F_ACC_TRUNC, create_plist, H5P_DEFAULT);
    if (target->file < 0)
        return fail_hdf5(target->outcome, H5_EXIT_IO, "cannot create the file");

    const int64_t *ranks[] = {&request->global_rank, &request->local_rank};
    const char *const names[] = {"globalrank", "localrank"};
    hid_t root = H5Gopen2(target->file, "/", H5P_DEFAULT);
    bool good = true;
    for (int i = 0; i < 2 && good; i++)
        good = *ranks[i] < 0 || write_attribute(root, names[i], H5T_STD_I64LE, ranks[i]);
    H5Gclose(root);
    return good || fail_hdf5(target->outcome, H5_EXIT_IO, "cannot write the ranks");
}

/* Whoever ends the program may mean the whole group: this process ends when its stream does, with a
 * file that is whole. A full disk is an error, not a signal. */
static void ignore_signals(void)
{
    const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
}

bool write_file(const struct write_request *request, struct outcome *outcome)
{
    struct target target = {.request = request, .file = -1, .step_group = -1, .outcome = outcome};
    ignore_signals();
    watch_parent();
    bool good = create_file(&target) && receive_all(&target);
    if (good)
        return close_whole(&target) && (!target.kept || measure(&target));
    if (!target.kept) {
        unlink(request->path);
    } else if (target.file >= 0) {
        struct outcome first = *outcome;
        if (close_whole(&target))
            measure(&target);
        *outcome = first; /* which is the one to tell */
    }
    return false;
}
