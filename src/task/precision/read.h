/* An accuracy_checking_details file: mapped, indexed by name, its rows read when they are needed,
 * so memory follows the number of rows and not their text. */
#ifndef PRECISION_READ_H
#define PRECISION_READ_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/file.h"
#include "task/precision/columns.h"
#include "task/precision/opinion.h"

struct details_cells {
    struct csv_cell cell[COLUMN_COUNT]; /* text is NULL for a cell that the row does not have */
    struct csv_cell opinion[OPINION_COLUMNS]; /* likewise */
    uint64_t line;                            /* where the row begins; 0 when found by name */
    size_t number;                            /* of the row, from 0 */
};

struct row_mark {
    uint64_t start; /* where the row begins */
    bool again;     /* its name is there more than once */
    bool found;     /* for the caller */
};

struct details_file {
    const char *path; /* borrowed */
    const struct precheck_profile *profile;
    const struct precheck_profile *author; /* whose titles the metrics have */

    struct plumb_file file;
    struct csv csv; /* stands before the next row of details_next */
    size_t next;    /* the number of that row */
    int place[COLUMN_COUNT];
    int opinion_place[OPINION_COLUMNS]; /* -1: it has none */
    size_t width;                       /* columns of the header */
    struct map names;                   /* of a file whose rows are found by name */
    struct row_mark *marks;             /* of these rows */
    size_t rows, marks_capacity;
    uint8_t *types; /* of each metric in each stretch of rows: what pandas would make of them */
    size_t stretch, stretches, types_capacity;
    struct arena arena; /* names that are not in the file as they are meant */
};

/* Maps a file and reads its header, which may be in the dialect of any of the profiles (they end
 * with NULL); with by_name also all of its names. Errors name the file and
 * the line, here or when the row is read: no CSV text, a column that the profile needs is missing
 * (which), a row has another number of cells than the header, a cell is absurdly long; without
 * typed columns also a name that is there twice, is empty, or would be run as a formula by a
 * spreadsheet. */
enum plumb_code details_open(struct details_file *file, const char *path,
                             const struct precheck_profile *const *profiles,
                             const struct precheck_profile *profile, bool by_name,
                             struct plumb_error *err);
void details_close(struct details_file *file); /* all zero is fine */

/* The next row in file order. The cells are valid until the next call. */
enum plumb_code details_next(struct details_file *file, struct details_cells *row, bool *more,
                             struct plumb_error *err);

/* The row of a name in a file that was opened by_name, and the mark of this row, which is the
 * caller's to set; *mark is NULL when there is no such row. */
enum plumb_code details_find(struct details_file *file, struct csv_cell name,
                             struct details_cells *row, struct row_mark **mark,
                             struct plumb_error *err);

/* A metric of a row, where the profile asks for it with the eyes of pandas. */
struct value details_value(const struct details_file *file, const struct details_cells *row,
                           enum precision_column column);

/* Whether pandas would take it for "not available", where it counts. */
bool details_is_missing(const struct details_file *file, struct csv_cell cell);

/* A name that a spreadsheet would run: it begins with + - = % @ (or their wide forms), or has one
 * of them behind a semicolon. */
bool details_is_formula(struct csv_cell name);

#endif
