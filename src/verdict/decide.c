/* Writing a verdict down. */
#define _POSIX_C_SOURCE 200809L
#include "verdict/decide.h"

#include "base/plain.h"

#include <stdarg.h>
#include <string.h>

void verdict_decide(struct plumb_verdict *verdict, enum plumb_severity severity, const char *format,
                    ...)
{
    va_list args;
    va_start(args, format);
    verdict->severity = severity;
    verdict->unjudged = verdict->nonfinite = false;
    plain_vprint(verdict->rule, sizeof verdict->rule, format, args);
    va_end(args);
}

void verdict_join(struct plumb_verdict *verdict, enum plumb_severity severity,
                  const char *const *pieces, size_t count)
{
    size_t used = 0;
    verdict->severity = severity;
    verdict->unjudged = verdict->nonfinite = false;
    for (size_t i = 0; i < count; i++) {
        const size_t room = sizeof verdict->rule - 1 - used, length = strnlen(pieces[i], room);
        memcpy(verdict->rule + used, pieces[i], length);
        used += length;
    }
    verdict->rule[used] = '\0';
}

void verdict_leave(struct plumb_verdict *verdict, const char *why)
{
    verdict_decide(verdict, PLUMB_SUSPICIOUS, "not judged: %s", why);
    verdict->unjudged = true;
}

void verdict_unwritten(struct plumb_verdict *verdict)
{
    verdict_decide(verdict, PLUMB_NORMAL, "not judged: uninitialised");
    verdict->unjudged = true;
}

void verdict_empty(struct plumb_verdict *verdict)
{
    verdict_decide(verdict, PLUMB_NORMAL, "no elements to compare");
}
