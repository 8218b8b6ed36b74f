/* What became of the rows, and the closing lines, part by part. */
#ifndef COMPARE_OUTCOME_H
#define COMPARE_OUTCOME_H

#include "base/buf.h"
#include "plumb/compare.h"

/* The trouble of a row that was compared. */
enum plumb_trouble outcome_of(const struct plumb_verdict *verdict);

/* Notes what became of a row of the table. True when it is the first with its trouble, whose text
 * is then wanted. out->outcomes has a place for it. */
bool outcome_note(struct plumb_comparison *out, size_t row, struct plumb_outcome outcome);

struct closing_parts {
    struct buf advice;  /* whole lines, or nothing */
    struct buf words;   /* second opinions, or nothing: "113 results: 1 fault, ..." */
    struct buf fault;   /* "; first fault: ...\n" */
    struct buf counts;  /* "119 compared: ..." */
    struct buf details; /* "; worst: ..." */
    struct buf rule;    /* "; standard: xray\n" */
};

/* Makes closing, advice and counts of them, and frees them. */
enum plumb_code closing_join(struct plumb_comparison *out, struct closing_parts *parts,
                             struct plumb_error *err);

#endif
