/* modules.json beside a capture: what plumb's own captures note of each call of a module, its class
 * and what it was constructed with:
 *
 *     {"Module.ln.LayerNorm.forward.0": {"class": "torch.nn.modules.normalization.LayerNorm",
 *                                        "training": true, "eps": 1e-05, ...}, ...}
 */
#ifndef DUMP_SETTINGS_H
#define DUMP_SETTINGS_H

#include "dump/call.h"

struct settings;

/* Of one call. */
struct setting_list {
    const char *class;       /* with its module; NULL: not said */
    struct case_kwarg *list; /* the others */
    size_t count;
};

/* Opens the file. PLUMB_E_FORMAT: it is damaged, or no object. */
enum plumb_code settings_open(const char *path, struct settings **out, struct plumb_error *err);

/* The same for bytes in memory, which must outlive it. */
enum plumb_code settings_parse(const void *bytes, size_t size, struct settings **out,
                               struct plumb_error *err);
void settings_close(struct settings *settings); /* NULL is fine */

/* What is said of a call; *found is false when nothing is. Everything lives in the arena.
 * Thread-safe for different arenas. */
enum plumb_code settings_of(const struct settings *settings, const char *call, struct arena *arena,
                            struct setting_list *out, bool *found, struct plumb_error *err);

/* The one of that name, or NULL. */
const struct case_arg *settings_get(const struct setting_list *list, const char *name);

#endif
