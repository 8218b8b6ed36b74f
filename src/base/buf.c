/* A growing byte buffer. */
#include "base/buf.h"
#include "base/plain.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Room for size more bytes and a NUL. */
static bool reserve(struct buf *buf, size_t size)
{
    if (buf->failed || size > SIZE_MAX / 4 - buf->size) {
        buf->failed = true;
        return false;
    }
    size_t need = buf->size + size + 1;
    if (need <= buf->capacity)
        return true;
    size_t capacity = buf->capacity ? buf->capacity : 256;
    while (capacity < need)
        capacity *= 2;
    char *data = realloc(buf->data, capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void buf_append(struct buf *buf, const void *bytes, size_t size)
{
    if (!reserve(buf, size))
        return;
    if (size)
        memcpy(buf->data + buf->size, bytes, size);
    buf->size += size;
    buf->data[buf->size] = '\0';
}

void buf_text(struct buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}

void buf_repeat(struct buf *buf, char c, size_t count)
{
    if (!reserve(buf, count))
        return;
    memset(buf->data + buf->size, c, count);
    buf->size += count;
    buf->data[buf->size] = '\0';
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    char brief[256];
    va_list args;
    va_start(args, format);
    int length = plain_vprint(brief, sizeof brief, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < sizeof brief) {
        buf_append(buf, brief, (size_t)length);
        return;
    }
    if (length < 0 || !reserve(buf, (size_t)length)) {
        buf->failed = true;
        return;
    }
    va_start(args, format);
    plain_vprint(buf->data + buf->size, (size_t)length + 1, format, args);
    va_end(args);
    buf->size += (size_t)length;
}

void buf_free(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){0};
}
