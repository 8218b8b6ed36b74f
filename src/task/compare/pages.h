/* What a comparison gives to a report. */
#ifndef COMPARE_PAGES_H
#define COMPARE_PAGES_H

#include "plumb/compare.h"
#include "plumb/report.h"

struct comparison;

const char *compare_mood_word(enum plumb_trouble trouble);

/* Curve, ranks, steps and tensors, where a report is asked for; for finished rows. */
enum plumb_code compare_pages(struct plumb_comparison *out, struct comparison *c,
                              struct plumb_error *err);

#endif
