/* What the makers of an exchange share. */
#ifndef RANKS_EXCHANGE_PARTS_H
#define RANKS_EXCHANGE_PARTS_H

#include "ranks/exchange.h"

/* Gives members that took part in a collective their tie, and lists the ties. Members are there.
 * PLUMB_E_NOMEM is the only failure, here and below. */
enum plumb_code exchange_tie(struct exchange *x, const struct graph_rank *ranks, size_t count,
                             struct arena *arena);

/* Gives nodes their layers, and puts the members in sequence; ties and edges are there. */
enum plumb_code exchange_lay_out(struct exchange *x, size_t count, struct arena *arena);

#endif
