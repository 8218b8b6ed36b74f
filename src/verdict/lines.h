/* The shape that all rule texts share: a statement a line, words with blanks between them, and
 * comments from # to the end of the line. */
#ifndef VERDICT_LINES_H
#define VERDICT_LINES_H

#include "plumb/error.h"

#include <stddef.h>

/* Reads a statement of count words, at least one. Texts are gone afterwards. What it says is wrong
 * begins with the line: "line 3: ...". */
typedef enum plumb_code (*lines_statement)(void *context, char *const *words, size_t count,
                                           size_t line, struct plumb_error *err);

/* Hands on every statement of a text, up to the first that fails. PLUMB_E_FORMAT for a line that is
 * too long or holds a zero byte. */
enum plumb_code lines_parse(const char *text, size_t size, lines_statement statement, void *context,
                            struct plumb_error *err);

/* The same for a file of at most a megabyte; errors name it. */
enum plumb_code lines_parse_file(const char *path, lines_statement statement, void *context,
                                 struct plumb_error *err);

#endif
