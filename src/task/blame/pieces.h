/* The tensors of a unit in memory. */
#ifndef BLAME_PIECES_H
#define BLAME_PIECES_H

#include "task/blame/units.h"

enum { MAX_TENSORS = 64 };

/* An argument or result with the place, or the name, that it has in its call. */
struct named {
    const char *name;
    struct plumb_arg arg;
};

struct list {
    struct named items[MAX_TENSORS];
    size_t count;
};

struct loader {
    const struct plumb_run *run;
    struct arena arena;  /* of the tensors */
    uint64_t left;       /* bytes that they may take */
    const char *refused; /* why the unit cannot be judged, or NULL */
};

/* Loads a record into the arena. PLUMB_E_NOMEM: it takes more than is left. */
enum plumb_code loader_take(struct loader *loader, const struct plumb_run *run, size_t record,
                            const struct plumb_tensor **out, struct plumb_error *err);

/* Appends all pieces, or sets refused. */
enum plumb_code list_take(struct loader *loader, const struct pieces *pieces, struct list *out,
                          struct plumb_error *err);

/* The one of that name, or NULL. */
const struct named *list_find(const struct list *list, const char *name, size_t length);

bool tensor_same_shape(const struct plumb_tensor *a, const struct plumb_tensor *b);

/* How far a tensor is from a reference, in relation to its size; infinity where that cannot be
 * said. */
double tensor_distance(const struct plumb_arg *reference, const struct plumb_tensor *got);

#endif
