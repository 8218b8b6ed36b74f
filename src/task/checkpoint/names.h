/* What Megatron calls its weights, and what their names say. */
#ifndef CHECKPOINT_NAMES_H
#define CHECKPOINT_NAMES_H

#include "base/arena.h"
#include "task/checkpoint/checkpoint.h"

/* The name that today's Megatron core would give; NULL when out of memory. */
const char *names_to_core(struct arena *arena, const char *name);

/* Another name for what core's local and fused layers call differently; NULL when there is none or
 * when out of memory. */
const char *names_alias(struct arena *arena, const char *name);

/* How tensor parallel ranks cut the weight; CKPT_WHOLE: each has all of it. */
enum checkpoint_join names_join(const char *name, bool gated,
                                const struct checkpoint_profile *rules);

/* The number in "...layers.N." or "...experts.N.": digits [at, at+length) of the name. */
struct names_index {
    size_t at, length;
    int64_t value;
};

bool names_layer(const char *name, struct names_index *index);
bool names_expert(const char *name, const struct checkpoint_profile *rules,
                  struct names_index *index);

/* The name with another number at that place; NULL when out of memory. */
const char *names_renumber(struct arena *arena, const char *name, const struct names_index *index,
                           int64_t value);

#endif
