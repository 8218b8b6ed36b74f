/* What a wrong sum over ranks looks like. */
#include "task/blame/exchanged_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { BLOCK = 1024, MOST_RANKS = 64 };

/* What it may be: what is left without one rank; what the rank itself put in; a sum where a mean
 * was asked for, or the other way round. */
struct guesses {
    bool without[MOST_RANKS], own, other;
};

struct guessing {
    const struct exchanged *x;
    const struct exchanged_part *part;
    int64_t rank;
    struct guesses possible;
    double *values; /* a block of each term, then of the result */
};

static void try_element(struct guessing *g, size_t i, enum plumb_dtype dtype)
{
    const enum exchanged_op op = g->x->op;
    const size_t n = g->part->n;
    const double got = g->values[n * BLOCK + i];
    struct terms all = {0};
    for (size_t k = 0; k < n; k++)
        terms_add(&all, op, g->values[k * BLOCK + i], k == 0);
    for (size_t k = 0; k < n; k++) {
        struct terms rest = all;
        const double x = g->values[k * BLOCK + i];
        rest.sum -= x;
        g->possible.without[k] &= !(terms_excess(&rest, op, n, got, dtype) > EXCHANGED_LIMIT);
        g->possible.own &= g->part->terms[k].rank != g->rank || got == x;
    }
    const double factor = op == EXCHANGED_MEAN ? (double)n : 1 / (double)n;
    g->possible.other &= !(terms_excess(&all, op, n, got / factor, dtype) > EXCHANGED_LIMIT);
}

static const char *say(const struct guessing *g, struct arena *arena)
{
    const struct guesses *is = &g->possible;
    const char *text = "";
    if (is->own)
        text = EXCHANGED_OWN;
    else if (is->other)
        text = g->x->op == EXCHANGED_MEAN ? "a sum, where a mean was asked for"
                                          : "a mean, where a sum was asked for";
    for (size_t k = 0; k < g->part->n && !*text; k++)
        if (is->without[k])
            text = arena_printf(arena, "what rank %" PRId64 " put in is missing",
                                g->part->terms[k].rank);
    return text ? text : "";
}

const char *exchanged_guess(const struct exchanged *x, const struct exchanged_part *part,
                            int64_t own, const struct plumb_run *run, struct arena *arena)
{
    struct guessing g = {
        .x = x, .part = part, .rank = own, .possible = {.own = true, .other = true}};
    const size_t n = part->n;
    const char *text = "";
    if ((x->op != EXCHANGED_SUM && x->op != EXCHANGED_MEAN) || n < 2 || n > MOST_RANKS)
        return text;
    struct opened *tensors = calloc(n + 1, sizeof *tensors);
    g.values = malloc((n + 1) * BLOCK * sizeof *g.values);
    bool fine = tensors && g.values;
    for (size_t k = 0; k < n; k++)
        g.possible.without[k] = true;
    for (size_t k = 0; k <= n && fine; k++)
        fine = opened_load(&tensors[k], run, k < n ? part->terms[k].record : part->record, arena,
                           &text);
    const enum plumb_dtype dtype = fine ? tensors[n].payload.tensor.dtype : PLUMB_F32;
    const size_t step = BLOCK / plumb_dtype_parts(dtype);
    for (uint64_t at = 0; at < part->count && fine; at += step) {
        const size_t count = part->count - at < step ? (size_t)(part->count - at) : step;
        for (size_t k = 0; k <= n; k++)
            plumb_tensor_to_f64(&tensors[k].payload.tensor,
                                at + (k < n ? part->terms[k].at : part->at), count,
                                &g.values[k * BLOCK]);
        for (size_t i = 0; i < count * plumb_dtype_parts(dtype); i++)
            try_element(&g, i, dtype);
    }
    for (size_t k = n + 1; tensors && k-- > 0;)
        fine &= opened_close(&tensors[k]);
    text = fine ? say(&g, arena) : "";
    free(tensors);
    free(g.values);
    return text;
}
