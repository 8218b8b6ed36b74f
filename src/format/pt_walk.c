/* From the values of a pickle to records. */
#include "format/pt_walk.h"

#include "format/pt_tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_DEPTH = 200,
    MAX_NAME = 4096,
    /* Values may be shared, so that a small pickle can have a huge tree. A walk may cost this much
     * for each byte of the pickle (an honest one stays below 4), and a bit more for tiny ones. */
    COST_PER_BYTE = 32,
    COST_BASE = 1 << 20,
    COST_PER_RECORD = 128,
};

/* A view may repeat its storage (expand), but not beyond any use: nobody waits for 2^60
 * elements. */
#define MAX_EXPANDED ((uint64_t)1 << 32)

struct walk {
    struct listing *out;
    const struct pt_archive *archive;
    struct plumb_error *err;
    uint64_t budget;
    unsigned depth;
    size_t length; /* of name */
    char name[MAX_NAME];
};

uint64_t pt_file_offset(const struct pt_archive *archive, uint64_t at)
{
    return archive->pickle->offset + (archive->pickle->method == ZIP_STORED ? at : 0);
}

const struct zip_entry *pt_find(const struct pt_archive *archive, const char *folder,
                                const char *name, size_t length)
{
    char path[MAX_NAME];
    size_t prefix = archive->prefix_length, middle = strlen(folder);
    if (prefix + middle > sizeof path || length > sizeof path - prefix - middle)
        return NULL;
    memcpy(path, archive->prefix, prefix);
    memcpy(path + prefix, folder, middle);
    memcpy(path + prefix + middle, name, length);
    return zip_find(&archive->zip, path, prefix + middle + length);
}

static enum plumb_code no_memory(struct walk *w)
{
    return plumb_no_memory(w->err);
}

static enum plumb_code spend(struct walk *w, const struct pickle_value *value, uint64_t cost)
{
    if (cost > w->budget)
        return plumb_fail_at(w->err, PLUMB_E_UNSUPPORTED, pt_file_offset(w->archive, value->offset),
                             "the same values are used over and over: data.pkl would unfold to far "
                             "more than it holds");
    w->budget -= cost;
    return PLUMB_OK;
}

/* Checks what the tensor claims against the member that holds its storage, and fills the record. */
static enum plumb_code place(struct walk *w, struct plumb_record *record,
                             const struct pt_tensor *tensor, struct plumb_error *err)
{
    const struct pt_archive *archive = w->archive;
    const struct pt_storage *storage = &tensor->storage;
    const struct zip_entry *entry = pt_find(archive, "data/", storage->key, storage->key_length);
    if (!entry)
        return plumb_fail(err, PLUMB_E_FORMAT, "its storage '%.*s' is not in the archive",
                          (int)(storage->key_length > 100 ? 100 : storage->key_length),
                          storage->key);
    enum plumb_code code = zip_check(entry, err);
    if (code)
        return code;
    uint64_t bytes = 0;
    if (!plumb_dtype_bytes(storage->dtype, storage->count, &bytes) || bytes != entry->size)
        return plumb_fail_at(err, PLUMB_E_FORMAT, entry->offset,
                             "sizes disagree with the tensor header: member '%.200s' has %" PRIu64
                             " bytes, data.pkl says %" PRIu64 " elements of %s",
                             entry->name, entry->size, storage->count,
                             plumb_dtype_info(storage->dtype)->name);

    code = listing_set_shape(w->out, record, tensor->dtype, tensor->ndim, tensor->shape, err);
    if (code)
        return code;
    unsigned bits = plumb_dtype_info(tensor->dtype)->bits;
    uint64_t available = bits < 8 ? bytes * 2 : bytes / (bits / 8);
    struct plumb_tensor view;
    code = plumb_tensor_init(&view, tensor->dtype, tensor->ndim, tensor->shape, err);
    if (!code)
        code = plumb_tensor_set_strides(&view, tensor->stride, tensor->start, available, err);
    if (code)
        return code;
    if (view.count > available && view.count > MAX_EXPANDED)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "a view that repeats %" PRIu64 " stored elements to %" PRIu64
                          ": save a smaller one",
                          available, view.count);
    if ((!view.dense || tensor->start) &&
        !listing_set_view(w->out, record, tensor->start, view.dense ? NULL : tensor->stride))
        return plumb_no_memory(err);
    record->swap = archive->swap;
    record->requires_grad = tensor->requires_grad;
    record->offset = entry->offset;
    record->bytes = entry->packed;
    if (entry->method == ZIP_DEFLATED) {
        struct zip_entry *copy = arena_alloc(w->out->arena, sizeof *copy);
        char *name = arena_copy(w->out->arena, entry->name, entry->length);
        if (!copy || !name)
            return plumb_no_memory(err);
        *copy = *entry;
        copy->name = name;
        record->detail = copy;
    }
    return PLUMB_OK;
}

static enum plumb_code add_tensor(struct walk *w, const struct pickle_value *value)
{
    struct pt_tensor tensor;
    struct plumb_error why;
    enum plumb_code bad = pt_tensor_read(value, &tensor, &why);
    if (bad && why.offset != PLUMB_NO_OFFSET)
        why.offset = pt_file_offset(w->archive, why.offset);

