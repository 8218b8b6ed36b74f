/* What the text of a rule set calls the numbers of a set. */
#ifndef VERDICT_LADDER_NAMES_H
#define VERDICT_LADDER_NAMES_H

#include "verdict/ladder_limits.h"

enum { RULES_NAME_BYTES = 40 };

struct rules_number {
    char name[RULES_NAME_BYTES]; /* "cosine", "float16.small", "L1.max_rel" */
    size_t offset;               /* of a double in struct standard_set */
    double most;                 /* that it may be; 1 for shares */
    const char *about;           /* of the group, with its first number; else NULL */
};

/* Number i, in the order of a printed set; false behind the last. */
bool rules_number(size_t i, struct rules_number *number);

/* "absolute"; NULL for the standard that no API may be given. */
const char *rules_standard_word(enum check_standard standard);

#endif
