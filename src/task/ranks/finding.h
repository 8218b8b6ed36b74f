/* What was found in a rank, for the report and the table of overflow_check: read again from its
 * dump.json, by a process that sees it. */
#ifndef RANKS_FINDING_H
#define RANKS_FINDING_H

#include "run/seen.h"
#include "task/ranks/analyze.h"

struct finding_node {
    size_t number; /* in the dump.json */
    const char *name;
};

/* What is not finite of a node. */
struct finding_row {
    const char *node, *output, *max, *min;
};

struct finding {
    struct dump_place place;
    size_t at;      /* of the rank in struct seen */
    int64_t number; /* of the rank */
    struct finding_node *nodes;
    size_t count;
    bool given; /* what the nodes were given is wanted, not what they made */

    struct buf text, notes; /* a member of the report; what is odd */
    struct finding_row *rows;
    size_t row_count, row_capacity;
    struct arena arena; /* of the rows */
};

/* Fills the second part of all of them. seen: where the ranks are; NULL: here. */
enum plumb_code findings_read(struct finding *list, size_t count, const struct seen *seen,
                              const struct plumb_analyze_options *options, struct plumb_error *err);
void finding_free(struct finding *finding);

/* False when out of memory. */
bool finding_add_rows(const struct finding *finding, struct plumb_table *table);

/* Of a process that does not lead; places may be NULL, and is kept. */
struct crew_handler finding_handler(const struct crew_places *places);

#endif
