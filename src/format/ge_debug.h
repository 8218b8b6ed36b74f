/* What Opdebug files say: which task overflowed. */
#ifndef FORMAT_GE_DEBUG_H
#define FORMAT_GE_DEBUG_H

#include "base/buf.h"
#include "plumb/error.h"

#include <stdbool.h>

/* Is this the name of an overflow debug file? */
bool ge_debug_is(const char *file_name);

/* Decodes an output of such a file into lines "AI core: model_id 1, stream_id 2, ...". */
enum plumb_code ge_debug_text(struct buf *out, const uint8_t *data, uint64_t size,
                              struct plumb_error *err);

#endif
