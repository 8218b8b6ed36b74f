/* What a comparison gives to a report. */
#ifndef COMPARE_PAGES_H
#define COMPARE_PAGES_H

#include "base/buf.h"
#include "plumb/compare.h"
#include "plumb/report.h"

struct comparison;

const char *compare_mood_word(enum plumb_trouble trouble);

/* Curve, ranks, steps and tensors, where a report is asked for; for finished rows. */
enum plumb_code compare_pages(struct plumb_comparison *out, struct comparison *c,
                              struct plumb_error *err);

/* The worst tensors alone; fills out->pages. False when out of memory. */
bool compare_tensors(struct plumb_comparison *out, struct comparison *c);

/* The arguments of the call that gave a record, as the capture wrote them down; and the command
 * that takes the call out of its dump. Nothing where there is no such call. */
void pages_arguments(struct buf *out, const struct plumb_run *run, size_t number);
void pages_command(struct buf *out, const struct plumb_run *run, const struct plumb_record *record);

#endif
