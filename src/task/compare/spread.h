/* What processes other than the first know to do for a walk. */
#ifndef COMPARE_SPREAD_H
#define COMPARE_SPREAD_H

#include "crew/crew.h"
#include "run/ref.h"

struct spread_desk;

/* places may be NULL, and is kept. NULL when out of memory. */
struct spread_desk *spread_desk_new(const struct crew_places *places);
void spread_desk_free(struct spread_desk *desk);

/* Of a crew; lives as long as the desk. */
struct crew_handler spread_handler(struct spread_desk *desk);

#endif
