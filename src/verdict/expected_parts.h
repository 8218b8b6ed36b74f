/* What the files expected*.c share: a call with its noise, and one result held against it. */
#ifndef VERDICT_EXPECTED_PARTS_H
#define VERDICT_EXPECTED_PARTS_H

#include "base/arena.h"
#include "plumb/expected.h"

/* One tensor of the reference, and what errors did to it. */
struct expected_tensor {
    const struct plumb_tensor *reference; /* NULL: no tensor */
    const struct plumb_tensor *computed;  /* the same before decisions were settled */
    uint64_t ties;                        /* elements of it that took the device's choice */
    double *noise; /* mean square change for perturbations in [-1, 1]: times u^2 it is P^2 */
    double *own;   /* squared error of plumb's own run in the arithmetic of the type */
    struct repeats *repeats; /* what repeats of the program gave; NULL: none */
};

enum { EXPECTED_PARTS = PLUMB_PART_WRITTEN + 1 };

struct plumb_expected {
    struct arena arena;
    struct plumb_call call;
    const struct plumb_result *reference;
    struct plumb_result own_reference; /* where the caller had none */
    struct plumb_expected_options options;
    struct expected_tensor *parts[EXPECTED_PARTS];
    size_t n_parts[EXPECTED_PARTS];
    int64_t terms[EXPECTED_PARTS]; /* in the longest sum */
    unsigned runs;                 /* that the noise was measured with */
    bool whole;                    /* and all there is to measure was */
    bool wide;                     /* float64 among the arguments */
    bool given;                    /* what the device decided is known */
    bool still;                    /* nothing is drawn in this call of a random operator */
    struct dropout *dropout;       /* of an operator that drops elements; or NULL */
    struct plumb_result settled; /* the reference with the device's decisions, once there are any */
    const struct plumb_op *op;
};

/* The reference's tensor, or one of a run of the same call; NULL when it is none. */
const struct plumb_tensor *expected_tensor_of(const struct plumb_result *result,
                                              enum plumb_expected_part part, size_t k);

/* Puts the tensors of e->reference into e->parts. False when memory runs out. */
bool expected_make_parts(struct plumb_expected *e);

/* Whether the results are random, and nothing can be said of them. */
bool expected_is_random(const struct plumb_expected *e);

/* Whether nothing is rounded on the way to that part: any difference is a fault. */
bool expected_is_exact(const struct plumb_expected *e, enum plumb_expected_part part);

/* Whether got is the correctly rounded reference, bit for bit, and has finite numbers: then nothing
 * needs to be measured. */
bool expected_is_same(const struct plumb_tensor *reference, const struct plumb_tensor *got);

/* Measures the noise, once: with few runs, which is enough for most results; whole: with as many as
 * seem right, and plumb's own run in the arithmetic of the type, which can only make it larger. */
enum plumb_code expected_measure(struct plumb_expected *e, bool whole, struct plumb_error *err);

/* Runs the call with errors of that kind. */
enum plumb_code expected_run(const struct plumb_expected *e, const struct plumb_noise *noise,
                             struct plumb_result *out, struct plumb_error *err);

/* ---- What the device decided ----------------------------------------------------------------- */

/* Lets the reference take the device's choice among equals, in all that was got. */
enum plumb_code decision_settle(struct plumb_expected *e, const struct plumb_result *got,
                                struct plumb_error *err);

/* The same for whole numbers, and for decisions about numbers that the call computes: an element of
 * got is as good as the reference's if errors of rounding lead to it. */
enum plumb_code decision_by_noise(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                                  const struct plumb_tensor *got, struct plumb_error *err);

/* Says so. */
void decision_tell(const struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                   struct plumb_opinion *opinion);

/* Prepares an operator that drops elements at random, if it is one: what it gives when nothing is
 * dropped, and when everything is. */
enum plumb_code dropout_begin(struct plumb_expected *e, struct plumb_error *err);
void dropout_end(struct plumb_expected *e);

/* The reference with what the device dropped. */
enum plumb_code dropout_settle(struct plumb_expected *e, const struct plumb_result *got,
                               struct plumb_error *err);

/* The next run makes the same choices again. */
void dropout_rewind(const struct plumb_expected *e);

/* What is to be said of the choices, into the opinion about the values. */
void dropout_tell(const struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                  struct plumb_opinion *opinion);

/* ---- One result against its reference -------------------------------------------------------- */

/* Numbers, C order; complex ones by parts. Only where both sides are finite, the others are left
 * out. */
struct sample {
    struct arena *arena;
    enum plumb_dtype dtype; /* of what was got */
    double u;               /* half the spacing of the arithmetic around 1 */
    int64_t terms;
    uint64_t n;   /* all numbers */
    uint64_t row; /* numbers in a row (the last dimension) */
    uint64_t rows;
    double *y, *got;
    double *sigma;   /* of right arithmetic */
    double *ulp;     /* spacing of the type at y */
    uint64_t *order; /* of an elementwise operator: elements by the size of their input; or NULL */
    double *key;     /* these inputs */
    bool *out;       /* of no account: not finite on both sides */
    uint64_t counted;
};

