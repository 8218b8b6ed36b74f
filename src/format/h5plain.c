/* HDF5 files of the plainest kind. Comments name what is read by sections of the HDF5 File Format
 * Specification. */
#define _POSIX_C_SOURCE 200809L
#include "format/h5plain.h"

#include "format/bytes.h"
#include "format/h5header.h"
#include "h5/protocol.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 16, LINKS_MOST = 1 << 16, PATIENCE = 1 << 28 };

struct link {
    const char *name;
    size_t length;
    int64_t order;
    uint64_t address;
};

struct group {
    struct buf *out; /* told when memory ends */
    bool symbols, ordered;
    uint64_t tree, heap;
    struct link *links;
    size_t count, capacity;
};

/* A group, or a dataset, or nothing that is known here. */
struct object {
    struct h5_image *image;
    bool is_group, has_space, has_type, has_layout;
    struct group group;
    struct h5_dataset head;
    uint64_t shape[H5_MAX_RANK];
    uint64_t points;
    int64_t call, global_rank, local_rank;
    char dtype[H5_MAX_TEXT];
};

struct walk {
    struct h5_image image;
    struct buf *out;
    size_t links;
    char path[H5_MAX_PATH];
    size_t length;
};

/* ---- Messages of datasets -------------------------------------------------------------------- */

/* IV.A.2.b: shapes of known extent. */
static bool read_space(const uint8_t *at, size_t size, uint64_t shape[H5_MAX_RANK], unsigned *rank,
                       uint64_t *points)
{
    if (size < 4 || (at[0] != 1 && (at[0] != 2 || at[3] > 1)))
        return false;
    const size_t before = at[0] == 1 ? 8 : 4;
    *rank = at[1];
    if (*rank > H5_MAX_RANK || (at[2] & ~1u) || (at[0] == 2 && at[3] != (*rank > 0)) ||
        size < before + (size_t)*rank * 8 * (at[2] & 1 ? 2 : 1))
        return false;
    *points = 1;
    for (unsigned i = 0; i < *rank; i++) {
        shape[i] = bytes_le64(at + before + 8 * (size_t)i);
        if (__builtin_mul_overflow(*points, shape[i], points) ||
            (at[2] && bytes_le64(at + before + 8 * (size_t)(*rank + i)) != shape[i]))
            return false; /* or it may grow, which what is stored in one piece cannot */
    }
    return true;
}

/* IV.A.2.d: integers and IEEE numbers that fill their bytes. */
static bool read_type(const uint8_t *at, size_t size, struct h5_dataset *head)
{
    static const uint8_t floats[3][10] = {{15, 10, 5, 0, 10, 15, 0, 0, 0, 2},
                                          {31, 23, 8, 0, 23, 127, 0, 0, 0, 4},
                                          {63, 52, 11, 0, 52, 0xff, 3, 0, 0, 8}};
    const unsigned version = size < 12 ? 0 : at[0] >> 4, class = size < 12 ? 0 : at[0] & 15;
    if (version < 1 || version > 3 || class > 1)
        return false;
    const uint32_t bytes = bytes_le32(at + 4);
    if (bytes_le16(at + 8) != 0 || bytes > 8 || bytes_le16(at + 10) != 8 * bytes)
        return false;
    head->size = (uint8_t)bytes;
    head->big_endian = at[1] & 1;
    if (class == 0) {
        head->type = at[1] & 8 ? H5_INT : H5_UINT;
        return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && !(at[1] & ~9u) && !at[2] &&
               !at[3];
    }
    if (size < 20 || (at[1] & ~1u) != 0x20 || at[3])
        return false;
    for (int i = 0; i < 3; i++)
        if (floats[i][9] == bytes && at[2] == floats[i][0] &&
            memcmp(at + 12, floats[i] + 1, 8) == 0) {
            head->type = H5_FLOAT;
            return true;
        }
    return false;
}

/* IV.A.2.f: elements that nobody wrote are zero. */
static bool is_zero_fill(const struct h5_message *message)
{
    const uint8_t *at = message->data;
    return message->size >= 8 && at[0] == 2 && at[1] >= 1 && at[1] <= 3 && at[2] <= 2 &&
           at[3] == 1 && bytes_le32(at + 4) == 0;
}

