/* The time in the names of result files. */
#define _GNU_SOURCE
#include "base/stamp.h"

enum plumb_code stamp_write(time_t when, bool utc, char stamp[STAMP_BYTES], struct plumb_error *err)
{
    struct tm parts;
    if (!(utc ? gmtime_r(&when, &parts) : localtime_r(&when, &parts)) ||
        !strftime(stamp, STAMP_BYTES, "%Y%m%d%H%M%S", &parts))
        return plumb_fail(err, PLUMB_E_IO, "the clock gives no time");
    return PLUMB_OK;
}
