/* .npy files, and the header that members of .npz archives have too. */
#include "format/npy.h"

#include "format/format.h"

#include <inttypes.h>
#include <string.h>

static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

static bool probe(const uint8_t *head, size_t n)
{
    return n >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
}

/* The length of the header is in front of it. */
static size_t listed_by(const uint8_t *head, size_t n)
{
    if (n < 12)
        return 0;
    const size_t length = (size_t)head[8] | (size_t)head[9] << 8;
    if (head[6] == 1)
        return 10 + length;
    return head[10] || head[11] ? 0 : 12 + length; /* of 64 KiB and more */
}

/* The header is the text of a Python dictionary. */
struct cursor {
    const char *begin, *at, *end;
    uint64_t base; /* byte position of begin */
    struct plumb_error *err;
};

static enum plumb_code damaged(const struct cursor *c, const char *what)
{
    return plumb_fail_at(c->err, PLUMB_E_FORMAT, c->base + (uint64_t)(c->at - c->begin),
                         "damaged .npy header: expected %s here", what);
}

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static bool take(struct cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t length = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

struct slice {
    const char *text;
    size_t length;
};

static bool take_string(struct cursor *c, struct slice *out)
{
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    const char *start = c->at + 1;
    const char *stop = memchr(start, *c->at, (size_t)(c->end - start));
    if (!stop)
        return false;
    *out = (struct slice){start, (size_t)(stop - start)};
    c->at = stop + 1;
    return true;
}

/* From the bracket here to the one that closes it. */
static struct slice bracketed(const struct cursor *c)
{
    const char *p = c->at;
    int open = 0;
    while (p < c->end) {
        open += *p == '[' || *p == '(';
        open -= *p == ']' || *p == ')';
        p++;
        if (open <= 0)
            break;
    }
    return (struct slice){c->at, (size_t)(p - c->at)};
}

static bool slice_is(struct slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.text, text, slice.length) == 0;
}

static enum plumb_code unsupported(const struct cursor *c, const char *at, struct slice descr,
                                   const char *why)
{
    int length = descr.length > 80 ? 80 : (int)descr.length;
    return plumb_fail_at(c->err, PLUMB_E_UNSUPPORTED, c->base + (uint64_t)(at - c->begin),
                         "the elements are of type %.*s%s: %s", length, descr.text,
                         descr.length > 80 ? "..." : "", why);
}

/* Why plumb does not read a type, by the letter of its descr. */
static const char *refusal(char letter)
{
    switch (letter) {
    case 'O':
        return "Python objects are never loaded; save plain numbers instead";
    case 'S':
    case 'a':
    case 'U':
        return "text is not compared; save numbers instead";
    case 'M':
    case 'm':
        return "dates and durations are not read; save them as int64 instead";
    case 'V':
        return "raw bytes, which is how numpy stores bfloat16 and 8-bit floats without saying "
               "which;"
               " save as float32, or the original type as .safetensors";
    default:
        return "plumb does not read this type; save as a bool, integer, float or complex of up to "
               "64"
               " bits a part";
    }
}

static enum plumb_code parse_descr(struct cursor *c, struct npy_header *out)
{
    static const struct {
        char text[4];
        enum plumb_dtype dtype;
    } types[] = {
        {"b1", PLUMB_BOOL}, {"u1", PLUMB_U8},    {"u2", PLUMB_U16}, {"u4", PLUMB_U32},
        {"u8", PLUMB_U64},  {"i1", PLUMB_I8},    {"i2", PLUMB_I16}, {"i4", PLUMB_I32},
        {"i8", PLUMB_I64},  {"f2", PLUMB_F16},   {"f4", PLUMB_F32}, {"f8", PLUMB_F64},
        {"c8", PLUMB_C64},  {"c16", PLUMB_C128},
    };
    skip_space(c);
    const char *at = c->at;
    struct slice descr;
    if (c->at < c->end && (*c->at == '[' || *c->at == '(')) {
        return unsupported(c, at, bracketed(c),
                           "a structure; save each of its fields as an array of its own");
    }
    if (!take_string(c, &descr))
        return damaged(c, "the quoted name of a type");
    struct slice type = descr;
    char order = '=';
    if (type.length && strchr("<>|=", type.text[0]) && type.text[0]) {
        order = type.text[0];
        type.text++;
        type.length--;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!slice_is(type, types[i].text))
            continue;
        out->dtype = types[i].dtype;
        char foreign = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<';
        out->swap = order == foreign && plumb_dtype_info(out->dtype)->bits > 8;
        return PLUMB_OK;
    }
    return unsupported(c, at, descr, refusal(type.length ? type.text[0] : '\0'));
}

static enum plumb_code parse_bool(struct cursor *c, bool *out)
{
    if (take_word(c, "True"))
        *out = true;
    else if (take_word(c, "False"))
        *out = false;
    else
        return damaged(c, "True or False");
    return PLUMB_OK;
}

static enum plumb_code parse_size(struct cursor *c, int64_t *out)
{
    skip_space(c);
    const char *start = c->at;
    int64_t value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *c->at - '0', &value))
            return damaged(c, "a size below 2^63");
    if (c->at == start)
        return damaged(c, "a size");
    if (c->at < c->end && *c->at == 'L') /* Python 2 */
        c->at++;
    *out = value;
    return PLUMB_OK;
}

