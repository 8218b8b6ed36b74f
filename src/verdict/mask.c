/* Masks of dropout: found in results, replayed, and held against chance. */
#include "verdict/mask.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 };

static uint32_t keep(void *state)
{
    (void)state;
    return 0;
}

static uint32_t drop(void *state)
{
    (void)state;
    return UINT32_MAX;
}

const struct plumb_draws mask_keep_all = {keep, NULL}, mask_drop_all = {drop, NULL};

/* ---- Finding --------------------------------------------------------------------------------- */

static uint8_t nearer(double value, double kept, double dropped)
{
    if (kept == dropped || (isnan(kept) && isnan(dropped)))
        return MASK_UNKNOWN;
    const bool is_dropped =
        value == dropped || (value != kept && fabs(value - kept) > fabs(value - dropped));
    const bool doubt = fabs(kept - dropped) < 0.05 * fmax(fabs(kept), fabs(dropped));
    return (uint8_t)((is_dropped ? MASK_DROPPED : MASK_KEPT) | (doubt ? MASK_IN_DOUBT : 0));
}

/* One more opinion of an element. */
static uint8_t settled(uint8_t before, uint8_t now)
{
    const bool open =
        before == MASK_UNKNOWN || (before & MASK_IN_DOUBT && now && !(now & MASK_IN_DOUBT));
    return open ? now : before;
}

static bool fits(const struct plumb_arg *arg, uint64_t n)
{
    return arg->kind == PLUMB_ARG_TENSOR && arg->tensor->count == n &&
           plumb_dtype_parts(arg->tensor->dtype) == 1;
}

/* Settles what is unknown so far by one more tensor. */
static void look(struct mask *mask, const struct plumb_arg *got, const struct plumb_arg *kept,
                 const struct plumb_arg *dropped)
{
    if (!fits(got, mask->n) || !fits(kept, mask->n) || !fits(dropped, mask->n))
        return;
    double values[3][BLOCK];
    for (uint64_t at = 0; at < mask->n; at += BLOCK) {
        const size_t n = mask->n - at < BLOCK ? (size_t)(mask->n - at) : BLOCK;
        plumb_tensor_to_f64(got->tensor, at, n, values[0]);
        plumb_tensor_to_f64(kept->tensor, at, n, values[1]);
        plumb_tensor_to_f64(dropped->tensor, at, n, values[2]);
        for (size_t i = 0; i < n; i++) {
            const uint8_t choice = nearer(values[0][i], values[1][i], values[2][i]);
            mask->choices[at + i] = settled(mask->choices[at + i], choice);
            mask->traces += choice == MASK_DROPPED && values[2][i] == 0 && values[0][i] != 0;
        }
    }
}

/* dropout1d and dropout3d take a tensor without batch too. */
uint64_t mask_elements_a_draw(const char *api, const struct plumb_tensor *x)
{
    const bool one = strstr(api, "1d") != NULL, three = strstr(api, "3d") != NULL;
    if (!one && !three && !strstr(api, "2d") && !strstr(api, "feature"))
        return 1;
    const unsigned first = (one && x->rank == 2) || (three && x->rank == 4) ? 1 : 2;
    uint64_t n = 1;
    for (unsigned d = first; d < x->rank; d++)
        n *= (uint64_t)x->shape[d];
    return n ? n : 1;
}

bool mask_find(struct mask *mask, const char *api, const struct plumb_result *got,
               const struct plumb_result *kept, const struct plumb_result *dropped,
               struct arena *arena)
{
    const struct plumb_tensor *x = kept->outputs[0].tensor;
    *mask = (struct mask){.n = x->count, .each = mask_elements_a_draw(api, x)};
    mask->choices = arena_array(arena, mask->n + 1, 1);
    if (!mask->choices)
        return false;
    memset(mask->choices, MASK_UNKNOWN, mask->n + 1);
    for (size_t k = 0; k < kept->n_outputs && k < got->n_outputs && k < dropped->n_outputs; k++)
        look(mask, &got->outputs[k], &kept->outputs[k], &dropped->outputs[k]);
    for (size_t k = 0; k < kept->n_grads && k < got->n_grads && k < dropped->n_grads; k++)
        look(mask, &got->grads[k], &kept->grads[k], &dropped->grads[k]);
    for (uint64_t i = 0; i < mask->n; i++) {
        mask->known += mask->choices[i] == MASK_KEPT || mask->choices[i] == MASK_DROPPED;
        mask->dropped += mask->choices[i] == MASK_DROPPED;
    }
    return true;
}

