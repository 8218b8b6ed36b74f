/* A workbook as rows: its zip archive, its list of sheets, and its shared texts. */
#include "base/buf.h"
#include "format/zip.h"
#include "task/ranks/sheet.h"
#include "task/ranks/xml.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A part that unpacks to more than this is no honest one. */
#define MAX_UNPACKED ((uint64_t)1 << 31)

/* The parts of the workbook that matter. */
struct part {
    const char *id;     /* of the relation */
    const char *target; /* the member's name */
    bool is_sheet, read;
};

struct book {
    const struct plumb_file *file;
    struct arena *arena;
    struct zip zip;
    struct part *parts;
    size_t part_count, part_capacity;
    const char **sheets; /* ids, in the workbook's order */
    size_t sheet_count, sheet_capacity;
    const char *strings_part;
    struct strings strings;
    size_t string_capacity;
    struct buf text; /* of the string being read */
    unsigned phonetic;
    bool in_text, failed;
};

/* The array with room for one more element, moved within the arena when it has to grow. */
static void *grown(struct arena *arena, void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    size_t more = *capacity ? *capacity * 2 : 16;
    void *bigger = arena_array(arena, more, size);
    if (bigger && count)
        memcpy(bigger, array, count * size);
    if (bigger)
        *capacity = more;
    return bigger;
}

/* -- Handlers: false, with failed set, means out of memory ------------------------------------- */

static bool ignore_end(void *context, const char *name)
{
    (void)context, (void)name;
    return true;
}

static bool ignore_text(void *context, const char *text, size_t length)
{
    (void)context, (void)text, (void)length;
    return true;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && memcmp(text + length - tail, end, tail) == 0;
}

static bool on_workbook(void *context, const char *name, const char **attributes)
{
    struct book *book = context;
    const char *id = strcmp(name, "sheet") == 0 ? xml_attribute(attributes, "id") : NULL;
    if (!id)
        return true;
    const char **sheets =
        grown(book->arena, book->sheets, book->sheet_count, &book->sheet_capacity, sizeof *sheets);
    const char *copy = arena_copy(book->arena, id, strlen(id));
    if (!sheets || !copy)
        return !(book->failed = true);
    book->sheets = sheets;
    book->sheets[book->sheet_count++] = copy;
    return true;
}

static bool on_relations(void *context, const char *name, const char **attributes)
{
    struct book *book = context;
    const char *id = xml_attribute(attributes, "Id"), *type = xml_attribute(attributes, "Type");
    const char *target = xml_attribute(attributes, "Target");
    if (strcmp(name, "Relationship") != 0 || !id || !type || !target)
        return true;
    bool is_sheet = ends_with(type, "/worksheet"), is_strings = ends_with(type, "/sharedStrings");
    if (!is_sheet && !is_strings)
        return true;
    struct part *parts =
        grown(book->arena, book->parts, book->part_count, &book->part_capacity, sizeof *parts);
    /* Targets are relative to the folder of the workbook, or start at the top. */
    const char *path = *target == '/' ? arena_copy(book->arena, target + 1, strlen(target + 1))
                                      : arena_printf(book->arena, "xl/%s", target);
    const char *copy = arena_copy(book->arena, id, strlen(id));
    if (!parts || !path || !copy)
        return !(book->failed = true);
    book->parts = parts;
    book->parts[book->part_count++] =
        (struct part){.id = copy, .target = path, .is_sheet = is_sheet};
    if (is_strings)
        book->strings_part = path;
    return true;
}

static bool strings_start(void *context, const char *name, const char **attributes)
{
    struct book *book = context;
    (void)attributes;
    if (book->phonetic || strcmp(name, "rPh") == 0)
        book->phonetic++;
    book->in_text = !book->phonetic && strcmp(name, "t") == 0;
    if (strcmp(name, "si") == 0)
        book->text.size = 0;
    return true;
}

static bool strings_end(void *context, const char *name)
{
    struct book *book = context;
    book->in_text = false;
    if (book->phonetic) {
        book->phonetic--;
        return true;
    }
    if (strcmp(name, "si") != 0)
        return true;
    const char **at = grown(book->arena, book->strings.at, book->strings.count,
                            &book->string_capacity, sizeof *at);
    const char *copy =
        arena_copy(book->arena, book->text.size ? book->text.data : "", book->text.size);
    if (!at || !copy)
        return !(book->failed = true);
    book->strings.at = at;
    book->strings.at[book->strings.count++] = copy;
    return true;
}

