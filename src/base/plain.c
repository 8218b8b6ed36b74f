/* printf and strtod as the C locale has them. The locale of this thread is changed for the moment
 * of the call; the C library has the C locale at hand, so that this costs no memory, and it is
 * asked for once. */
#define _GNU_SOURCE
#include "base/plain.h"

#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* The locale to go back to; 0: it was not changed. */
static locale_t hold(void)
{
    static _Atomic(locale_t) kept;
    locale_t plain = atomic_load(&kept);
    if (!plain) { /* every thread gets the same one */
        plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        atomic_store(&kept, plain);
    }
    return plain ? uselocale(plain) : (locale_t)0;
}

static void release(locale_t before)
{
    if (before)
        uselocale(before);
}

int plain_vprint(char *text, size_t size, const char *format, va_list args)
{
    const locale_t held = hold();
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
    const locale_t held = hold();
    const double value = strtod(text, end);
    release(held);
    return value;
}