double mask_share(const struct mask *mask)
{
    return mask->known ? (double)mask->dropped / (double)mask->known : 0;
}

uint64_t mask_torn(const struct mask *mask)
{
    uint64_t count = 0;
    for (uint64_t at = 0; mask->each > 1 && at + mask->each <= mask->n; at += mask->each) {
        bool kept = false, dropped = false;
        for (uint64_t i = at; i < at + mask->each; i++) {
            kept |= mask->choices[i] == MASK_KEPT;
            dropped |= mask->choices[i] == MASK_DROPPED;
        }
        count += kept && dropped;
    }
    return count;
}

/* ---- Replaying ------------------------------------------------------------------------------- */

/* What was drawn for elements that share a draw: as the first that tells. */
static uint8_t drawn(const struct mask *mask, uint64_t draw)
{
    uint8_t choice = MASK_UNKNOWN;
    for (uint64_t i = draw * mask->each; i < (draw + 1) * mask->each && i < mask->n; i++)
        choice = settled(choice, mask->choices[i]);
    return choice;
}

uint32_t mask_next(void *replay)
{
    struct mask_replay *r = replay;
    const uint64_t draws = r->mask->n / r->mask->each, draw = r->next / 2;
    r->next = draws && r->next + 1 < 2 * draws ? r->next + 1 : 0;
    return drawn(r->mask, draw) & MASK_DROPPED ? UINT32_MAX : 0;
}

/* ---- Chance ---------------------------------------------------------------------------------- */

/* Draws that are alike in something, and how many of them dropped. */
struct group {
    uint32_t known, dropped;
};

/* A bound on the logarithm of how unlikely so many, or more, are (Chernoff); and so few. */
static double unlikely(double dropped, double known, double p)
{
    const double q = dropped / known, other = 1 - q;
    const double divergence =
        (q > 0 ? q * log(q / p) : 0) + (other > 0 ? other * log(other / (1 - p)) : 0);
    return known * divergence;
}

static const double one_in = 20.72326583694641; /* log(1e9) */

struct grouping {
    const char *what; /* "row" */
    uint64_t n;       /* groups */
    struct group *of;
    uint64_t worst;
    double worst_by;
};

static void judge_groups(struct grouping *g, double p)
{
    for (uint64_t k = 0; k < g->n; k++) {
        const double by = g->of[k].known ? unlikely(g->of[k].dropped, g->of[k].known, p) : 0;
        if (by > g->worst_by) {
            g->worst_by = by;
            g->worst = k;
        }
    }
}

static bool is_known(uint8_t choice)
{
    return choice == MASK_KEPT || choice == MASK_DROPPED;
}

/* Where a draw belongs: row and column of the result, or a tile of them. */
struct layout {
    uint64_t row, tile; /* draws in a row; both 0: one group */
    bool column;
    uint64_t rows_of; /* rows that a tile is high */
};

static uint64_t group_of(const struct layout *l, uint64_t draw)
{
    if (!l->row)
        return 0;
    const uint64_t i = draw / l->row, j = draw % l->row;
    if (l->tile)
        return i / l->rows_of * ((l->row + l->tile - 1) / l->tile) + j / l->tile;
    return l->column ? j : i;
}