static enum plumb_code parse_shape(struct cursor *c, struct npy_header *out)
{
    if (!take(c, '('))
        return damaged(c, "a shape in parentheses");
    unsigned n = 0;
    while (!take(c, ')')) {
        if (n == PLUMB_MAX_RANK)
            return damaged(c, "no more than 64 dimensions");
        enum plumb_code code = parse_size(c, &out->shape[n++]);
        if (code)
            return code;
        /* (3) is a number in parentheses, not a tuple. */
        if (!take(c, ',') && (n == 1 || c->at == c->end || *c->at != ')'))
            return damaged(c, "a comma");
    }
    out->ndim = n;
    return PLUMB_OK;
}

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static enum plumb_code parse_dict(struct cursor *c, struct npy_header *out)
{
    unsigned seen = 0;
    if (!take(c, '{'))
        return damaged(c, "{");
    while (!take(c, '}')) {
        struct slice key;
        const char *before = c->at;
        if (!take_string(c, &key))
            return damaged(c, "a quoted key");
        unsigned which = slice_is(key, "descr")           ? HAS_DESCR
                         : slice_is(key, "fortran_order") ? HAS_ORDER
                         : slice_is(key, "shape")         ? HAS_SHAPE
                                                          : 0;
        if (!which || seen & which) {
            c->at = before;
            return damaged(c, "descr, fortran_order or shape, each once,");
        }
        seen |= which;
        if (!take(c, ':'))
            return damaged(c, "a colon");
        enum plumb_code code = which == HAS_DESCR   ? parse_descr(c, out)
                               : which == HAS_ORDER ? parse_bool(c, &out->fortran)
                                                    : parse_shape(c, out);
        if (code)
            return code;
        if (!take(c, ',') && (c->at == c->end || *c->at != '}'))
            return damaged(c, "a comma");
    }
    if (seen != HAS_ALL)
        return damaged(c, "descr, fortran_order and shape before the end");
    skip_space(c);
    if (c->at != c->end)
        return damaged(c, "the end of the header");
    return PLUMB_OK;
}

enum plumb_code npy_parse(const uint8_t *data, uint64_t size, struct npy_header *out,
                          struct plumb_error *err)
{
    *out = (struct npy_header){0};
    if (size < sizeof magic || memcmp(data, magic, sizeof magic) != 0)
        return plumb_fail_at(err, PLUMB_E_FORMAT, 0,
                             "not a .npy array: the magic bytes are missing");
    if (size < 10)
        return plumb_fail_at(err, PLUMB_E_FORMAT, size, "the .npy header is cut short");
    if (data[6] < 1 || data[6] > 3 || data[7] != 0)
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, 6,
                             "version %u.%u of the .npy format; plumb reads 1.0, 2.0 and 3.0",
                             data[6], data[7]);
    uint64_t start = data[6] == 1 ? 10 : 12;
    if (size < start)
        return plumb_fail_at(err, PLUMB_E_FORMAT, size, "the .npy header is cut short");
    uint64_t length = (uint64_t)data[8] | (uint64_t)data[9] << 8;
    if (start == 12)
        length |= (uint64_t)data[10] << 16 | (uint64_t)data[11] << 24;
    if (length > size - start)
        return plumb_fail_at(err, PLUMB_E_FORMAT, size,
                             "the .npy header promises %" PRIu64 " bytes and is cut short", length);
    out->data_offset = start + length;

    const char *text = (const char *)data + start;
    struct cursor cursor = {
        .begin = text, .at = text, .end = text + length, .base = start, .err = err};
    enum plumb_code code = parse_dict(&cursor, out);
    if (code)
        return code;
    struct plumb_tensor check;
    return plumb_tensor_init(&check, out->dtype, out->ndim, out->shape, err);
}

void npy_fortran_strides(unsigned ndim, const int64_t *shape, int64_t *stride)
{
    int64_t extent = 1;
    for (unsigned i = 0; i < ndim; i++) {
        stride[i] = extent;
        extent *= shape[i] ? shape[i] : 1;
    }
}

static enum plumb_code list(struct listing *out, const struct plumb_file *file,
                            struct plumb_error *err)
{
    struct npy_header header;
    enum plumb_code code = npy_parse(file->data, file->size, &header, err);
    if (code)
        return code;

    struct plumb_record *record = listing_add_unnamed(out);
    if (!record)
        return plumb_no_memory(err);
    code = listing_set_shape(out, record, header.dtype, header.ndim, header.shape, err);
    if (code)
        return code;
    record->swap = header.swap;
    record->offset = header.data_offset;
    plumb_dtype_bytes(header.dtype, record->count, &record->bytes);
    uint64_t room = file->size - header.data_offset;
    if (record->bytes > room)
        return plumb_fail_at(err, PLUMB_E_FORMAT, file->size,
                             "the header promises %" PRIu64 " bytes of elements, but only %" PRIu64
                             " follow: the file is cut short",
                             record->bytes, room);
    if (header.fortran && header.ndim > 1) {
        int64_t stride[PLUMB_MAX_RANK];
        npy_fortran_strides(header.ndim, header.shape, stride);
        if (!listing_set_view(out, record, 0, stride))
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

const struct format format_npy = {.name = "npy",
                                  .endings = ".npy",
                                  .unnamed = true,
                                  .probe = probe,
                                  .listed_by = listed_by,
                                  .list = list};
