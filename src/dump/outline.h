/* The outline of a dump.json: one object, fields of it, and "data", an object of entries. One
 * reader for all who want something of its entries; nothing inside them is looked at here. */
#ifndef DUMP_OUTLINE_H
#define DUMP_OUTLINE_H

#include "base/json.h"
#include "plumb/error.h"

/* What is done on the way. What a function returns but PLUMB_OK ends the walk. */
struct outline {
    struct json *json;
    /* The key of a field was read, and its value is to be read or skipped. NULL: skip all. */
    enum plumb_code (*field)(void *context);
    /* The value of "data" begins with event, which may be JSON_ERROR. An object's entries follow;
     * anything else is skipped. Where a file has several, the last one counts. */
    enum plumb_code (*data)(void *context, enum json_event event);
    /* The key of an entry was read, and its value is to be read or skipped. */
    enum plumb_code (*entry)(void *context);
    void *context;
};

/* Walks all of the text. PLUMB_E_FORMAT with json->error set: it is damaged there.
 * PLUMB_E_UNSUPPORTED: it is well-formed so far, but no object. */
enum plumb_code outline_read(const struct outline *outline);

/* Skips the value of the key that was just read. PLUMB_E_FORMAT when that is damaged. */
enum plumb_code outline_skip(struct json *json);

/* Reads the value of the key "dtensor" of a tensor, which was just read: how it lies on processes.
 * *spread is set when this one has a part of it, or a part of a sum: where a placement is not "R".
 * PLUMB_E_FORMAT when the text is damaged. */
enum plumb_code outline_spread(struct json *json, bool *spread);

#endif
