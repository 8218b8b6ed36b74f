/* Rule sets of the pre-check as text, a statement a line:
 *
 *     base PROFILE                         comes first; that of the first profile when left out
 *     set NAME NUMBER                      decimal or hexadecimal: set float16.small 0x1p-11
 *     use STANDARD API...                  absolute, binary, ulp, thousandth or benchmark
 *     level L0|L1|L2 API...
 *
 * A text says what is other than in its base; of two lines on the same thing the later counts. */
#ifndef VERDICT_LADDER_RULES_H
#define VERDICT_LADDER_RULES_H

#include "base/arena.h"
#include "base/buf.h"
#include "plumb/error.h"
#include "verdict/ladder_limits.h"

/* The names of profiles, which end with NULL, with a separator between them. */
void rules_names(struct buf *out, const struct precheck_profile *const *profiles,
                 const char *separator);

/* The set of one of the profiles by its name, else a file; NULL: that of the first. PLUMB_E_ARG
 * when there is neither, PLUMB_E_FORMAT with file and line for what it cannot mean. The set lives
 * in the arena, or for ever. */
enum plumb_code rules_load(const struct precheck_profile *const *profiles, const char *name_or_path,
                           struct arena *arena, const struct standard_set **set,
                           struct plumb_error *err);

/* The same for a text in memory. */
enum plumb_code rules_parse(const struct precheck_profile *const *profiles, const char *text,
                            size_t size, struct arena *arena, const struct standard_set **set,
                            struct plumb_error *err);

/* The whole set as such a text. */
void rules_print(struct buf *out, const struct standard_set *set);

#endif
