/* What a record is to the call that it belongs to. */
#ifndef PAIR_ROLE_H
#define PAIR_ROLE_H

#include <stddef.h>

enum pair_role { ROLE_NONE, ROLE_INPUT, ROLE_OUTPUT };

/* Cuts "block.norm.LayerNorm.0.forward_output.0" into the call in one direction, of which it gives
 * the length, and the role. */
enum pair_role pair_role(const char *name, size_t *length);

#endif
