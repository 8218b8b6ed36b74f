/* Buffered output to a stream. Failure sticks, so that a writer checks once at the end. */
#ifndef REPORT_SINK_H
#define REPORT_SINK_H

#include "plumb/error.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct sink {
    FILE *out;
    int error; /* errno of the first failure, 0 while all is well */
    size_t used;
    uint64_t passed; /* bytes that came before those here */
    char bytes[16384];
};

void sink_write(struct sink *sink, const char *bytes, size_t size);
void sink_repeat(struct sink *sink, char c, size_t count);

static inline void sink_text(struct sink *sink, const char *text)
{
    sink_write(sink, text, strlen(text));
}

static inline void sink_char(struct sink *sink, char c)
{
    if (sink->used == sizeof sink->bytes)
        sink_write(sink, &c, 1);
    else
        sink->bytes[sink->used++] = c;
}

/* Hands everything to the operating system; PLUMB_E_IO when any of it did not get there. */
enum plumb_code sink_finish(struct sink *sink, struct plumb_error *err);

#endif
