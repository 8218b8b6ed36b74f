/* Filling errors, and showing them. */
#include "plumb/error.h"
#include "base/plain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum plumb_code fill(struct plumb_error *err, enum plumb_code code, uint64_t offset,
                            const char *format, va_list args)
{
    if (!err)
        return code;
    err->code = code;
    err->offset = offset;
    err->file[0] = '\0';
    plain_vprint(err->message, sizeof err->message, format, args);
    for (char *c = err->message; *c; c++)
        if (*c == '\n' || *c == '\r' || *c == '\t')
            *c = ' ';
    return code;
}

enum plumb_code plumb_fail(struct plumb_error *err, enum plumb_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, PLUMB_NO_OFFSET, format, args);
    va_end(args);
    return code;
}

enum plumb_code plumb_fail_at(struct plumb_error *err, enum plumb_code code, uint64_t offset,
                              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, offset, format, args);
    va_end(args);
    return code;
}

enum plumb_code plumb_no_memory(struct plumb_error *err)
{
    return plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
}

const char *plumb_version(void)
{
    return PLUMB_VERSION;
}

void plumb_error_in_file(struct plumb_error *err, const char *path)
{
    if (!err || err->file[0])
        return;
    size_t length = strlen(path);
    if (length < sizeof err->file) {
        memcpy(err->file, path, length + 1);
    } else {
        const char *tail = path + length - (sizeof err->file - 4);
        snprintf(err->file, sizeof err->file, "...%s", tail);
    }
}

const char *plumb_error_text(const struct plumb_error *err, char *text, size_t size)
{
    if (err->file[0] && err->offset != PLUMB_NO_OFFSET)
        snprintf(text, size, "%s: at byte %" PRIu64 ": %s", err->file, err->offset, err->message);
    else if (err->file[0])
        snprintf(text, size, "%s: %s", err->file, err->message);
    else if (err->offset != PLUMB_NO_OFFSET)
        snprintf(text, size, "at byte %" PRIu64 ": %s", err->offset, err->message);
    else
        snprintf(text, size, "%s", err->message);
    return text;
}
