/* A call with other values in it. */
#ifndef VERDICT_CHANGE_H
#define VERDICT_CHANGE_H

#include "base/arena.h"
#include "plumb/call.h"

/* What one argument becomes; false when memory runs out. name is that of a keyword, or "". */
typedef bool change_fn(void *context, const char *name, const struct plumb_arg *from,
                       struct plumb_arg *to);

/* Puts each argument of the call through `change`, lists opened. The call's arrays are replaced by
 * new ones in the arena; false when memory runs out. */
bool change_call(struct arena *arena, change_fn *change, void *context, struct plumb_call *call);

#endif
