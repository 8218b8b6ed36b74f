/* What the tests of archives share: files in memory, listings, and values of records. */
#ifndef TESTS_FORMAT_ARCHIVE_H
#define TESTS_FORMAT_ARCHIVE_H

#include "format/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct opened {
    char path[4096];
    struct plumb_file file;
    struct arena arena;
    struct listing listing;
    struct plumb_error err;
};

/* A file over bytes in memory: enough for listing and decoding, which do not look at its path. */
static inline struct plumb_file in_memory(const void *data, size_t size)
{
    return (struct plumb_file){.data = data, .size = size, .file_size = size};
}

/* Maps tests/data/<name> and lists it. */
static inline enum plumb_code open_data(struct opened *o, const struct format *format,
                                        const char *name)
{
    memset(o, 0, sizeof *o);
    const char *root = getenv("PLUMB_TEST_DATA");
    snprintf(o->path, sizeof o->path, "%s/%s", root ? root : "tests/data", name);
    assert_int_equal(plumb_file_map(&o->file, o->path, 0, UINT64_MAX, &o->err), PLUMB_OK);
    assert_ptr_equal(format_probe(&o->file), format);
    o->listing = (struct listing){.arena = &o->arena, .path = o->path};
    return format_list(format, &o->listing, &o->file, &o->err);
}

static inline void close_data(struct opened *o)
{
    arena_free(&o->arena);
    plumb_file_unmap(&o->file);
}

static inline const struct plumb_record *record_of(const struct opened *o, const char *name)
{
    for (size_t i = 0; i < o->listing.count; i++)
        if (strcmp(o->listing.records[i].name, name) == 0)
            return &o->listing.records[i];
    fail_msg("no record '%s'", name);
    return NULL;
}

/* Loads a record and compares type, shape and all values. */
static inline void assert_values(const struct opened *o, const struct format *format,
                                 const char *name, enum plumb_dtype dtype, unsigned ndim,
                                 const int64_t *shape, const double *values)
{
    const struct plumb_record *record = record_of(o, name);
    struct plumb_error err = {0};
    struct plumb_payload payload;
    if (format_load(format, record, o->file.file_size, o->file.mtime_ns, NULL, &payload, &err))
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(payload.tensor.dtype, dtype);
    assert_int_equal(payload.tensor.rank, ndim);
    for (unsigned i = 0; i < ndim; i++)
        assert_int_equal(payload.tensor.shape[i], shape[i]);
    for (uint64_t i = 0; i < payload.tensor.count; i++) {
        double got[2];
        plumb_tensor_to_f64(&payload.tensor, i, 1, got);
        if (got[0] != values[i])
            fail_msg("%s[%u]: %g is not %g", name, (unsigned)i, got[0], values[i]);
    }
    plumb_payload_release(&payload);
}

/* The record carries an error of that code whose message holds the text. */
static inline void assert_refused(const struct opened *o, const char *name, enum plumb_code code,
                                  const char *text)
{
    const struct plumb_record *record = record_of(o, name);
    assert_non_null(record->error);
    assert_int_equal(record->error->code, code);
    if (!strstr(record->error->message, text))
        fail_msg("%s: '%s' does not say '%s'", name, record->error->message, text);
}

/* Opening is refused as a whole with a message that holds the text. */
static inline void assert_open_refused(const struct format *format, const char *name,
                                       enum plumb_code code, const char *text)
{
    struct opened o;
    assert_int_equal(open_data(&o, format, name), code);
    assert_int_equal(o.listing.count, 0);
    if (!strstr(o.err.message, text))
        fail_msg("%s: '%s' does not say '%s'", name, o.err.message, text);
    close_data(&o);
}

/* Lists every prefix of a file, from memory of exactly that size so that the sanitizers see a byte
 * read too far, and expects an error of each. */
static inline void assert_prefixes_fail(const struct format *format, const char *name)
{
    struct opened o;
    assert_int_equal(open_data(&o, format, name), PLUMB_OK);
    for (uint64_t size = 0; size < o.file.size; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        assert_non_null(copy);
        memcpy(copy, o.file.data, size);
        struct plumb_file part = in_memory(copy, size);
        struct arena arena = {0};
        struct listing listing = {.arena = &arena, .path = "part"};
        struct plumb_error err = {0};
        if (!format->list(&listing, &part, &err))
            fail_msg("%s cut to %u bytes is listed", name, (unsigned)size);
        assert_true(err.message[0]);
        arena_free(&arena);
        free(copy);
    }
    close_data(&o);
}

#endif
