/* What the parts of the dump.json reader share. */
#ifndef DUMP_READER_H
#define DUMP_READER_H

#include "base/buf.h"
#include "base/json.h"
#include "dump/dump.h"

/* Longer names than any model has; without a limit a hostile file could ask for far more memory
 * than it has bytes, since every row carries its name. */
enum { DUMP_MAX_NAME = 4096, DUMP_MAX_NESTING = 64, DUMP_MAX_WARNINGS = 100 };

/* Fields of a leaf at most; 0 stands for whatever comes but once. */
enum { DUMP_FIELDS = 16 };

struct dump_word {
    const char *text; /* in the arena */
    size_t length;
};

struct dump_shape {
    const char *text;
    size_t ndim;
    const int64_t *dims;
};

struct reader {
    struct dump_tree *tree;
    dump_take *take; /* rows are handed to it entry by entry; NULL: the tree keeps them */
    void *context;
    size_t taken; /* rows so far */
    struct json json;
    struct buf path;          /* name of the place that is being read */
    struct buf text;          /* for values on their way to the arena */
    struct map words, shapes; /* texts that come again and again; shapes as they are written */
    struct dump_word last[DUMP_FIELDS];
    struct json_span shape_span; /* of the shape before */
    const struct dump_shape *shape;
    struct json_span key_spans[DUMP_FIELDS]; /* of the first keys of the leaf before */
    uint8_t key_fields[DUMP_FIELDS];         /* and what they are */
    struct map groups;                       /* ranks of process groups by their names */
    size_t row_capacity, api_capacity;
    size_t name_bytes, name_limit;
    enum dump_section section;
    unsigned depth;
    bool flat;         /* lists add no index to names */
    bool takes_memory; /* the entry is a call that gives memory as it is */
    bool checksums;    /* some leaf has one */
    bool has_data;     /* the object of entries began */
};

/* Rows of the value that begins with event, at r->path. */
enum plumb_code dump_walk(struct reader *r, enum json_event event);

/* A row of the leaf that the parser has just entered, or of a None. */
enum plumb_code dump_leaf(struct reader *r);
enum plumb_code dump_none(struct reader *r);

/* Does the object that the parser has just entered begin like the leaf before? Then it is one. */
bool dump_is_like_leaf(const struct reader *r);

/* Why a text could not be had: PLUMB_E_FORMAT or PLUMB_E_NOMEM. */
enum plumb_code dump_failure(const struct reader *r);

/* Appends ".text" to the path; the size to go back to is the caller's to keep. False, with a
 * warning, when that is too long. */
bool dump_push(struct reader *r, const char *text, size_t length);
void dump_pop(struct reader *r, size_t size);

/* The text of the value that begins with event, as Python prints it; NULL on damage or without
 * memory. A word is kept once, and found fastest when the same field had it last time. */
const char *dump_text(struct reader *r, enum json_event event);
const char *dump_word(struct reader *r, enum json_event event, unsigned field);

/* The one copy of a text. NULL when out of memory. */
const char *dump_intern(struct reader *r, const char *text, size_t length, unsigned field);

/* The same of a shape; without dims where it is no list of integers. */
const struct dump_shape *dump_shape(struct reader *r, enum json_event event);

/* Lets dump_named find the last of the APIs, in place of an earlier one of that name (*twice).
 * PLUMB_E_NOMEM. */
enum plumb_code dump_name_last(struct dump_tree *tree, bool *twice);

/* A line for the tree's warnings. */
enum plumb_code dump_warn(struct dump_tree *tree, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Room for one more element behind count; NULL when out of memory. */
void *dump_grow(void *items, size_t count, size_t *capacity, size_t size);

/* The bytes of a dump.json; tree->path is for messages. Rows go to `take`, or stay when it is
 * NULL. */
enum plumb_code dump_parse(struct dump_tree *tree, const void *bytes, size_t size, dump_take *take,
                           void *context, struct plumb_error *err);

/* stack.json and construct.json of the tree's folder, or the bytes of such files. Damage is a
 * warning. */
enum plumb_code dump_read_stacks(struct dump_tree *tree);
enum plumb_code dump_read_parents(struct dump_tree *tree);
enum plumb_code dump_parse_stacks(struct dump_tree *tree, const void *bytes, size_t size,
                                  const char *path);
enum plumb_code dump_parse_parents(struct dump_tree *tree, const void *bytes, size_t size,
                                   const char *path);

#endif
