/* Single integers of what torch.save wrote. */
#include "format/pt_scalar.h"

#include "base/mapped.h"
#include "format/pt_walk.h"

#include <string.h>

/* The last value of a key counts, as it would in Python. */
static const struct pickle_value *find_key(const struct pickle_items *items, const char *key,
                                           size_t length)
{
    for (uint32_t i = items->count / 2; i-- > 0;) {
        const struct pickle_value *name = items->at[2 * i];
        if (name->kind == PICKLE_STR && name->text.size == length &&
            memcmp(name->text.bytes, key, length) == 0)
            return items->at[2 * i + 1];
    }
    return NULL;
}

static const struct pickle_value *find_in_dict(const struct pickle_value *dict, const char *key,
                                               size_t length)
{
    return dict && dict->kind == PICKLE_DICT ? find_key(&dict->items, key, length) : NULL;
}

/* What a dict holds, or an attribute of an object: of its state, which is a dict or a pair of one
 * and the dict of its slots, or of the arguments it was made with. */
static const struct pickle_value *find_member(const struct pickle_value *value, const char *key,
                                              size_t length)
{
    if (value->kind != PICKLE_OBJECT)
        return find_in_dict(value, key, length);
    const struct pickle_object *object = value->object;
    const struct pickle_value *state = object->state, *found = NULL;
    if (state && state->kind == PICKLE_TUPLE && state->items.count == 2) {
        found = find_in_dict(state->items.at[1], key, length);
        state = state->items.at[0];
    }
    if (!found)
        found = find_in_dict(state, key, length);
    if (!found)
        found = find_key(&object->dict, key, length);
    return found ? found : find_in_dict(object->kwargs, key, length);
}

static void look_up(struct pt_scalar *scalar, const struct pickle_value *value)
{
    const char *key = scalar->path;
    while (value && *key) {
        size_t length = strcspn(key, ".");
        value = find_member(value, key, length);
        key += length + (key[length] == '.');
    }
    scalar->found = value && (value->kind == PICKLE_INT || value->kind == PICKLE_BOOL);
    scalar->value = scalar->found ? value->integer : 0;
}

enum plumb_code pt_read_scalars(const char *path, struct pt_scalar *scalars, size_t count,
                                struct plumb_error *err)
{
    struct mapped in;
    struct pt_pickle pt = {0};
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    if (format_probe(&in.file) == &format_pt)
        code = pt_open(&pt, &in.file, err);
    else
        code = plumb_fail(err, PLUMB_E_FORMAT, "this is not what torch.save writes");
    if (!code) {
        for (size_t i = 0; i < count; i++)
            look_up(&scalars[i], pt.root);
        pt_close(&pt);
    }
    return mapped_close(&in, code, err);
}
