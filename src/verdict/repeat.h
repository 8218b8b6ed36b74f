/* Repeats of the same program: their calls, found by name. */
#ifndef VERDICT_REPEAT_H
#define VERDICT_REPEAT_H

#include "base/arena.h"
#include "dump/call.h"
#include "plumb/run.h"

struct repeats;

/* Opens them, and finds their calls. *out is NULL on failure, and without repeats. */
enum plumb_code repeats_open(const char *const *paths, size_t n, const struct plumb_run *target,
                             struct repeats **out, struct plumb_error *err);
void repeats_free(struct repeats *repeats);
size_t repeats_count(const struct repeats *repeats); /* 0 for NULL */
const struct plumb_run *repeats_run(const struct repeats *repeats, size_t k);

/* The same call in repeat k; NULL when it has none. */
const struct case_file *repeats_find(const struct repeats *repeats, size_t k, const char *name,
                                     int64_t step, int64_t rank, size_t *call);

#endif
