/* Which calls of a dump are checked, by their names. */
#ifndef PRECHECK_SELECT_H
#define PRECHECK_SELECT_H

#include "base/map.h"
#include "task/precheck/config.h"
#include "verdict/profile.h"

#include <stdbool.h>

struct selector {
    const struct precheck_selecting *how;
    struct map white, black;
};

/* Takes the lists of the configuration, whose texts are borrowed. A name on them that
 * how does not know is an error (PLUMB_E_ARG). */
enum plumb_code selector_init(struct selector *selector, const struct check_config *config,
                              const struct precheck_selecting *how, struct plumb_error *err);
void selector_destroy(struct selector *selector); /* also after a failure */

/* The bare name in that of a call ("linalg.inv"), not ended by a NUL; its length, 0 for none. */
size_t select_api(const char *name, const char **api);

/* What becomes of a call ("Torch.linalg.inv.0"); *reason is why, or NULL for SELECT_RUN.
 * Thread-safe. */
enum select_outcome select_call(const struct selector *selector, const char *name,
                                const char **reason);

#endif
