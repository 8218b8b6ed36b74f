/* Names that stand for other names: a YAML file of lines NAME: NAME, in order. A later entry for
 * the same name wins. */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/error.h"

struct names {
    struct arena arena;
    const char **from, **to;
    size_t count, capacity;
    struct map index; /* of from */
};

enum plumb_code names_read(struct names *names, const char *path, struct plumb_error *err);
enum plumb_code names_parse(struct names *names, const void *bytes, size_t size,
                            struct plumb_error *err);
void names_free(struct names *names);

/* Adds an entry; the texts are borrowed. False when out of memory. */
bool names_add(struct names *names, const char *from, const char *to);

/* What name stands for, or NULL. */
const char *names_find(const struct names *names, const char *name);

/* The entries as such a file; NULL when out of memory. The caller frees it. */
char *names_text(const struct names *names);

#endif