/* Adds what one way to group the draws shows to the text. */
static bool try_grouping(const uint8_t *draws, uint64_t n, double p, const struct layout *l,
                         const char *what, unsigned ways, char *text, size_t size)
{
    const uint64_t groups = group_of(l, n - 1) + (l->tile ? l->row : 1);
    const uint64_t room = l->column ? l->row : groups;
    struct grouping g = {.what = what, .n = room, .of = calloc((size_t)room + 1, sizeof *g.of)};
    if (!g.of)
        return false;
    for (uint64_t k = 0; k < n; k++)
        if (is_known(draws[k])) {
            struct group *of = &g.of[group_of(l, k)];
            of->known++;
            of->dropped += draws[k] == MASK_DROPPED;
        }
    judge_groups(&g, p);
    if (g.worst_by > one_in + log((double)room * ways) && !*text) {
        char share[2][NUMBER_BYTES];
        snprintf(
            text, size, "%s: %lu of %lu were dropped, a share of %s where %s is expected", what,
            (unsigned long)g.of[g.worst].dropped, (unsigned long)g.of[g.worst].known,
            number_brief((double)g.of[g.worst].dropped / (double)g.of[g.worst].known, 3, share[0]),
            number_brief(p, 4, share[1]));
        if (l->row && strlen(text) + 40 < size)
            snprintf(text + strlen(text), size - strlen(text), " (number %llu)",
                     (unsigned long long)g.worst);
    }
    free(g.of);
    return true;
}

/* Draws that repeat those so far before them, more often than chance has it. */
static void try_repeats(const uint8_t *draws, uint64_t n, double p, uint64_t lag, const char *what,
                        unsigned ways, char *text, size_t size)
{
    uint64_t known = 0, equal = 0;
    for (uint64_t k = lag; k < n; k++) {
        const bool both = is_known(draws[k]) && is_known(draws[k - lag]);
        known += both;
        equal += both && draws[k] == draws[k - lag];
    }
    const double alike = p * p + (1 - p) * (1 - p);
    /* Pairs share draws with their neighbours: half of them are independent. */
    if (*text || !known ||
        unlikely((double)equal, (double)known, alike) / 2 <= one_in + log((double)ways))
        return;
    char share[2][NUMBER_BYTES];
    snprintf(text, size,
             "the choices follow %s: %s of them are the same, where %s are expected by chance",
             what, number_brief((double)equal / (double)known, 3, share[0]),
             number_brief(alike, 3, share[1]));
}

/* One choice for each draw. */
static uint8_t *draws_of(const struct mask *mask, uint64_t n)
{
    uint8_t *draws = malloc((size_t)n + 1);
    for (uint64_t k = 0; draws && k < n; k++)
        draws[k] = drawn(mask, k);
    return draws;
}

bool mask_suspicion(const struct mask *mask, double p, uint64_t row, char *text, size_t size)
{
    enum { WAYS = 8 };
    static const uint64_t tiles[] = {8, 32};
    const uint64_t n = mask->n / mask->each;
    *text = '\0';
    if (!n || !(p > 0 && p < 1))
        return true;
    uint8_t *draws = draws_of(mask, n);
    bool good = draws != NULL;
    row = mask->each > 1 || row >= n ? 0 : row;
    const struct layout all = {0}, rows = {.row = row}, columns = {.row = row, .column = true},
                        blocks = {.row = 64};
    good = good && try_grouping(draws, n, p, &all, "of all", WAYS, text, size) &&
           try_grouping(draws, n, p, &blocks, "in a block of 64", WAYS, text, size);
    if (row)
        good = good && try_grouping(draws, n, p, &rows, "in a row", WAYS, text, size) &&
               try_grouping(draws, n, p, &columns, "in a column", WAYS, text, size);
    for (size_t t = 0; t < sizeof tiles / sizeof *tiles && row > tiles[t] && good; t++) {
        const struct layout tile = {.row = row, .tile = tiles[t], .rows_of = tiles[t]};
        good = try_grouping(draws, n, p, &tile, "in a tile", WAYS, text, size);
    }
    if (good)
        try_repeats(draws, n, p, 1, "their neighbours", WAYS, text, size);
    if (good && row)
        try_repeats(draws, n, p, row, "the row before", WAYS, text, size);
    free(draws);
    return good;
}
