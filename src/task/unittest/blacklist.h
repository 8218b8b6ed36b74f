/* Operators of which no unit tests are made. */
#ifndef UNITTEST_BLACKLIST_H
#define UNITTEST_BLACKLIST_H

#include "base/arena.h"
#include "plumb/error.h"

#include <stdbool.h>
#include <stddef.h>

struct blacklist {
    bool builtin;
    struct arena arena;
    const char **names;
    size_t count;
};

/* enabled false: only what is never run. path NULL: the built-in list. A file has a name a line,
 * "aten.add.Tensor", "aten.add", "add.Tensor" or "add", each perhaps with a star at its end;
 * whatever follows a # is a comment. */
enum plumb_code blacklist_open(struct blacklist *list, bool enabled, const char *path,
                               struct plumb_error *err);
void blacklist_close(struct blacklist *list); /* also after a failure */

bool blacklist_has(const struct blacklist *list, const char *op, size_t length);

#endif
