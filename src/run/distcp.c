/* PyTorch's distributed checkpoints: a pickle, .metadata, says where in which .distcp file the
 * chunks of each tensor are. Tensors are put together when they are loaded.
 *
 * The pickle is read as data, never executed; a chunk is an archive of its own inside the file. */
#define _GNU_SOURCE
#include "base/map.h"
#include "base/mapped.h"
#include "format/pickle.h"
#include "run/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_CHUNKS = 65536 };

/* A part of a tensor, and where it lies in the whole. */
struct chunk {
    const struct plumb_record *record; /* in its own file */
    const struct format *format;
    uint64_t size; /* of the file */
    int64_t mtime_ns;
    int64_t *at; /* by axis */
};

struct tensor {
    struct chunk *chunks;
    size_t count, room;
    unsigned ndim;
    int64_t *shape;
    struct plumb_error *error;
};

struct reading {
    struct plumb_run *run;
    struct arena arena; /* of the pickle */
    struct plumb_error *err;
};

/* ---- The pickle ------------------------------------------------------------------------------ */

/* The value of a key of a dict, or of an attribute of an object; NULL: there is none. */
static const struct pickle_value *find(const struct pickle_value *of, const char *key)
{
    if (of && of->kind == PICKLE_OBJECT)
        of = of->object->state;
    if (!of || of->kind != PICKLE_DICT)
        return NULL;
    for (uint32_t i = 0; i + 1 < of->items.count; i += 2)
        if (pickle_is_str(of->items.at[i], key))
            return of->items.at[i + 1];
    return NULL;
}

/* torch.Size((2, 3)), or a tuple; false: neither. */
static bool read_size(const struct pickle_value *value, struct arena *arena, unsigned *ndim,
                      int64_t **out)
{
    if (value && value->kind == PICKLE_OBJECT && value->object->args &&
        value->object->args->kind == PICKLE_TUPLE && value->object->args->items.count == 1)
        value = value->object->args->items.at[0];
    if (!value || (value->kind != PICKLE_TUPLE && value->kind != PICKLE_LIST) ||
        value->items.count > PLUMB_MAX_RANK)
        return false;
    *ndim = value->items.count;
    *out = arena_array(arena, *ndim + 1, sizeof **out);
    for (unsigned i = 0; *out && i < *ndim; i++) {
        if (value->items.at[i]->kind != PICKLE_INT || value->items.at[i]->integer < 0)
            return false;
        (*out)[i] = value->items.at[i]->integer;
    }
    return *out != NULL;
}

static bool read_number(const struct pickle_value *value, uint64_t *out)
{
    if (!value || value->kind != PICKLE_INT || value->integer < 0)
        return false;
    *out = (uint64_t)value->integer;
    return true;
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

/* Lists what is at [offset, offset+length) of a file: one tensor. */
static enum plumb_code list_chunk(struct reading *r, struct chunk *chunk, const char *path,
                                  uint64_t offset, uint64_t length, struct plumb_error *err)
{
    struct plumb_file file;
    struct plumb_file_guard guard;
    struct listing listing = {.arena = &r->run->arena, .path = path};
    enum plumb_code code = plumb_file_map(&file, path, offset, length, err);
    if (code)
        return code;
    plumb_file_guard_enter(&guard, &file);
    chunk->format = format_probe(&file);
    code = chunk->format ? format_list(chunk->format, &listing, &file, err)
                         : plumb_fail(err, PLUMB_E_FORMAT, "what is there is no tensor");
    if (plumb_file_guard_leave(&guard) && !code)
        code = mapped_fail_shrank(err);
    if (!code && listing.count != 1)
        code = plumb_fail(err, PLUMB_E_FORMAT, "%zu tensors in the place of one", listing.count);
    if (!code && listing.records[0].error) {
        *err = *listing.records[0].error;
        code = err->code;
    }
    if (!code && listing.records[0].detail)
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "a chunk that is compressed");
    if (!code) {
        listing.records[0].offset += offset;
        chunk->record = &listing.records[0];
        chunk->size = file.file_size;
        chunk->mtime_ns = file.mtime_ns;
    }
    plumb_file_unmap(&file);
    return code;
}