/* IV.A.2.i: in one piece, somewhere. */
static bool read_layout(const uint8_t *at, size_t size, struct h5_dataset *head)
{
    if (size < 18 || at[0] != 3 || at[1] != 1)
        return false;
    head->offset = bytes_le64(at + 2);
    head->bytes = bytes_le64(at + 10);
    return true;
}

/* ---- Attributes ------------------------------------------------------------------------------ */

struct attribute {
    const char *name;
    size_t name_size; /* with its zero */
    const uint8_t *type, *space, *data;
    size_t type_size, space_size, data_size;
    uint64_t points;
};

/* III.E: an object of a global heap. */
static bool read_heap_text(struct h5_image *image, const uint8_t *data, char text[H5_MAX_TEXT])
{
    const uint32_t length = bytes_le32(data), wanted = bytes_le32(data + 12);
    const uint64_t address = bytes_le64(data + 4);
    const uint8_t *at = h5_image_at(image, address, 16);
    if (!at || memcmp(at, "GCOL\1", 5) != 0 || length >= H5_MAX_TEXT || !wanted)
        return false;
    const uint64_t size = bytes_le64(at + 8);
    at = h5_image_at(image, address, size);
    for (uint64_t next = 16; at && size >= 16 && next <= size - 16;) {
        const uint64_t bytes = bytes_le64(at + next + 8);
        if (!bytes_le16(at + next) || bytes > size - 16 - next)
            return false;
        if (bytes_le16(at + next) == wanted && length <= bytes &&
            !memchr(at + next + 16, 0, length)) {
            memcpy(text, at + next + 16, length);
            text[length] = '\0';
            return true;
        }
        next += 16 + (bytes + 7) / 8 * 8;
    }
    return false;
}

/* One string, of fixed or variable length. */
static bool read_text(struct h5_image *image, const struct attribute *is, char text[H5_MAX_TEXT])
{
    /* Of variable length, of bytes; [2]: ASCII or UTF-8. */
    static const uint8_t strings[20] = {0x19, 1, 0, 0, 16, 0, 0, 0, 0x10, 0,
                                        0,    0, 1, 0, 0,  0, 0, 0, 8,    0};
    if (is->type_size < 8 || is->points != 1)
        return false;
    const unsigned class = is->type[0] & 15;
    const uint32_t bytes = bytes_le32(is->type + 4);
    if (class == 9)
        return is->type_size >= 20 && memcmp(is->type, strings, 2) == 0 && is->type[2] <= 1 &&
               memcmp(is->type + 3, strings + 3, 17) == 0 && is->data_size >= 16 &&
               read_heap_text(image, is->data, text);
    if (class != 3 || bytes >= H5_MAX_TEXT || bytes > is->data_size)
        return false;
    size_t length = bytes ? strnlen((const char *)is->data, bytes) : 0;
    while (length && is->data[length - 1] == ' ')
        length--;
    memcpy(text, is->data, length);
    text[length] = '\0';
    return true;
}

/* One whole number. */
static bool read_number(const struct attribute *is, int64_t *number)
{
    struct h5_dataset type = {0};
    if (is->points != 1 || !read_type(is->type, is->type_size, &type) || type.big_endian ||
        type.type == H5_FLOAT || is->data_size < type.size)
        return false;
    uint64_t value = 0;
    for (unsigned i = 0; i < type.size; i++)
        value |= (uint64_t)is->data[i] << (8 * i);
    const uint64_t sign = (uint64_t)1 << (8 * type.size - 1);
    if (value & sign) /* plumb writes none, and libhdf5 knows what becomes of them */
        return false;
    *number = (int64_t)value;
    return true;
}

/* IV.A.2.m: its parts, which older files pad to eight bytes. */
static bool split_attribute(const struct h5_message *message, struct attribute *is)
{
    const uint8_t *at = message->data;
    if (message->size < 9 || (at[0] != 1 && at[0] != 3) || at[1])
        return false;
    const size_t to = at[0] == 1 ? 8 : 1, before = at[0] == 1 ? 8 : 9;
    is->name_size = bytes_le16(at + 2);
    is->type_size = bytes_le16(at + 4);
    is->space_size = bytes_le16(at + 6);
    const size_t type = before + (is->name_size + to - 1) / to * to,
                 space = type + (is->type_size + to - 1) / to * to,
                 data = space + (is->space_size + to - 1) / to * to;
    if (data > message->size || !is->name_size ||
        memchr(at + before, 0, is->name_size) != at + before + is->name_size - 1)
        return false;
    is->name = (const char *)at + before;
    is->type = at + type;
    is->space = at + space;
    is->data = at + data;
    is->data_size = message->size - data;
    return true;
}

