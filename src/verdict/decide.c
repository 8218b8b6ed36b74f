/* Writing a verdict down. */
#include "verdict/decide.h"

#include "base/plain.h"

#include <stdarg.h>

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
