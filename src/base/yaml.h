/* YAML files as trees: texts, lists, and mappings from names, in the order of the file.
 *
 * What people write into mapping files and nothing more: no aliases, no names that are not text,
 * little nesting. Memory is bounded by the size of the file. */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include "base/arena.h"
#include "base/buf.h"
#include "plumb/error.h"

#include <stdbool.h>

/* libyaml has the names that begin with yaml_. */
struct yml {
    enum { YML_TEXT, YML_LIST, YML_MAP } kind;
    size_t line;       /* from 1 */
    const char *text;  /* of a text; no NUL inside */
    bool quoted;       /* a text in quotes: never a null */
    struct yml *items; /* of a list, or the values of a mapping */
    const char **keys; /* the names of a mapping, one a value; the same may come twice */
    size_t count;
};

/* *root becomes the list of the documents of the file. Everything lives in the arena. Errors are
 * PLUMB_E_FORMAT with the line, or PLUMB_E_NOMEM. */
enum plumb_code yml_parse(struct yml *root, struct arena *arena, const void *bytes, size_t size,
                          struct plumb_error *err);

/* The same from a file, whose name is put into errors. */
enum plumb_code yml_read(struct yml *root, struct arena *arena, const char *path,
                         struct plumb_error *err);

/* Reads a file and hands its documents to a function one by one, until it refuses one. Errors name
 * the file. */
enum plumb_code yml_each(struct arena *arena, const char *path,
                         enum plumb_code (*read)(void *context, const struct yml *document,
                                                 struct plumb_error *err),
                         void *context, struct plumb_error *err);

/* Nothing, ~ or null. */
bool yml_is_null(const struct yml *value);

/* PLUMB_E_FORMAT: what is wrong with this value. */
enum plumb_code yml_fail(struct plumb_error *err, const struct yml *value, const char *what);

/* Appends a text so that a YAML reader gets it back. */
void yml_write(struct buf *out, const char *text);

#endif