    uint64_t rank = bad ? sizeof why / 16 : tensor.ndim;
    enum plumb_code code = spend(w, value, COST_PER_RECORD + w->length + 16 * rank);
    if (code)
        return code;
    struct plumb_record *record =
        w->length ? listing_add(w->out, w->name, w->length) : listing_add_unnamed(w->out);
    if (!record)
        return no_memory(w);
    if (!bad) {
        bad = place(w, record, &tensor, &why);
        if (bad && why.offset == PLUMB_NO_OFFSET)
            why.offset = pt_file_offset(w->archive, value->offset);
    }
    if (bad == PLUMB_E_NOMEM || (bad && listing_fail(w->out, record, &why)))
        return no_memory(w);
    return PLUMB_OK;
}

static enum plumb_code walk(struct walk *w, struct pickle_value *value);

/* Walks a value below the current path, under a further component. */
static enum plumb_code walk_below(struct walk *w, struct pickle_value *value, const char *component,
                                  size_t length)
{
    size_t before = w->length, dot = before ? 1 : 0;
    if (length >= MAX_NAME || before + dot + length >= MAX_NAME)
        return plumb_fail_at(w->err, PLUMB_E_UNSUPPORTED, pt_file_offset(w->archive, value->offset),
                             "the path of keys to a value is longer than %d bytes", MAX_NAME);
    if (dot)
        w->name[before] = '.';
    memcpy(w->name + before + dot, component, length);
    w->length = before + dot + length;
    enum plumb_code code = walk(w, value);
    w->length = before;
    return code;
}

static enum plumb_code walk_list(struct walk *w, const struct pickle_items *items)
{
    for (uint32_t i = 0; i < items->count; i++) {
        char index[16];
        int length = snprintf(index, sizeof index, "%" PRIu32, i);
        enum plumb_code code = walk_below(w, items->at[i], index, (size_t)length);
        if (code)
            return code;
    }
    return PLUMB_OK;
}

static enum plumb_code walk_dict(struct walk *w, const struct pickle_items *items)
{
    for (uint32_t i = 0; i + 1 < items->count; i += 2) {
        const struct pickle_value *key = items->at[i];
        char text[32];
        const char *component = text;
        int length;
        if (key->kind == PICKLE_STR && key->text.size < MAX_NAME) {
            component = key->text.bytes;
            length = (int)key->text.size;
        } else if (key->kind == PICKLE_INT) {
            length = snprintf(text, sizeof text, "%" PRId64, key->integer);
        } else if (key->kind == PICKLE_BOOL) {
            length = snprintf(text, sizeof text, "%s", key->integer ? "True" : "False");
        } else {
            length = snprintf(text, sizeof text, "#%" PRIu32, i / 2);
        }
        enum plumb_code code = walk_below(w, items->at[i + 1], component, (size_t)length);
        if (code)
            return code;
    }
    return PLUMB_OK;
}

/* What __setstate__ gets: a dict of attributes, or a pair of one and the dict of the slots. */
static enum plumb_code walk_state(struct walk *w, struct pickle_value *state)
{
    if (state->kind == PICKLE_DICT)
        return walk_dict(w, &state->items);
    if (state->kind != PICKLE_TUPLE || state->items.count != 2)
        return walk_below(w, state, "state", 5);
    enum plumb_code code = PLUMB_OK;
    for (uint32_t i = 0; i < 2 && !code; i++) {
        struct pickle_value *part = state->items.at[i];
        if (part->kind == PICKLE_DICT)
            code = walk_dict(w, &part->items);
        else
            code = walk_below(w, part, i ? "1" : "0", 1);
    }
    return code;
}

/* An object of any class: tensors in it are found, whatever the class would have done with them. */
static enum plumb_code walk_object(struct walk *w, const struct pickle_object *object)
{
    enum plumb_code code = walk_list(w, &object->args->items);
    if (!code && object->kwargs && object->kwargs->kind == PICKLE_DICT)
        code = walk_dict(w, &object->kwargs->items);
    if (!code)
        code = walk_list(w, &object->list);
    if (!code)
        code = walk_dict(w, &object->dict);
    if (!code && object->state)
        code = walk_state(w, object->state);
    return code;
}

static enum plumb_code walk_inside(struct walk *w, struct pickle_value *value)
{
    if (pt_is_tensor(value)) {
        enum plumb_code code = add_tensor(w, value);
        struct pickle_value *attributes = code ? NULL : pt_tensor_attributes(value);
        return attributes ? walk_dict(w, &attributes->items) : code;
    }
    switch (value->kind) {
    case PICKLE_LIST:
    case PICKLE_TUPLE:
    case PICKLE_SET:
        return walk_list(w, &value->items);
    case PICKLE_DICT:
        return walk_dict(w, &value->items);
    case PICKLE_OBJECT:
        return walk_object(w, value->object);
    default:
        return PLUMB_OK;
    }
}

static enum plumb_code walk(struct walk *w, struct pickle_value *value)
{
    if (value->on_path)
        return PLUMB_OK; /* it contains itself */
    enum plumb_code code = spend(w, value, 1);
    if (code)
        return code;
    if (w->depth == MAX_DEPTH)
        return plumb_fail_at(w->err, PLUMB_E_UNSUPPORTED, pt_file_offset(w->archive, value->offset),
                             "values are nested deeper than %d levels", MAX_DEPTH);
    w->depth++;
    value->on_path = true;
    code = walk_inside(w, value);
    value->on_path = false;
    w->depth--;
    return code;
}

enum plumb_code pt_walk(struct listing *out, const struct pt_archive *archive,
                        struct pickle_value *root, struct plumb_error *err)
{
    struct walk w = {.out = out,
                     .archive = archive,
                     .err = err,
                     .budget = COST_BASE + (uint64_t)archive->pickle_size * COST_PER_BYTE};
    return walk(&w, root);
}
