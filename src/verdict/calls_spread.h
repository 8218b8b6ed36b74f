/* Judging the calls of dumps by several processes. */
#ifndef VERDICT_CALLS_SPREAD_H
#define VERDICT_CALLS_SPREAD_H

#include "crew/crew.h"
#include "verdict/calls.h"

/* Judges those calls whose `again` is false afterwards; the others need more memory than a process
 * may take, and are left. Without repeats. */
enum plumb_code calls_spread(struct judged_calls *calls, const struct calls_options *options,
                             bool *again, struct plumb_error *err);

struct calls_desk;

/* Of a process that does not lead; places may be NULL, and is kept. NULL when out of memory. */
struct calls_desk *calls_desk_new(const struct crew_places *places);
void calls_desk_free(struct calls_desk *desk);
struct crew_handler calls_handler(struct calls_desk *desk);

#endif
