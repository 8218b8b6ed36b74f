/* The time in the names of result files. */
#ifndef BASE_STAMP_H
#define BASE_STAMP_H

#include "plumb/error.h"

#include <stdbool.h>
#include <time.h>

enum { STAMP_BYTES = 16 };

/* "20260101120000", in local time or UTC. PLUMB_E_IO when the clock cannot say. */
enum plumb_code stamp_write(time_t when, bool utc, char stamp[STAMP_BYTES],
                            struct plumb_error *err);

#endif