/* The spacing of a float type at y. */
double sample_ulp(enum plumb_dtype dtype, double y);

/* From s->n and the shape: a row is what the last dimension holds, or enough of the tensor to say
 * something together. */
void sample_set_rows(struct sample *s, const struct plumb_tensor *got);

/* Loads both sides and the noise. PLUMB_E_NOMEM. */
enum plumb_code sample_load(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                            const struct plumb_tensor *got, struct arena *arena, struct sample *s,
                            struct plumb_error *err);

/* Mean squares of few runs are noisy: each is drawn toward what its row has, absolutely or relative
 * to y, whichever describes the row better; absolute: the former. weight: how many runs it is the
 * mean of. */
void sample_smooth(const struct sample *s, const double *squares, unsigned weight, bool absolute,
                   double *out);

/* The largest excess over rounding, in units of sigma. */
struct excess {
    double worst;
    uint64_t at;
    uint64_t beyond; /* elements above the limit */
};
struct excess sample_excess(const struct sample *s, const double *y, const double *sigma,
                            double limit);

/* What the largest of n sums of so many terms should stay below. */
double sample_limit(uint64_t n, int64_t terms);

/* ---- Errors that go together ----------------------------------------------------------------- */

enum { SYSTEM_LEAST = 200 }; /* elements */

struct system_part {
    bool found;
    bool scale;     /* of everything */
    bool offset;    /* of everything; neither: of a row or a column */
    double size;    /* of the coefficient: 0.01 for a scale of 1.01 */
    double z;       /* its significance, in standard deviations */
    char text[120]; /* "a scale of 1.01 (32 sigma)" */
};

/* A scale, an offset, scales of rows or offsets of columns that are significant and larger than
 * what right arithmetic may have. strict: any that is significant. */
struct system_part system_find(const struct sample *s, const double *y, const double *sigma,
                               bool strict);

/* Whether a scale or an offset, and rounding, describe the errors better than noise of that sigma,
 * or they undo what the results differ by, as numbers from elsewhere do. */
bool system_goes_with_results(const struct sample *s, const double *sigma);

/* Whether elements with nearly the same input err alike, as those of another formula do, absolutely
 * or in proportion to the result. Results of a narrow type have inputs too far apart. */
bool system_goes_with_inputs(const struct sample *s, const double *sigma);

/* How much the errors of a row go together, absolutely and in proportion to the results: 1 for
 * independent ones. values: of what was got, or of a run. */
double system_together(const struct sample *s, const double *values);

/* The share of the squared errors, as a matrix of rows, that its largest singular value has, beside
 * what noise would have there. Missing terms of a sum are a matrix of low rank. */
double system_low_rank(const struct sample *s);

/* Whether results are half a unit short on average, where noise exceeds a unit, and no scale does
 * the same. alone: elements err by themselves, not with their row. */
bool system_toward_zero(const struct sample *s, bool alone);

/* ---- Explanations ---------------------------------------------------------------------------- */

/* Fills arithmetic and sets *found when a named one explains the result; *coarse: as noise, not
 * number by number. */
enum plumb_code arithmetic_find(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                                const struct sample *s, bool even, bool *found, bool *coarse,
                                struct plumb_opinion *opinion, struct plumb_error *err);
bool arithmetic_allowed(const char *list, const char *found);

/* What a fault looks like, into opinion->pattern; empty when nothing simple describes it. Of whole
 * numbers: y is the reference. Of NaN and infinities: adds to what the pattern says where they are,
 * and why, where that can be seen. e is NULL where there is no call to compute again. */
void pattern_whole(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                   const struct plumb_tensor *y, const struct plumb_tensor *got,
                   struct plumb_opinion *opinion);
void pattern_special(const struct plumb_expected *e, const struct plumb_tensor *got,
                     const struct sample *s, struct plumb_opinion *opinion);
void pattern_find(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                  const struct plumb_tensor *got, const struct sample *s,
                  const struct system_part *system, struct plumb_opinion *opinion);

/* Whether something is wrong that gives what was got, element for element, though it could be taken
 * for coarse noise: then into opinion->pattern. */
bool pattern_explains(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                      const struct plumb_tensor *got, const struct sample *s,
                      const struct system_part *system, struct plumb_opinion *opinion);

/* ---- Repeats of the program ------------------------------------------------------------------ */

/* How many there are. */
unsigned repeat_count(const struct expected_tensor *t);
/* Runs that were given as repeats and have quite other inputs. */
unsigned repeat_strangers(const struct expected_tensor *t);

/* The larger of right arithmetic's standard deviation and the one between repeats, of which there
 * are some; in the sample's arena. NULL when out of memory. */
double *repeat_sigma(const struct expected_tensor *t, const struct sample *s);

/* The standard deviation of element i between them. */
double repeat_apart(const struct expected_tensor *t, const struct sample *s, uint64_t i);

#endif
