/* Writing a verdict down. */
#ifndef VERDICT_DECIDE_H
#define VERDICT_DECIDE_H

#include "plumb/verdict.h"

/* Judged: severity and the rule that decided. */
void verdict_decide(struct plumb_verdict *verdict, enum plumb_severity severity, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

/* The same in `count` pieces of text, for what is said of very many rows. */
void verdict_join(struct plumb_verdict *verdict, enum plumb_severity severity,
                  const char *const *pieces, size_t count);

/* Not judged: what is known tells nothing, and `why`. Suspicious, so that it is looked at. */
void verdict_leave(struct plumb_verdict *verdict, const char *why);

/* Not judged, and nothing to look at: nobody had written to one of the two. */
void verdict_unwritten(struct plumb_verdict *verdict);

/* Tensors without elements agree. */
void verdict_empty(struct plumb_verdict *verdict);

#endif