static bool is_called(const struct attribute *is, const char *name)
{
    return is->name_size == strlen(name) + 1 && memcmp(is->name, name, is->name_size) == 0;
}

static bool read_attribute(struct object *object, const struct h5_message *message)
{
    struct attribute is;
    uint64_t shape[H5_MAX_RANK];
    unsigned rank;
    if (!split_attribute(message, &is))
        return false;
    const bool text = is_called(&is, "dtype");
    int64_t *number = is_called(&is, "path_call")    ? &object->call
                      : is_called(&is, "globalrank") ? &object->global_rank
                      : is_called(&is, "localrank")  ? &object->local_rank
                                                     : NULL;
    if (!text && !number)
        return true;
    if (!read_space(is.space, is.space_size, shape, &rank, &is.points))
        return false;
    return text ? read_text(object->image, &is, object->dtype) : read_number(&is, number);
}

/* ---- Messages of groups ---------------------------------------------------------------------- */

static bool add_link(struct group *group, const struct link *link)
{
    if (!link->length || memchr(link->name, 0, link->length) ||
        memchr(link->name, '/', link->length) || group->count == LINKS_MOST)
        return false;
    if (group->count == group->capacity) {
        const size_t capacity = group->capacity ? 2 * group->capacity : 16;
        struct link *larger = realloc(group->links, capacity * sizeof *larger);
        if (!larger) {
            group->out->failed = true;
            return false;
        }
        group->links = larger;
        group->capacity = capacity;
    }
    group->links[group->count++] = *link;
    return true;
}

/* IV.A.2.c and IV.A.2.p: whether links, or attributes, are in the header. */
static bool all_here(const struct h5_message *message, size_t index_bytes, bool *ordered)
{
    const uint8_t *at = message->data;
    if (message->size < 2 || at[0] != 0 || (at[1] & ~3u))
        return false;
    *ordered = at[1] & 1;
    const size_t before = 2 + (*ordered ? index_bytes : 0);
    return message->size >= before + 16 && bytes_le64(at + before) == H5_NOWHERE;
}

/* IV.A.2.g: a hard link. */
static bool read_link(struct group *group, const struct h5_message *message)
{
    const uint8_t *at = message->data, *end = at + message->size;
    if (message->size < 2 || at[0] != 1 || (at[1] & ~0x17u)) /* 8: not a hard one */
        return false;
    const unsigned flags = at[1], width = 1u << (flags & 3);
    struct link link = {.order = -1};
    at += 2;
    if ((size_t)(end - at) < (flags & 4 ? 8u : 0u) + (flags & 16 ? 1u : 0u) + width)
        return false;
    if (flags & 4) {
        link.order = (int64_t)bytes_le64(at);
        at += 8;
    }
    at += flags & 16 ? 1 : 0;
    for (unsigned i = 0; i < width; i++)
        link.length |= (size_t)at[i] << (8 * i);
    at += width;
    if (link.length > (size_t)(end - at) || (size_t)(end - at) - link.length < 8)
        return false;
    link.name = (const char *)at;
    link.address = bytes_le64(at + link.length);
    return add_link(group, &link);
}

struct names {
    const char *text;
    uint64_t size;
};

static bool find_name(const struct names *names, uint64_t offset, struct link *link)
{
    if (offset >= names->size)
        return false;
    link->name = names->text + offset;
    link->length = strnlen(link->name, (size_t)(names->size - offset));
    return link->length < names->size - offset;
}

