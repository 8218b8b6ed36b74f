/* A call computed again in ways that people get it wrong: what the files expected_cause*.c share.
 * */
#ifndef VERDICT_EXPECTED_CAUSE_H
#define VERDICT_EXPECTED_CAUSE_H

#include "verdict/expected_pattern.h"
#include "verdict/vary.h"

struct cause {
    struct plumb_expected *e;
    enum plumb_expected_part part;
    size_t k;
    const struct off *f;
    bool leans; /* errors go together */
    struct vary_list list;
    struct plumb_call call; /* without gradients when these are not asked for */
    struct arena arena;     /* of one attempt */
    uint64_t runs, most;    /* made, and allowed */
    uint64_t left;          /* not made */
    double *y;              /* what the last attempt gave */
    double *other;          /* as many numbers, for whoever makes attempts */
    double error, before;   /* squares that it leaves; those of the reference */
    bool fits;              /* all elements are within noise, and not by chance */
    uint64_t counted;       /* how many were held against it */
    int64_t cut;            /* it gives so many fewer in a row, and these are left out */
    char *text;
};

/* Computes the changed call and holds what it gives, then in c->y, against what was got. False: it
 * cannot be computed, gives another shape, or was not tried any more. */
bool cause_attempt(struct cause *c, const struct plumb_call *call);

/* The same with one argument set; c->arena is empty after. */
bool cause_attempt_set(struct cause *c, const struct vary_parameter *p,
                       const struct plumb_arg *value);

/* Holds numbers against what was got; rows may be shorter by c->cut. */
void cause_measure(struct cause *c, const double *y);
/* One over the variance of an element that is right. */
double cause_weight(const struct sample *s, uint64_t i);

/* What explains the result; adds how many elements fit. */
void cause_say(struct cause *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The number that an argument is; NaN when it is none. */
double cause_number(const struct plumb_arg *arg);
bool cause_is_epsilon(const struct vary_parameter *p);

/* Each returns true when it said what explains the result. */
bool cause_argument(struct cause *c, const struct vary_parameter *p); /* one that is no tensor, or
                                                                          may be left out */
bool cause_inputs(struct cause *c);   /* tensors: terms dropped, moved, exchanged */
bool cause_rows(struct cause *c);     /* sums over rows, and keys, that stop short */
bool cause_unbiased(struct cause *c); /* variances divided by n - 1 */
/* Any value of one number; not simple: any scale of one input. */
bool cause_constants(struct cause *c, bool simple);

#endif
