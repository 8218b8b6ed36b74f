/* Single integers of what torch.save wrote, found by the path of keys that leads to them. */
#ifndef FORMAT_PT_SCALAR_H
#define FORMAT_PT_SCALAR_H

#include "plumb/error.h"

#include <stdbool.h>

struct pt_scalar {
    const char *path; /* keys of dicts and attributes of objects: "args.num_experts" */
    int64_t value;    /* of an int or bool */
    bool found;       /* false when there is nothing, None, or something else */
};

/* Looks all of them up in one file. Nothing is executed: an object's attributes are those that its
 * pickle would have set. What is not there is not an error. */
enum plumb_code pt_read_scalars(const char *path, struct pt_scalar *scalars, size_t count,
                                struct plumb_error *err);

#endif
