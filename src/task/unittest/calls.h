/* The recorded operators of a dump.json: found in one pass, turned into tests one by one. */
#ifndef UNITTEST_CALLS_H
#define UNITTEST_CALLS_H

#include "base/arena.h"
#include "plumb/file.h"

#include <stdbool.h>

struct call {
    const char *name; /* "00004-aten" */
    const char *op;   /* "aten.add.Tensor"; "Functional.linear" of a call at level L1 */
    size_t name_length, op_length;
    uint64_t start; /* of the entry in the file */
    size_t size;
    size_t group; /* which operator */
};

/* An operator and its calls, in file order: calls.order[first .. first + count - 1]. */
struct call_group {
    const char *op;
    size_t op_length;
    size_t first, count;
};

struct calls {
    struct plumb_file map; /* all zero when the bytes are somebody else's */
    const uint8_t *bytes;
    struct arena arena;
    struct call *items;
    size_t count;
    struct call_group *groups; /* in the order of their first calls */
    size_t group_count;
    size_t *order;
    bool functions;  /* some are calls at level L1 */
    size_t unusable; /* entries without an operator or without arguments */
};

/* Opens a dump.json. PLUMB_E_FORMAT, with the place, when it is damaged or holds no operators at
 * all. Of entries with the same name the last counts. */
enum plumb_code calls_open(struct calls *calls, const char *path, struct plumb_error *err);

/* The same for bytes in memory, which must outlive it. */
enum plumb_code calls_parse(struct calls *calls, const void *bytes, size_t size,
                            struct plumb_error *err);
void calls_close(struct calls *calls); /* also after a failure */

#endif
