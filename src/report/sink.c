/* Buffered writing to a stream. */
#include "report/sink.h"

#include <errno.h>

static void pass_on(struct sink *sink, const char *bytes, size_t size)
{
    sink->passed += size;
    if (sink->error || !size)
        return;
    errno = 0;
    if (fwrite(bytes, 1, size, sink->out) != size)
        sink->error = errno ? errno : EIO;
}

void sink_write(struct sink *sink, const char *bytes, size_t size)
{
    if (size > sizeof sink->bytes - sink->used) {
        pass_on(sink, sink->bytes, sink->used);
        sink->used = 0;
        if (size > sizeof sink->bytes) {
            pass_on(sink, bytes, size);
            return;
        }
    }
    memcpy(sink->bytes + sink->used, bytes, size);
    sink->used += size;
}

void sink_repeat(struct sink *sink, char c, size_t count)
{
    for (; count; count--)
        sink_char(sink, c);
}

enum plumb_code sink_finish(struct sink *sink, struct plumb_error *err)
{
    pass_on(sink, sink->bytes, sink->used);
    sink->used = 0;
    if (!sink->error && fflush(sink->out) != 0)
        sink->error = errno;
    if (sink->error)
        return plumb_fail(err, PLUMB_E_IO, "cannot write: %s", strerror(sink->error));
    return PLUMB_OK;
}
