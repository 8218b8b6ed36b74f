/* What the files expected_pattern*.c share: the elements that are off, and what is tried on them.
 * */
#ifndef VERDICT_EXPECTED_PATTERN_H
#define VERDICT_EXPECTED_PATTERN_H

#include "verdict/expected_parts.h"

enum { PATTERN_TEXT = sizeof((struct plumb_opinion *)0)->pattern };

/* The indices along one axis at which elements are off. */
struct off_axis {
    uint64_t size;
    uint64_t first, last, n;
    uint64_t step; /* from each to the next; 0: not even */
    bool *at;
};

/* The elements that are off, beyond what rounding and noise allow. The axes are those of the
 * tensor; complex numbers have one more, the last, of real and imaginary parts. */
struct off {
    const struct plumb_tensor *got;
    const struct sample *s;
    double limit;
    bool parts; /* the last axis is that of parts */
    unsigned rank;
    struct off_axis axis[PLUMB_MAX_RANK + 1];
    bool *is;    /* of each number */
    uint64_t n;  /* how many */
    uint64_t of; /* numbers that have an index of theirs along each axis */
};

/* ---- expected_pattern_place.c ---------------------------------------------------------------- */

/* The elements beyond the limit, or those that are NaN or infinite on one side only. False when
 * memory runs out, or there is nothing to find. */
bool off_find(struct off *f, const struct plumb_tensor *got, const struct sample *s, double limit);
bool off_find_special(struct off *f, const struct plumb_tensor *got, const struct sample *s);

/* Whether the number at i could be the rounded `expected`, which right arithmetic computed; or the
 * number that belongs to another place. */
bool off_fits(const struct off *f, uint64_t i, double expected);
double off_room(const struct off *f, uint64_t i, double expected); /* how far it may be away */
bool off_fits_from(const struct off *f, uint64_t i, uint64_t from);

/* The coordinate of number i along an axis, and how far apart neighbours along it are. */
uint64_t off_stride(const struct off *f, unsigned axis);

/* Which indices of one axis: "row 3", "columns 8 to 15", "index 2 of axis 1". Empty: all. */
void off_say_axis(const struct off *f, unsigned axis, char *text, size_t size);

/* One word for an axis: "row", "column", "index of axis 1". */
void off_axis_word(const struct off *f, unsigned axis, char *text, size_t size);

/* Where they are, as " in row 3", " in rows 8 to 15, columns 0 to 15"; empty when they are
 * everywhere. And what block that is: " (a tile of 8 x 16)", " (behind the last full tile of 64)",
 * or empty. */
void off_say_place(const struct off *f, char *text, size_t size);
void off_say_tile(const struct off *f, char *text, size_t size);

/* "3 of the 64 elements in row 3 are", "1 element in row 3 is", "64 elements are". */
void off_say_subject(const struct off *f, char *text, size_t size);

/* ---- Each says what it found into text, PATTERN_TEXT bytes ----------------------------------- */

/* Another tensor of the call in place of the result: expected_pattern_stale.c. */
bool pattern_other(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                   const struct off *f, char *text);

/* Right numbers in wrong places: expected_pattern_move.c. */
bool pattern_moved(const struct off *f, char *text);

/* Numbers that became others: expected_pattern_change.c. Certain ones (zero, another sign, ...),
 * and those that something else may be behind: a scale, an offset. */
bool pattern_replaced(const struct off *f, char *text);
bool pattern_scaled(const struct off *f, char *text);
/* A scale or an offset that was found in all of them together, and that each of them fits. */
bool pattern_system(const struct off *f, const struct system_part *system, char *text);
/* A scale or an offset of its own for each row, column or other index. */
bool pattern_groups(const struct off *f, char *text);
/* Errors of low rank, as terms of a sum leave that are missing. */
bool pattern_rank(const struct off *f, char *text);
/* Complex numbers that are all multiplied by one that is not real: expected_pattern_complex.c. */
bool pattern_turned(const struct off *f, char *text);

/* A call computed otherwise that explains the result: expected_cause.c. simple: what it looks like
 * is known, so that no numbers need to be looked for that fit. brief: an eighth of the usual work
 * at most. *left counts what was not tried, for its cost. */
bool pattern_cause(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                   const struct off *f, const struct system_part *system, bool simple, bool brief,
                   char *text, uint64_t *left);

#endif
