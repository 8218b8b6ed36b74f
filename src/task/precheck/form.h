/* A call as bytes that are the same for calls of a kind (filter.h), whatever the order of keys. */
#ifndef PRECHECK_FORM_H
#define PRECHECK_FORM_H

#include "base/buf.h"
#include "base/json.h"
#include "dump/call.h"

/* A member of an object: [start, value) is its key in the text, [value, end) its value. */
struct member {
    size_t start, value, end;
};

/* All zero but by_objects to begin with. May be used again and again. */
struct form {
    struct json json;
    bool by_objects, no_memory;
    struct buf text, sorted;
    struct member *members; /* of the objects that are open */
    size_t n_members, capacity;
    unsigned depth;
};

/* Writes call i into text. False when it cannot be understood, or when form_failed. */
bool form_call(struct form *form, const struct case_file *file, size_t i);

/* There was not enough memory. */
bool form_failed(const struct form *form);

void form_free(struct form *form);

#endif
