/* A growing byte buffer. Failure sticks: after running out of memory further appends do nothing and
 * `failed` stays true, so a writer checks once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; /* NUL-terminated once anything was appended */
    size_t size, capacity;
    bool failed;
};

void buf_append(struct buf *buf, const void *bytes, size_t size);
void buf_text(struct buf *buf, const char *text);
void buf_repeat(struct buf *buf, char c, size_t count);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_free(struct buf *buf);

#endif
