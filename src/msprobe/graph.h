/* msProbe's comparison of graph dumps: the parts of its profile, each in a file of its own. */
#ifndef MSPROBE_GRAPH_H
#define MSPROBE_GRAPH_H

#include "verdict/graph_profile.h"

extern const struct ge_reading msprobe_ge_reading;
extern const struct graph_columns msprobe_graph_columns;
extern const struct graph_profile msprobe_graph;

#endif
