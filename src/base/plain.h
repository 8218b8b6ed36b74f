/* Text with numbers in it, written and read as the C locale has them: the library lives in programs
 * that may have chosen a comma for the point. */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include <stdarg.h>
#include <stddef.h>

/* As snprintf and vsnprintf. */
int plain_print(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int plain_vprint(char *text, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* As strtod. */
double plain_number(const char *text, char **end);

#endif
