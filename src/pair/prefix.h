/* The last tier of the fuzzy matching: runs whose module paths have different beginnings, as
 * model.visual.blocks.0 and blocks.0. */
#ifndef PAIR_PREFIX_H
#define PAIR_PREFIX_H

#include "pair/name.h"
#include "pair/parts.h"

/* "blocks.0.mlp." of the first count tokens; NULL when out of memory. */
const char *fuzzy_path_text(struct arena *arena, const struct name *name, int count);

/* keys is scratch, by side and record. False when out of memory. */
bool match_prefixes(struct matcher *matcher, struct name *const names[2],
                    struct match_key *const keys[2]);

#endif
