/* What the files baseline*.c share. */
#ifndef VERDICT_BASELINE_PARTS_H
#define VERDICT_BASELINE_PARTS_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/baseline.h"

struct plumb_baseline {
    struct arena arena;
    struct plumb_baseline_options options;
    struct plumb_deviation *list; /* no two with the same key */
    size_t count, capacity;
    struct map index; /* from key to place + 1 */
};

bool baseline_is_deviation(const struct plumb_deviation *is);

/* By call, result, step and rank. */
int baseline_order(const struct plumb_deviation *a, const struct plumb_deviation *b);

/* NULL: there is none of that key. */
const struct plumb_deviation *baseline_find(const struct plumb_baseline *baseline,
                                            const struct plumb_deviation *key);

/* The same from bytes in memory. */
enum plumb_code baseline_parse(const void *bytes, size_t size,
                               const struct plumb_baseline_options *options,
                               struct plumb_baseline **out, struct plumb_error *err);

#endif