static bool strings_text(void *context, const char *text, size_t length)
{
    struct book *book = context;
    if (book->in_text)
        buf_append(&book->text, text, length);
    return !(book->failed |= book->text.failed);
}

/* -- Parts ------------------------------------------------------------------------------------- */

/* The bytes of a member, in place or unpacked; *owned is what to free. */
static enum plumb_code load(const struct book *book, const char *name, const void **bytes,
                            size_t *size, void **owned, struct plumb_error *err)
{
    const struct zip_entry *entry = zip_find(&book->zip, name, strlen(name));
    *owned = NULL;
    *bytes = NULL;
    *size = 0;
    if (!entry)
        return plumb_fail(err, PLUMB_E_FORMAT, "the workbook has no part '%.200s'", name);
    enum plumb_code code = zip_check(entry, err);
    if (code)
        return code;
    *size = (size_t)entry->size;
    *bytes = book->file->data + entry->offset;
    if (entry->method == ZIP_STORED)
        return PLUMB_OK;
    if (entry->size > MAX_UNPACKED)
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, entry->offset,
                             "'%.200s' would unpack to %" PRIu64 " bytes", name, entry->size);
    *owned = malloc(*size ? *size : 1);
    if (!*owned)
        return plumb_no_memory(err);
    *bytes = *owned;
    code = zip_inflate(entry, book->file, *owned, err);
    if (code) {
        free(*owned);
        *owned = NULL;
    }
    return code;
}

static enum plumb_code parse(struct book *book, const char *name,
                             const struct xml_handlers *handlers, struct plumb_error *err)
{
    const void *bytes;
    void *owned;
    size_t size;
    enum plumb_code code = load(book, name, &bytes, &size, &owned, err);
    if (code)
        return code;
    code = xml_parse(bytes, size, name, handlers, err);
    if (book->failed)
        code = plumb_no_memory(err);
    free(owned);
    return code;
}

static enum plumb_code read_book(struct book *book, struct plumb_error *err)
{
    struct xml_handlers workbook = {book, on_workbook, ignore_end, ignore_text};
    struct xml_handlers relations = {book, on_relations, ignore_end, ignore_text};
    struct xml_handlers strings = {book, strings_start, strings_end, strings_text};
    enum plumb_code code = parse(book, "xl/workbook.xml", &workbook, err);
    if (!code)
        code = parse(book, "xl/_rels/workbook.xml.rels", &relations, err);
    if (!code && book->strings_part)
        code = parse(book, book->strings_part, &strings, err);
    if (!code && !book->sheet_count)
        code = plumb_fail(err, PLUMB_E_FORMAT, "the workbook has no sheets");
    return code;
}

static struct part *find_sheet(const struct book *book, const char *id)
{
    for (size_t i = 0; i < book->part_count; i++)
        if (book->parts[i].is_sheet && strcmp(book->parts[i].id, id) == 0)
            return &book->parts[i];
    return NULL;
}

static enum plumb_code read_sheet(struct book *book, size_t number, const struct row_reader *reader,
                                  struct plumb_error *err)
{
    struct part *part = find_sheet(book, book->sheets[number]);
    const void *bytes;
    void *owned;
    size_t size;
    if (!part)
        return PLUMB_OK; /* a chart, or the like */
    /* A small file could else be read over and over. */
    for (size_t i = 0; i < book->part_count; i++)
        if (book->parts[i].read && strcmp(book->parts[i].target, part->target) == 0)
            return plumb_fail(err, PLUMB_E_FORMAT, "two sheets are the same part '%.200s'",
                              part->target);
    part->read = true;
    enum plumb_code code = load(book, part->target, &bytes, &size, &owned, err);
    if (code)
        return code;
    code = sheet_read(bytes, size, part->target, number, &book->strings, reader, err);
    free(owned);
    return code;
}

enum plumb_code xlsx_read(const struct plumb_file *file, const struct row_reader *reader,
                          struct plumb_error *err)
{
    enum { MAX_SHEETS = 1024 };
    struct book book = {.file = file, .arena = reader->arena};
    enum plumb_code code = zip_open(&book.zip, reader->arena, file, err);
    if (code)
        return code;
    code = read_book(&book, err);
    if (!code && book.sheet_count > MAX_SHEETS)
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "%zu sheets are more than the %d that plumb "
                          "reads",
                          book.sheet_count, MAX_SHEETS);
    for (size_t i = 0; i < book.sheet_count && !code; i++)
        code = read_sheet(&book, i, reader, err);
    buf_free(&book.text);
    zip_close(&book.zip);
    return code;
}
