/* A CSV file of the generated unit tests. */
#ifndef UNITTEST_OUTCOME_H
#define UNITTEST_OUTCOME_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/error.h"

enum { OUTCOME_POWERS = 7 };

enum outcome_column {
    OUTCOME_NAME,
    OUTCOME_OP,
    OUTCOME_DTYPE,
    OUTCOME_SHAPE,
    OUTCOME_MIN,
    OUTCOME_MAX,
    OUTCOME_PASS,
    OUTCOME_ERROR,
    OUTCOME_POWER,
    OUTCOME_COLUMNS = OUTCOME_POWER + OUTCOME_POWERS
};

extern const char *const outcome_titles[OUTCOME_COLUMNS];

/* What a test ran on. Files of older tests do not have these columns. */
enum outcome_extra {
    OUTCOME_SEED,
    OUTCOME_INPUTS,
    OUTCOME_VERDICT, /* with OUTCOME_WHY: only where the tests asked for an opinion */
    OUTCOME_WHY,
    OUTCOME_EXTRAS
};

struct outcome_row {
    const char *text[OUTCOME_POWER];   /* never NULL */
    const char *extra[OUTCOME_EXTRAS]; /* NULL: the file has no such column, or nothing in it */
    bool skipped;                      /* the test did not run: no numbers */
    double error;
    double counts[OUTCOME_POWERS];
    uint64_t line;
    bool met; /* the other file has it too */
};

struct outcome_file {
    struct arena arena;
    struct map names; /* to rows */
    struct outcome_row *rows;
    size_t count;
    bool has_inputs; /* the column that says what the tests ran on */
    bool judged;     /* the columns of opinions */
};

/* Reads all of it; rows come sorted by name. Columns may stand in any order, and others beside
 * them; all of outcome_titles must be there. PLUMB_E_FORMAT, with the line, for a row that is too
 * short, a name that was there already, and numbers that are none. */
enum plumb_code outcome_read(struct outcome_file *file, const char *path, struct plumb_error *err);
enum plumb_code outcome_parse(struct outcome_file *file, const void *text, size_t size,
                              struct plumb_error *err);
void outcome_close(struct outcome_file *file); /* also after a failure */

/* Elements of a shape as the files have it, "[10, 26]"; 0 when it is none. */
double outcome_elements(const char *shape);

/* A number in Python's words, nan and inf too; false when it is none. */
bool outcome_number(const char *text, double *value);

#endif
