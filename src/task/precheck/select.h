/* Which calls of a dump are checked, by their names. */
#ifndef PRECHECK_SELECT_H
#define PRECHECK_SELECT_H

#include "base/map.h"
#include "task/precheck/config.h"

#include <stdbool.h>

enum select_outcome {
    SELECT_RUN,
    SELECT_SKIP,    /* not checked: a row that says why */
    SELECT_REFUSED, /* msprobe only: the same, found out when the inputs are made already */
    SELECT_UNRUN,   /* msprobe only: counts as passed without being run, inputs made or not */
    SELECT_ABORT,   /* msprobe only: the run ends here */
};

struct selector {
    bool msprobe;
    struct map white, black;
};

/* Takes the lists of the configuration, whose texts are borrowed. With msprobe, a name on them that
 * no API of the lists of api_names.h has is an error (PLUMB_E_ARG). */
enum plumb_code selector_init(struct selector *selector, const struct check_config *config,
                              bool msprobe, struct plumb_error *err);
void selector_destroy(struct selector *selector); /* also after a failure */

/* The bare name in that of a call ("linalg.inv"), not ended by a NUL; its length, 0 for none. */
size_t select_api(const char *name, const char **api);

/* What becomes of a call ("Torch.linalg.inv.0"); *reason is why, or NULL for SELECT_RUN.
 * Thread-safe. */
enum select_outcome select_call(const struct selector *selector, const char *name,
                                const char **reason);

#endif
