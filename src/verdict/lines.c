/* Splitting rule texts into lines and words. */
#include "verdict/lines.h"

#include "base/mapped.h"

#include <string.h>

#define LINE_MAX_CHARS 200
#define WORDS_MAX (LINE_MAX_CHARS / 2 + 1)
#define FILE_MAX_BYTES (1u << 20)

static size_t split(char *line, char *words[WORDS_MAX])
{
    static const char blank[] = " \t\r\v\f";
    size_t count = 0;
    for (line += strspn(line, blank); *line && count < WORDS_MAX; line += strspn(line, blank)) {
        words[count++] = line;
        line += strcspn(line, blank);
        if (*line)
            *line++ = '\0';
    }
    return count;
}

static enum plumb_code parse_line(const char *text, size_t size, size_t line,
                                  lines_statement statement, void *context, struct plumb_error *err)
{
    const char *comment = memchr(text, '#', size);
    if (comment)
        size = (size_t)(comment - text);
    if (memchr(text, '\0', size))
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: holds a zero byte; not a text", line);
    if (size > LINE_MAX_CHARS)
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: longer than %d characters", line,
                          LINE_MAX_CHARS);

    char copy[LINE_MAX_CHARS + 1], *words[WORDS_MAX] = {NULL};
    memcpy(copy, text, size);
    copy[size] = '\0';
    size_t count = split(copy, words);
    return count ? statement(context, words, count, line, err) : PLUMB_OK;
}

enum plumb_code lines_parse(const char *text, size_t size, lines_statement statement, void *context,
                            struct plumb_error *err)
{
    size_t line = 1;
    enum plumb_code code = PLUMB_OK;
    for (const char *end = text + size; text < end && !code; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = newline ? (size_t)(newline - text) : (size_t)(end - text);
        code = parse_line(text, length, line, statement, context, err);
        text += length + (newline != NULL);
    }
    return code;
}

enum plumb_code lines_parse_file(const char *path, lines_statement statement, void *context,
                                 struct plumb_error *err)
{
    struct mapped in;
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    const char *text = in.file.size > 0 ? (const char *)in.file.data : "";
    code = in.file.size > FILE_MAX_BYTES
               ? plumb_fail(err, PLUMB_E_FORMAT, "larger than a text of rules can be")
               : lines_parse(text, (size_t)in.file.size, statement, context, err);
    return mapped_close(&in, code, err);
}