static bool is_plain_name(const struct pickle_value *value)
{
    return value && value->kind == PICKLE_STR && value->text.size && value->text.size < 256 &&
           value->text.bytes[0] != '.' && !memchr(value->text.bytes, '/', value->text.size) &&
           !memchr(value->text.bytes, '\0', value->text.size);
}

static enum plumb_code add_chunk(struct reading *r, struct tensor *tensor,
                                 const struct pickle_value *place, const struct pickle_value *info)
{
    struct arena *arena = &r->run->arena;
    struct plumb_error why;
    const struct pickle_value *name = find(info, "relative_path");
    uint64_t offset = 0, length = 0;
    unsigned ndim = 0;
    if (tensor->count == tensor->room) {
        tensor->room = tensor->room ? tensor->room * 2 : 4;
        struct chunk *chunks = arena_array(arena, tensor->room, sizeof *chunks);
        if (!chunks || tensor->room > MAX_CHUNKS)
            return plumb_no_memory(r->err);
        if (tensor->count)
            memcpy(chunks, tensor->chunks, tensor->count * sizeof *chunks);
        tensor->chunks = chunks;
    }
    struct chunk *chunk = &tensor->chunks[tensor->count];
    *chunk = (struct chunk){0};
    enum plumb_code code = PLUMB_OK;
    if (!is_plain_name(name) || !read_number(find(info, "offset"), &offset) ||
        !read_number(find(info, "length"), &length))
        code = plumb_fail(&why, PLUMB_E_FORMAT, ".metadata does not say where a chunk of it is");
    if (!code &&
        !(place && place->kind != PICKLE_NONE && read_size(place, arena, &ndim, &chunk->at)))
        chunk->at = NULL; /* it begins where the tensor does */
    if (!code) {
        const char *path =
            arena_printf(arena, "%s/%.*s", r->run->path, (int)name->text.size, name->text.bytes);
        if (!path)
            return plumb_no_memory(r->err);
        code = list_chunk(r, chunk, path, offset, length, &why);
        plumb_error_in_file(&why, path);
    }
    if (!code && chunk->at && ndim != tensor->ndim)
        code = plumb_fail(&why, PLUMB_E_FORMAT, "a chunk with %u axes of a tensor with %u", ndim,
                          tensor->ndim);
    if (code == PLUMB_E_NOMEM)
        return plumb_no_memory(r->err);
    if (code && !tensor->error) {
        tensor->error = arena_alloc(arena, sizeof why);
        if (!tensor->error)
            return plumb_no_memory(r->err);
        *tensor->error = why;
    }
    tensor->count += !code;
    return PLUMB_OK;
}

static int64_t begin_of(const struct chunk *chunk, unsigned axis)
{
    return chunk->at ? chunk->at[axis] : 0;
}

static bool overlap(const struct tensor *tensor, const struct chunk *a, const struct chunk *b)
{
    for (unsigned i = 0; i < tensor->ndim; i++)
        if (begin_of(a, i) >= begin_of(b, i) + b->record->shape[i] ||
            begin_of(b, i) >= begin_of(a, i) + a->record->shape[i])
            return false;
    return true;
}

/* Do the chunks fill the tensor, each place once? */
static bool fills(const struct tensor *tensor)
{
    uint64_t sum = 0, all = 1;
    for (unsigned i = 0; i < tensor->ndim; i++)
        if (__builtin_mul_overflow(all, (uint64_t)tensor->shape[i], &all))
            return false;
    for (size_t c = 0; c < tensor->count; c++) {
        const struct chunk *chunk = &tensor->chunks[c];
        if (chunk->record->ndim != tensor->ndim ||
            chunk->record->dtype != tensor->chunks[0].record->dtype)
            return false;
        for (unsigned i = 0; i < tensor->ndim; i++)
            if (begin_of(chunk, i) > tensor->shape[i] ||
                chunk->record->shape[i] > tensor->shape[i] - begin_of(chunk, i))
                return false;
        for (size_t k = 0; k < c; k++)
            if (overlap(tensor, chunk, &tensor->chunks[k]))
                return false;
        sum += chunk->record->count;
    }
    return tensor->count && sum == all;
}

