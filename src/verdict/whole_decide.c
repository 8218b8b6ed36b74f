/* Whole numbers of whole graphs: places, counts and decisions, which errors may turn. */
#include "verdict/whole.h"

#include "base/plain.h"

#include <math.h>
#include <stdio.h>

/* How a list of whole numbers differs from the reference's, and how far errors turn that. */
struct turned {
    uint64_t differing; /* of the list */
    uint64_t firm;      /* of these, where no run has another number */
    uint64_t foreign;   /* of these, where no run has this number */
    uint64_t most;      /* in one run */
    uint64_t first;     /* that differs */
};

/* before: what the graph before stores, which is right in any case; or NULL. */
static struct turned find_turned(const double *y, const double *got, const double *before,
                                 const struct whole_runs *runs, uint64_t n)
{
    struct turned t = {0};
    for (unsigned r = 0; r < runs->n; r++) {
        uint64_t count = 0;
        for (uint64_t i = 0; i < n; i++)
            count += runs->run[r][i] != y[i];
        t.most = count > t.most ? count : t.most;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (got[i] == y[i] || (before && got[i] == before[i]))
            continue;
        bool turns = false, known = false;
        for (unsigned r = 0; r < runs->n; r++) {
            turns |= runs->run[r][i] != y[i];
            known |= runs->run[r][i] == got[i];
        }
        t.firm += !turns;
        t.foreign += !known;
        if (!t.differing++)
            t.first = i;
    }
    return t;
}

/* A decision that errors turn too is a tie: at that element, or at as many others. Few runs do not
 * show everything that a decision among many could be, but something of it. */
static bool is_tie(const struct turned *t)
{
    return (!t->firm || t->differing <= 3 * t->most) &&
           (double)t->foreign <= 0.9 * (double)t->differing + 1;
}

static void say_turned(const struct turned *t, const double *y, const double *got, uint64_t n,
                       const char *lead, struct plumb_opinion *o)
{
    o->at = t->first;
    o->got = got[t->first];
    o->expected = y[t->first];
    o->worst = o->word == PLUMB_WORD_FAULT ? INFINITY : 0;
    plain_print(o->why, sizeof o->why,
                "%s%llu of %llu whole numbers differ, the first is element %llu: %.17g instead of "
                "%.17g; rounding alone turns up to %llu",
                lead, (unsigned long long)t->differing, (unsigned long long)n,
                (unsigned long long)t->first, o->got, o->expected, (unsigned long long)t->most);
}

void whole_decide(const struct whole_item *item, const double *got, const double *before,
                  uint64_t n, struct plumb_opinion *o)
{
    const struct turned stored = find_turned(item->y, got, before, &item->noise, n);
    o->differing = n ? (double)stored.differing / (double)n : 0;
    if (item->formula) {
        const struct whole_runs *runs = item->fine.n ? &item->fine : &item->noise;
        const struct turned t = find_turned(item->y, item->formula, NULL, runs, n);
        if (t.differing && !is_tie(&t)) {
            o->word = PLUMB_WORD_FAULT;
            say_turned(&t, item->y, item->formula, n, "in float64 too, another formula: ", o);
            return;
        }
    }
    if (!stored.differing) {
        o->word = PLUMB_WORD_SAME;
        plain_print(o->why, sizeof o->why, "all numbers are those of the graph before");
        return;
    }
    o->word = is_tie(&stored) ? PLUMB_WORD_TIE : PLUMB_WORD_FAULT;
    say_turned(&stored, item->y, got, n, "", o);
}
