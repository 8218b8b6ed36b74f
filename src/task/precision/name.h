/* "Torch.linalg.inv.0.forward.output.1" taken apart. */
#ifndef PRECISION_NAME_H
#define PRECISION_NAME_H

#include "base/csv.h"

enum direction { DIRECTION_FORWARD, DIRECTION_BACKWARD, DIRECTION_OTHER };

struct output_name {
    struct csv_cell full;  /* "Torch.linalg.inv.0" */
    struct csv_cell api;   /* "linalg.inv" */
    struct csv_cell place; /* "forward.output.1" */
    enum direction direction;
};

/* False when the name has not 6 or 7 parts. */
bool precision_name(struct csv_cell text, struct output_name *name);

#endif
