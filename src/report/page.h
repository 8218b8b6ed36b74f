/* A report in the making: pieces of JSON, and the numbers that come in masses (web/src/data.ts). */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "base/arena.h"
#include "base/buf.h"
#include "plumb/report.h"

struct builtin {
    const char *name, *text;
};

/* Longer than the 4095 bytes that every compiler of C17 must take; those that plumb knows do. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

extern const struct builtin page_templates[]; /* the page without its data */

struct plumb_report {
    struct buf command, title, answer, next, counts, facts, notes, reproduce;
    struct buf tables, network, tensors, grids, steps;
    int32_t n_tensors;
    struct result_sum {
        uint64_t rows, of[PLUMB_MOODS];
        char *where; /* the first row of the worst mood, of the first table that has one, */
        char *why;   /* and what it says of that */
        int64_t row;
        enum plumb_mood mood;
    } results;
    struct plumb_report_call *calls; /* of the network */
    size_t n_calls;
    struct arena names; /* of calls */
    struct buf bulk;
    struct buf plain; /* the answer as a text in HTML */
};

/* What numbers an array has. */
enum bulk_type { BULK_F64, BULK_F32, BULK_I32, BULK_U8 };

/* Keeps an array, and puts where it is. */
void page_bulk(struct plumb_report *report, struct buf *out, enum bulk_type type, const void *data,
               size_t count);

/* "key": with a comma before it unless it is the first of its object. */
void page_key(struct buf *out, const char *key, bool first);
void page_text(struct buf *out, const char *key, const char *text, bool first);
void page_number(struct buf *out, double value); /* a text where JSON has no number for it */

/* A comma, unless the list is empty. */
void page_comma(struct buf *out);

/* Texts, ended by NULL, as a list. */
void page_texts(struct buf *out, const char *const *texts);

#endif
