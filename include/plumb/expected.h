/* What a right implementation would show: the error that right arithmetic leaves in the results of
 * one call, and how a given result compares with it (docs/VERDICTS.md).
 *
 * An object belongs to one thread; different objects may be used at the same time. Numbers are the
 * same for any number of threads on one machine. */
#ifndef PLUMB_EXPECTED_H
#define PLUMB_EXPECTED_H

#include "plumb/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever the same result could get another verdict. */
#define PLUMB_EXPECTED_VERSION 2

enum plumb_word {
    PLUMB_WORD_SAME,       /* the correctly rounded reference, bit for bit */
    PLUMB_WORD_ROUNDING,   /* what right arithmetic in this type shows */
    PLUMB_WORD_TIE,        /* decisions that fell the other way within what rounding allows */
    PLUMB_WORD_INHERITED,  /* off because the inputs were; the call itself is rounding */
    PLUMB_WORD_CHEAPER,    /* a named arithmetic explains it, and right arithmetic does not */
    PLUMB_WORD_FAULT,      /* none of these */
    PLUMB_WORD_NOT_JUDGED, /* why says why */
    PLUMB_WORDS
};

/* "same", "rounding", "tie", "inherited", "cheaper arithmetic", "fault", "not judged". */
const char *plumb_word_text(enum plumb_word word);

/* What decides, where there are documented rules too. Rules: these, and no opinion is asked for.
 * Expected: the opinion. Both: either may object. */
enum plumb_deciding { PLUMB_BY_RULES, PLUMB_BY_EXPECTED, PLUMB_BY_BOTH };

/* What counts for more where there are several: the larger. What was not judged is not fine. */
unsigned plumb_word_severity(enum plumb_word word);

struct plumb_opinion {
    enum plumb_word word;
    bool allowed;         /* cheaper arithmetic that the caller allows */
    bool unsteady;        /* it is rounding only since repeats of the program differ as much */
    double worst, limit;  /* the largest excess over rounding to the type, in standard deviations of
                             right arithmetic, and what is expected of the largest of so many */
    uint64_t at;          /* which element that is, in C order */
    double got, expected; /* its two values */
    double differing;     /* share of the elements that are not the correctly rounded reference */
    char arithmetic[64];  /* what explains it: "TF32 inputs"; empty when none does */
    char pattern[256];    /* what a fault looks like: "scaled by 1.01"; empty when there is none */
    char why[720];        /* the verdict in one sentence, with its numbers */
};

struct plumb_expected_options {
    uint64_t seed;          /* of the perturbations */
    unsigned runs;          /* of the perturbed reference; 0: as many as seem right, 2 to 8 */
    const char *arithmetic; /* what is allowed, as words separated by commas ("tf32,bf16-store");
                               NULL: nothing. plumb_arithmetic_check says whether the words are
                               right */
    size_t memory;          /* bytes it may take; 0: no limit of its own */
};

/* PLUMB_E_ARG when a word of the list is not known; the message names those that are. */
enum plumb_code plumb_arithmetic_check(const char *list, struct plumb_error *err);

/* The word that allows what an opinion calls so in its arithmetic; "" when there is none. */
const char *plumb_arithmetic_word(const char *arithmetic);

struct plumb_expected;

/* Prepares the verdicts about one call. reference: what plumb_op_run(PLUMB_RAISED) gave for it, or
 * NULL, then it is run. Both must outlive the object. PLUMB_E_UNSUPPORTED when plumb does not have
 * the operator. *out is to be freed, and NULL on failure. */
enum plumb_code plumb_expected_new(const struct plumb_call *call,
                                   const struct plumb_result *reference,
                                   const struct plumb_expected_options *options,
                                   struct plumb_expected **out, struct plumb_error *err);
void plumb_expected_free(struct plumb_expected *expected);

/* Tells what the call gave as a whole, before it is judged part by part. Decisions among equals
 * (which of them sort, topk or argmax chose, where the gradient of a maximum goes) and what dropout
 * dropped are taken from it: the outputs, and gradients where there are any; members that are not
 * known are of kind none. Without this call, each part is taken by itself. Nothing is kept. Fails
 * when memory runs out, and where dropout cannot be run with the choices that were made. */
enum plumb_code plumb_expected_given(struct plumb_expected *expected,
                                     const struct plumb_arg *outputs, size_t n_outputs,
                                     const struct plumb_arg *grads, size_t n_grads,
                                     struct plumb_error *err);

/* The reference in use: valid until the object is freed. */
const struct plumb_result *plumb_expected_reference(const struct plumb_expected *expected);

enum plumb_expected_part { PLUMB_PART_OUTPUT, PLUMB_PART_GRADIENT, PLUMB_PART_WRITTEN };

/* What a repeat of the same program gave for the same result, and the reference for the inputs of
 * that repeat. From then on a result that is further from its reference than rounding is held
 * against what differs between the repeats, too: an error that all of them share stays what it is,
 * and so does one that no rounding makes. Any number of repeats may be given, one after the other.
 * PLUMB_E_ARG: it has another shape. */
enum plumb_code plumb_expected_repeat(struct plumb_expected *expected,
                                      enum plumb_expected_part part, size_t k,
                                      const struct plumb_tensor *reference,
                                      const struct plumb_tensor *got, struct plumb_error *err);

/* What is to be said about output, gradient or written argument number k. got may be any argument;
 * a NULL one counts as missing. Fails only when memory runs out. */
enum plumb_code plumb_expected_judge(struct plumb_expected *expected, enum plumb_expected_part part,
                                     size_t k, const struct plumb_arg *got,
                                     struct plumb_opinion *opinion, struct plumb_error *err);

/* The standard deviation that right arithmetic has at each number of such a result, C order,
 * complex ones by parts: got->count times the parts of its type. All 0: its numbers are exact, or
 * no floating-point ones. PLUMB_E_ARG: the reference has no such result. */
enum plumb_code plumb_expected_noise(struct plumb_expected *expected, enum plumb_expected_part part,
                                     size_t k, const struct plumb_tensor *got, double *out,
                                     struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