static enum plumb_code add_record(struct reading *r, const struct pickle_value *name,
                                  struct tensor *tensor)
{
    struct listing *listing = &r->run->listing;
    listing->path = tensor->count ? tensor->chunks[0].record->path : r->run->path;
    struct plumb_record *record = listing_add(listing, name->text.bytes, name->text.size);
    struct plumb_error why;
    if (!record)
        return plumb_no_memory(r->err);
    if (!tensor->error && !fills(tensor)) {
        plumb_fail(&why, PLUMB_E_FORMAT, "its %zu chunks do not make up the tensor", tensor->count);
        return listing_fail(listing, record, &why);
    }
    if (tensor->error)
        return listing_fail(listing, record, tensor->error);
    record->detail = tensor;
    if (listing_set_shape(listing, record, tensor->chunks[0].record->dtype, tensor->ndim,
                          tensor->shape, &why))
        return listing_fail(listing, record, &why);
    return PLUMB_OK;
}

/* The tensors of the checkpoint, in its order. */
struct tensors {
    const struct pickle_value **names;
    struct tensor *list;
    size_t count;
    struct map by_name; /* to their numbers */
};

static enum plumb_code read_tensors(struct reading *r, struct tensors *out,
                                    const struct pickle_value *dict)
{
    const size_t most = dict->items.count / 2;
    out->names = arena_array(&r->arena, most, sizeof *out->names);
    out->list = arena_array(&r->run->arena, most, sizeof *out->list);
    if (!out->names || !out->list)
        return plumb_no_memory(r->err);
    for (uint32_t i = 0; i + 1 < dict->items.count; i += 2) {
        const struct pickle_value *name = dict->items.at[i];
        struct tensor *tensor = &out->list[out->count];
        bool added = false;
        if (name->kind != PICKLE_STR || !read_size(find(dict->items.at[i + 1], "size"),
                                                   &r->run->arena, &tensor->ndim, &tensor->shape))
            continue; /* no tensor, but bytes */
        uint64_t *number = map_put(&out->by_name, name->text.bytes, name->text.size, &added);
        if (!number)
            return plumb_no_memory(r->err);
        if (added) {
            *number = out->count;
            out->names[out->count++] = name;
        }
    }
    return PLUMB_OK;
}

static enum plumb_code read_chunks(struct reading *r, struct tensors *tensors,
                                   const struct pickle_value *storage)
{
    enum plumb_code code = PLUMB_OK;
    for (uint32_t i = 0; i + 1 < storage->items.count && !code; i += 2) {
        const struct pickle_value *index = storage->items.at[i], *fqn = find(index, "fqn");
        const uint64_t *number = fqn && fqn->kind == PICKLE_STR
                                     ? map_get(&tensors->by_name, fqn->text.bytes, fqn->text.size)
                                     : NULL;
        if (number)
            code = add_chunk(r, &tensors->list[*number], find(index, "offset"),
                             storage->items.at[i + 1]);
    }
    return code;
}

static enum plumb_code read_metadata(struct reading *r, const uint8_t *data, size_t size)
{
    struct pickle_value *root;
    struct tensors tensors = {0};
    enum plumb_code code = pickle_parse(data, size, &r->arena, &root, r->err);
    if (code)
        return code;
    const struct pickle_value *dict = find(root, "state_dict_metadata");
    const struct pickle_value *storage = find(root, "storage_data");
    if (!dict || dict->kind != PICKLE_DICT || !storage || storage->kind != PICKLE_DICT)
        return plumb_fail(r->err, PLUMB_E_FORMAT,
                          "this is no .metadata of a distributed checkpoint: it does not say which "
                          "tensors there are, and where");
    code = read_tensors(r, &tensors, dict);
    if (!code)
        code = read_chunks(r, &tensors, storage);
    for (size_t i = 0; i < tensors.count && !code; i++)
        code = add_record(r, tensors.names[i], &tensors.list[i]);
    map_free(&tensors.by_name);
    if (!code && !tensors.count)
        code = plumb_fail(r->err, PLUMB_E_FORMAT, "no tensors in this checkpoint");
    return code;
}

