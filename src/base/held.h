/* Files that stay mapped, whole, while many small parts of them are read: opening, mapping and
 * unmapping a file costs more than a thousand numbers do. A holder has a few of them at a time,
 * those that were asked for last. Thread-safe. */
#ifndef BASE_HELD_H
#define BASE_HELD_H

#include "plumb/file.h"

struct holder;

/* NULL when out of memory. */
struct holder *holder_new(void);

/* Parts that are still in use keep their mapping. NULL is fine. */
void holder_free(struct holder *holder);

/* All of a file, whose path lives as long as the holder: mapped now, or held since. Its size and
 * time stamp are those of now. plumb_file_unmap gives it back. Fails as plumb_file_map does. */
enum plumb_code holder_map(struct holder *holder, const char *path, struct plumb_file *file,
                           struct plumb_error *err);

/* For file.c. */
void held_release(struct plumb_held *held);
void held_spoil(struct plumb_held *held); /* async-signal-safe */
bool held_is_spoiled(const struct plumb_held *held);

#endif
