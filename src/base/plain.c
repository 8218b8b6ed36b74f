/* printf and strtod as the C locale has them. The locale of this thread is changed for the moment
 * of the call; the C library has the C locale at hand, so that this costs no memory. */
#define _GNU_SOURCE
#include "base/plain.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

struct held {
    locale_t plain, before;
};

static struct held hold(void)
{
    struct held held = {.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    if (held.plain)
        held.before = uselocale(held.plain);
    return held;
}

static void release(struct held held)
{
    if (!held.plain)
        return;
    uselocale(held.before);
    freelocale(held.plain);
}

int plain_vprint(char *text, size_t size, const char *format, va_list args)
{
    const struct held held = hold();
    const int length = vsnprintf(text, size, format, args);
    release(held);
    return length;
}

int plain_print(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = plain_vprint(text, size, format, args);
    va_end(args);
    return length;
}

double plain_number(const char *text, char **end)
{
    const struct held held = hold();
    const double value = strtod(text, end);
    release(held);
    return value;
}
