/* One call of a dump, computed again from what went in, and what came out held against it. */
#ifndef VERDICT_LOCAL_H
#define VERDICT_LOCAL_H

#include "verdict/known.h"

/* Judges call i by its recorded inputs, outputs and gradients: forward, then backward. Texts
 * live in the arena. PLUMB_E_NOMEM: it needs more than it may take. Whatever else goes wrong is
 * a verdict of its own. */
enum plumb_code local_judge(const struct local_options *options, size_t i, struct arena *arena,
                            struct local_verdict out[LOCAL_DIRECTIONS], struct plumb_error *err);

#endif