static int by_name(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    const size_t shorter = x->length < y->length ? x->length : y->length;
    const int order = memcmp(x->name, y->name, shorter);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* III.B: names of a group and where they lead; each is after the last one. */
static bool read_node(struct h5_image *image, struct group *group, uint64_t address,
                      const struct names *names, struct link *last)
{
    const uint8_t *at = h5_image_at(image, address, 8);
    if (!at || memcmp(at, "SNOD\1", 5) != 0)
        return false;
    const unsigned count = bytes_le16(at + 6);
    at = h5_image_at(image, address + 8, (uint64_t)count * 40);
    for (unsigned i = 0; at && i < count; i++, at += 40) {
        struct link link = {.address = bytes_le64(at + 8)};
        if (bytes_le32(at + 16) > 1 || /* 2: a soft link */
            !find_name(names, bytes_le64(at), &link) || by_name(last, &link) >= 0 ||
            !add_link(group, &link))
            return false;
        *last = link;
    }
    return at;
}

/* III.A.1: a tree without branches, in which libhdf5 looks for names by the keys between. */
static bool read_tree(struct h5_image *image, struct group *group, const struct names *names)
{
    const uint8_t *at = h5_image_at(image, group->tree, 24);
    struct link last, key;
    if (!at || memcmp(at, "TREE\0\0", 6) != 0 || bytes_le64(at + 8) != H5_NOWHERE ||
        bytes_le64(at + 16) != H5_NOWHERE)
        return false;
    const unsigned count = bytes_le16(at + 6);
    at = h5_image_at(image, group->tree + 24, (uint64_t)count * 16 + 8);
    if (!at || !find_name(names, bytes_le64(at), &last) || last.length)
        return false;
    for (unsigned i = 0; i < count; i++) {
        if (!read_node(image, group, bytes_le64(at + 16 * (size_t)i + 8), names, &last) ||
            !find_name(names, bytes_le64(at + 16 * (size_t)i + 16), &key) ||
            by_name(&last, &key) != 0)
            return false;
    }
    return true;
}

/* What is free of a heap is a list in it, which libhdf5 reads as well. */
static bool free_list_is_fine(const uint8_t *names, uint64_t size, uint64_t free_at)
{
    enum { END = 1, BLOCK = 16 };
    for (uint64_t left = size / BLOCK + 1; free_at != END; left--) {
        if (!left || free_at % 8 || size < BLOCK || free_at > size - BLOCK)
            return false;
        const uint64_t bytes = bytes_le64(names + free_at + 8);
        if (bytes < BLOCK || bytes > size - free_at)
            return false;
        free_at = bytes_le64(names + free_at);
    }
    return true;
}

/* III.D: the heap has the names. */
static bool read_symbols(struct h5_image *image, struct group *group)
{
    const uint8_t *at = h5_image_at(image, group->heap, 32);
    if (!at || memcmp(at, "HEAP\0", 5) != 0)
        return false;
    const struct names names = {
        .size = bytes_le64(at + 8),
        .text = (const char *)h5_image_at(image, bytes_le64(at + 24), bytes_le64(at + 8))};
    return names.text &&
           free_list_is_fine((const uint8_t *)names.text, names.size, bytes_le64(at + 16)) &&
           read_tree(image, group, &names);
}

static int by_order(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* ---- Objects --------------------------------------------------------------------------------- */

static bool read_message(void *context, const struct h5_message *message)
{
    struct object *object = context;
    unsigned rank = 0;
    bool ordered;
    switch (message->type) {
    case H5_MESSAGE_NIL:
    case H5_MESSAGE_GROUP:
    case H5_MESSAGE_CHANGED:
        return true;
    case H5_MESSAGE_FILL:
        return is_zero_fill(message);
    case H5_MESSAGE_SPACE:
        if (object->has_space ||
            !read_space(message->data, message->size, object->shape, &rank, &object->points))
            return false;
        object->head.ndim = (uint8_t)rank;
        return object->has_space = true;
    case H5_MESSAGE_TYPE:
        if (object->has_type || !read_type(message->data, message->size, &object->head))
            return false;
        return object->has_type = true;
    case H5_MESSAGE_LAYOUT:
        if (object->has_layout || !read_layout(message->data, message->size, &object->head))
            return false;
        return object->has_layout = true;
    case H5_MESSAGE_ATTRIBUTE:
        return read_attribute(object, message);
    case H5_MESSAGE_ATTRIBUTES:
        return all_here(message, 2, &ordered);
    case H5_MESSAGE_LINK:
        return read_link(&object->group, message);
    case H5_MESSAGE_LINKS:
        if (object->is_group || !all_here(message, 8, &object->group.ordered))
            return false;
        return object->is_group = true;
    case H5_MESSAGE_SYMBOLS:
        if (object->is_group || message->size < 16)
            return false;
        object->group.symbols = true;
        object->group.tree = bytes_le64(message->data);
        object->group.heap = bytes_le64(message->data + 8);
        return object->is_group = true;
    default:
        return false;
    }
}

static bool emit_dataset(struct walk *walk, struct object *object)
{
    struct h5_dataset *head = &object->head;
    uint64_t bytes;
    head->layout = H5_CONTIGUOUS;
    if (__builtin_mul_overflow(object->points, (uint64_t)head->size, &bytes) ||
        bytes != head->bytes || (bytes && head->offset == H5_NOWHERE))
        return false;
    if (!bytes)
        head->offset = 0;
    if (object->call >= 0 && object->call < UINT16_MAX)
        head->path_call = (uint16_t)(object->call + 1);
    head->path_length = (uint32_t)walk->length;
    head->dtype_length = (uint32_t)strlen(object->dtype);
    buf_append(walk->out, head, sizeof *head);
    buf_append(walk->out, object->shape, head->ndim * sizeof *object->shape);
    buf_append(walk->out, walk->path, walk->length);
    buf_append(walk->out, object->dtype, head->dtype_length);
    return !walk->out->failed;
}

static bool list_object(struct walk *walk, uint64_t address, unsigned depth);

static bool list_group(struct walk *walk, struct group *group, unsigned depth)
{
    if (group->symbols && (group->count || !read_symbols(&walk->image, group)))
        return false;
    if (!group->symbols && group->count)
        qsort(group->links, group->count, sizeof *group->links,
              group->ordered ? by_order : by_name);
    for (size_t i = 0; i < group->count; i++) {
        const struct link *link = &group->links[i];
        const size_t before = walk->length;
        if (++walk->links > LINKS_MOST || link->length + 1 >= sizeof walk->path - before)
            return false;
        walk->path[before] = '/';
        memcpy(walk->path + before + 1, link->name, link->length);
        walk->length = before + 1 + link->length;
        if (!list_object(walk, link->address, depth + 1))
            return false;
        walk->length = before;
    }
    return true;
}

/* II.C: where the group is may be noted in the superblock as well. */
static bool root_is_fine(const struct walk *walk, const struct group *group)
{
    const uint8_t *entry = walk->image.data + 56;
    const uint32_t noted = bytes_le32(entry + 16);
    return noted == 0 || (noted == 1 && group->symbols && group->tree == bytes_le64(entry + 24) &&
                          group->heap == bytes_le64(entry + 32));
}

/* The root is greeted with, and is a group. */
static bool list_object(struct walk *walk, uint64_t address, unsigned depth)
{
    struct object object = {.image = &walk->image,
                            .group.out = walk->out,
                            .call = -1,
                            .global_rank = -1,
                            .local_rank = -1};
    bool good = depth <= DEPTH_MOST &&
                h5header_each(&walk->image, address, read_message, &object) &&
                object.is_group != (object.has_space && object.has_type && object.has_layout);
    if (good && depth == 0) {
        const struct h5_hello hello = {H5_MAGIC, object.global_rank, object.local_rank};
        buf_append(walk->out, &hello, sizeof hello);
        good = object.is_group && root_is_fine(walk, &object.group);
    }
    if (good)
        good =
            object.is_group ? list_group(walk, &object.group, depth) : emit_dataset(walk, &object);
    free(object.group.links);
    return good;
}

bool h5plain_list(struct buf *out, const uint8_t *bytes, size_t size)
{
    /* II.A: version 0, addresses and sizes of 8 bytes, nodes of the usual sizes, no flags, nothing
     * before the file. */
    static const uint8_t begins[40] = {0x89, 'H', 'D',  'F',  '\r', '\n', 0x1a, '\n', 0,    0,
                                       0,    0,   0,    8,    8,    0,    4,    0,    16,   0,
                                       0,    0,   0,    0,    0,    0,    0,    0,    0,    0,
                                       0,    0,   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct walk walk = {.image = {.data = bytes, .patience = PATIENCE}, .out = out};
    const struct h5_dataset end = {0};
    if (size < 96 || memcmp(bytes, begins, sizeof begins) != 0 || bytes_le64(bytes + 40) > size ||
        bytes_le64(bytes + 48) != H5_NOWHERE)
        return false;
    walk.image.size = (size_t)bytes_le64(bytes + 40); /* the end of what is used */
    if (!list_object(&walk, bytes_le64(bytes + 64), 0))
        return false;
    buf_append(out, &end, sizeof end);
    return !out->failed;
}