/* ---- Loading --------------------------------------------------------------------------------- */

static void put_chunk(const struct tensor *tensor, const struct chunk *chunk,
                      const struct plumb_tensor *part, size_t element, char *whole)
{
    const int64_t run = tensor->ndim ? part->shape[tensor->ndim - 1] : 1;
    int64_t at[PLUMB_MAX_RANK] = {0};
    for (uint64_t first = 0; first < part->count; first += (uint64_t)run) {
        uint64_t to = 0;
        for (unsigned i = 0; i < tensor->ndim; i++)
            to = to * (uint64_t)tensor->shape[i] +
                 (uint64_t)(begin_of(chunk, i) + (i + 1 < tensor->ndim ? at[i] : 0));
        plumb_tensor_gather(part, first, (size_t)run, whole + to * element);
        for (unsigned i = tensor->ndim; i-- > 1;) {
            if (++at[i - 1] < part->shape[i - 1])
                break;
            at[i - 1] = 0;
        }
    }
}

static enum plumb_code load_chunk(const struct chunk *chunk, struct plumb_payload *payload,
                                  struct plumb_error *err)
{
    return format_load(chunk->format, chunk->record, chunk->size, chunk->mtime_ns, NULL, payload,
                       err);
}

static enum plumb_code load(const struct plumb_record *record, struct plumb_payload *payload,
                            struct plumb_error *err)
{
    const struct tensor *tensor = record->detail;
    uint64_t bytes;
    *payload = (struct plumb_payload){0};
    if (record->error) {
        if (err)
            *err = *record->error;
        return record->error->code;
    }
    if (tensor->count == 1)
        return load_chunk(&tensor->chunks[0], payload, err);
    const unsigned bits = plumb_dtype_info(record->dtype)->bits;
    if (bits % 8 || !plumb_dtype_bytes(record->dtype, record->count, &bytes))
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "chunks of %s cannot be put together",
                          plumb_dtype_info(record->dtype)->name);
    enum plumb_code code =
        plumb_tensor_init(&payload->tensor, record->dtype, record->ndim, record->shape, err);
    payload->owned = code ? NULL : malloc(bytes + 1);
    payload->tensor.data = payload->owned;
    if (!code && !payload->owned)
        code = plumb_no_memory(err);
    for (size_t c = 0; c < tensor->count && !code; c++) {
        struct plumb_payload part;
        struct plumb_file_guard guard;
        code = load_chunk(&tensor->chunks[c], &part, err);
        if (code)
            break;
        plumb_file_guard_enter(&guard, &part.file);
        payload->tensor.swap = part.tensor.swap;
        put_chunk(tensor, &tensor->chunks[c], &part.tensor, bits / 8, payload->owned);
        if (plumb_file_guard_leave(&guard))
            code = mapped_fail_shrank(err);
        plumb_payload_release(&part);
    }
    if (code)
        plumb_payload_release(payload);
    return code;
}

enum plumb_code distcp_open(struct plumb_run *run, bool *found, struct plumb_error *err)
{
    struct reading r = {.run = run, .err = err};
    struct mapped in;
    struct stat st;
    const char *path = arena_printf(&run->arena, "%s/.metadata", run->path);
    if (!path)
        return plumb_no_memory(err);
    *found = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    if (!*found)
        return PLUMB_OK;
    run->kind = "distcp";
    run->load = load;
    enum plumb_code code = mapped_open(&in, path, err);
    if (!code)
        code = mapped_close(&in, read_metadata(&r, in.file.data, in.file.size), err);
    arena_free(&r.arena);
    return code;
}
