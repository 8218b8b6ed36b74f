/* Which cheaper arithmetic explains a result: what its files share. */
#ifndef VERDICT_EXPECTED_SEARCH_H
#define VERDICT_EXPECTED_SEARCH_H

#include "verdict/expected_parts.h"

struct search {
    struct plumb_expected *e;
    enum plumb_expected_part part;
    size_t k;
    const struct sample *s;
    double limit;
    double *y, *sigma; /* of the hypothesis */
    double together;   /* how much errors of rows go together in it, at most */
    double alike;      /* how its errors go with those that were got, at most: a correlation */
    unsigned widest;   /* significant bits of the widest floating input */
    uint64_t largest;  /* elements of the largest one */
    bool product;      /* sums of products of two inputs */
    bool rounded;      /* numbers among the arguments that the type does not hold */
    struct plumb_call rounded_call; /* with these rounded to it */
    const char *found;
    bool changes; /* rounding on the way gives other results at all */
    bool coarse;  /* as noise, which nothing computed confirms */
};

/* Noise beside right arithmetic's own, as so many bits make it. */
struct narrow {
    const double *squares; /* measured so often */
    unsigned weight;
    double factor; /* from squares to that noise */
    unsigned bits;
    const double *simulated; /* what such arithmetic gave plumb, or NULL */
};

/* The sentence for a word; the word itself when there is none. */
const char *arithmetic_text(const char *word);

/* Whether the errors are such noise. Sets q->sigma and q->coarse. */
bool coarse_is_such_noise(struct search *q, const struct narrow *narrow);

/* Whether no element is off by more than a step of the type. */
bool coarse_within_a_step(const struct sample *s);

/* Outputs of functions of single elements: all their steps are simulated. */
bool coarse_is_function_result(const struct search *q);

/* The correlation of the errors with those of the hypothesis in q->y. Whoever rounds the same
 * number on the way errs alike. */
double coarse_correlation(const struct search *q);

#endif
