/* The second opinions that acc_check wrote beside the metrics of two devices. */
#ifndef PRECISION_OPINION_H
#define PRECISION_OPINION_H

#include "base/buf.h"
#include "base/csv.h"
#include "plumb/expected.h"

/* What is read from an accuracy_checking_details file. */
enum opinion_column { OPINION_VERDICT, OPINION_WHY, OPINION_JUDGE, OPINION_COLUMNS };

extern const char *const opinion_titles[OPINION_COLUMNS];

/* What is said of one output on both devices. */
struct opinions {
    bool asked; /* else the rest means nothing, and the row has none */
    bool given; /* the output is there: else there is nothing, and should be nothing */
    enum plumb_word word, other; /* of the device under test, of the trusted one */
    struct csv_cell cells[OPINION_COLUMNS], other_cells[OPINION_COLUMNS];
    bool shared; /* a fault that the trusted device has, too */
};

/* Reads both. False when a cell is no verdict: `bad` is that cell. */
bool opinions_read(const struct csv_cell *cells, const struct csv_cell *other_cells,
                   struct opinions *out, struct csv_cell *bad);

/* Why, as the result file has it: "forward.output.0: ...; the trusted device has it too". */
void opinions_put_why(struct buf *out, struct csv_cell place, const struct opinions *opinions);

#endif
