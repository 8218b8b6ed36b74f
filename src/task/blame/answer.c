/* From what is known of each call to who is to blame. */
#include "task/blame/parts.h"

#include "base/number.h"
#include "ranks/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_AMPLIFIERS = 5 };

/* Outputs that are further from the other run than this many times what came in, or what the type's
 * rounding makes by itself. */
#define JUMP_SUSPICIOUS 4.0
#define JUMP_FAULT 8.0

/* Repeats whose inputs are further apart than this are runs of their own. */
#define SAME_INPUTS 0x1p-5

/* What differs between repeats of the program; what is not finite says nothing of this run. */
static double steady_floor(const struct site *site)
{
    return isfinite(site->between) && !(site->between_in > SAME_INPUTS) ? site->between : 0;
}

static double growth(const struct site *site)
{
    const double in = fmax(isnan(site->is.in) ? 0 : site->is.in, site->saved);
    const double least = fmax(fmax(in, site->floor), steady_floor(site));
    if (isinf(in)) /* whatever comes out, that explains it */
        return 1;
    return site->is.out == 0 ? 0 : least > 0 ? site->is.out / least : INFINITY;
}

static bool is_right(enum plumb_word word)
{
    return word == PLUMB_WORD_SAME || word == PLUMB_WORD_ROUNDING || word == PLUMB_WORD_TIE ||
           word == PLUMB_WORD_INHERITED;
}

/* ---- Single calls ---------------------------------------------------------------------------- */

/* A call that was computed again, and is right: off, if at all, by what came in. */
static const char *say_inherited(const struct site *site, struct arena *arena)
{
    char out[NUMBER_BYTES], in[NUMBER_BYTES];
    return arena_printf(
        arena, "%s %% from the other run, since its inputs are %s %% from it%s%s",
        number_brief(100 * site->is.out, 3, out),
        number_brief(100 * fmax(isnan(site->is.in) ? 0 : site->is.in, site->saved), 3, in),
        site->judged_locally ? "; the call itself: " : "",
        site->judged_locally ? site->is.why : "");
}

/* A repeat of the program jumps as no rounding does: a race, or memory that nobody wrote. */
static bool jumps_between(const struct site *site)
{
    return site->between > JUMP_FAULT * fmax(fmax(site->between_in, 0), site->floor);
}

static bool say_irreproducible(struct site *site, struct arena *arena)
{
    char out[NUMBER_BYTES], in[NUMBER_BYTES];
    site->jumps = site->is.by_jump = true;
    site->is.worst = site->between / fmax(fmax(site->between_in, 0), site->floor);
    site->is.word = PLUMB_WORD_NOT_JUDGED;
    site->is.why = arena_printf(arena,
                                "not reproducible: its outputs differ by %s %% between repeats of "
                                "the program, and its inputs by %s %%",
                                number_brief(100 * site->between, 3, out),
                                number_brief(100 * fmax(site->between_in, 0), 3, in));
    return site->is.why != NULL;
}

static bool decide_by_jump(struct site *site, struct arena *arena)
{
    struct plumb_suspect *is = &site->is;
    char out[NUMBER_BYTES], times[NUMBER_BYTES];
    const double jump = growth(site);
    is->by_jump = true;
    is->worst = jump;
    site->doubtful = false;
    if (jump > JUMP_SUSPICIOUS && isfinite(jump))
        is->why = arena_printf(arena,
                               "its outputs are %s %% from the other run, %s times as far as "
                               "its inputs or rounding would put them",
                               number_brief(100 * is->out, 3, out), number_brief(jump, 3, times));
    else if (jump > JUMP_SUSPICIOUS)
        is->why = "NaN, infinities or another shape where the other run has none, and its inputs "
                  "do not explain that";
    else if (is->out > site->floor && is->out <= steady_floor(site))
        is->why = arena_printf(arena,
                               "%s %% from the other run, and repeats of the same program differ "
                               "by as much",
                               number_brief(100 * is->out, 3, out));
    else if (is->out > site->floor)
        is->why = say_inherited(site, arena);
    else
        is->why = is->out == 0 ? "as in the other run"
                               : "no further from the other run than "
                                 "rounding";
    site->jumps = jump > JUMP_SUSPICIOUS && jump <= JUMP_FAULT;
    is->unsteady = jump <= JUMP_SUSPICIOUS &&
                   is->out > JUMP_SUSPICIOUS * fmax(fmax(is->in, site->saved), site->floor);
    is->word = jump > JUMP_FAULT       ? PLUMB_WORD_FAULT
               : site->jumps           ? PLUMB_WORD_NOT_JUDGED
               : is->out > site->floor ? PLUMB_WORD_INHERITED
               : is->out == 0          ? PLUMB_WORD_SAME
                                       : PLUMB_WORD_ROUNDING;
    return is->why != NULL;
}

/* False when out of memory. */
static bool decide(struct site *site, bool golden, struct arena *arena)
{
    struct plumb_suspect *is = &site->is;
    const bool apart = golden && !isnan(is->out);
    if (site->cut)
        return true;
    if (site->judged_locally && is->word != PLUMB_WORD_NOT_JUDGED) {
        if (!is_right(is->word) || !apart || !(is->out > 2 * site->floor))
            return true;
        is->why = say_inherited(site, arena);
        is->word = PLUMB_WORD_INHERITED;
        return is->why != NULL;
    }
    if (jumps_between(site))
        return say_irreproducible(site, arena);
    if (apart && !isnan(is->in))
        return decide_by_jump(site, arena);
    if (!is->why)
        is->why = strncmp(is->call, "Module.", 7) == 0 && !golden
                      ? "modules are judged by another run, and there is none"
                  : golden ? "plumb cannot compute it, and the other run has not both its inputs "
                             "and outputs"
                           : "plumb cannot compute it from what was recorded";
    return true;
}

/* ---- Calls inside calls ---------------------------------------------------------------------- */

static struct site *parent_of(const struct sites *sites, const struct site *site)
{
    const char *parent = site->is.parent;
    return parent ? sites_find(sites, parent, strlen(parent), site->is.step, site->is.rank) : NULL;
}

/* Counts a call for the one that it was made in. */
static void count_inside(struct site *around, const struct site *site)
{
    static const char inside[] = "Inside";
    if (strncmp(site->is.call, inside, sizeof inside - 1) == 0) {
        around->graph_out =
            around->interpreted ? fmax(around->graph_out, site->is.out) : site->is.out;
        around->interpreted = true;
    }
    around->n_inside++;
    around->right_inside += is_right(site->is.word) || site->is.word == PLUMB_WORD_CHEAPER;
    around->unknown_inside +=
        site->is.word == PLUMB_WORD_NOT_JUDGED && !site->jumps && !site->doubtful;
}

/* Nothing in it is wrong, and most of it was looked at: then it only amplifies. */
static bool is_right_inside(const struct site *site)
{
    return site->right_inside && site->right_inside + site->unknown_inside == site->n_inside &&
           site->right_inside >= site->unknown_inside;
}

/* A compiled region computes by code of its own; its nodes are what they would be without it. It
 * may be wrong where they are right: when it is farther off than any of them. */
static bool differs_from_graph(const struct site *site)
{
    return site->interpreted &&
           !(site->is.out <= JUMP_SUSPICIOUS * fmax(site->graph_out, site->floor));
}

static bool say_compiled(struct site *site, struct arena *arena)
{
    char out[NUMBER_BYTES];
    site->is.why =
        arena_printf(arena,
                     "%s; the nodes of its graph, computed one by one, are right and at "
                     "most %s %% from the other run: what the compiler made of them is not",
                     site->is.why, number_brief(100 * site->graph_out, 3, out));
    return site->is.why != NULL;
}

/* A module that jumps is right when all in it is, and is not the culprit when something in it
 * is. Calls are recorded when they are over, those inside before the one around them. */
static bool settle_modules(struct sites *sites, struct arena *arena)
{
    enum { DEEPEST = 256 }; /* parents may lead in a circle */
    for (size_t k = 0; k < sites->count; k++) {
        struct site *site = &sites->list[k], *around = site;
        for (int depth = 0; site->is.word == PLUMB_WORD_FAULT && depth < DEEPEST; depth++) {
            around = parent_of(sites, around);
            if (!around || around == site)
                break;
            around->holds = true;
        }
    }
    for (size_t k = 0; k < sites->count; k++) {
        struct site *site = &sites->list[k], *around = parent_of(sites, site);
        const bool suspect = site->is.by_jump && !is_right(site->is.word);
        const bool computed = site->module && site->is.word == PLUMB_WORD_FAULT;
        const bool right = is_right_inside(site), apart = right && differs_from_graph(site);
        if (suspect && apart && !site->holds && !isnan(site->graph_out)) {
            if (!say_compiled(site, arena))
                return false;
        } else if ((suspect && (site->holds || (right && !apart))) || (computed && site->holds)) {
            site->is.word = PLUMB_WORD_INHERITED;
            site->jumps = false;
        }
        if (around)
            count_inside(around, site);
    }
    return true;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* Both directions of a call stand together. */
static void weigh_calls(struct sites *sites)
{
    static const char forward[] = ".forward", backward[] = ".backward";
    for (size_t k = 0; k < sites->count; k++)
        sites->list[k].of_call = sites->list[k].is.worst;
    for (size_t k = 0; k < sites->count; k++) {
        struct site *site = &sites->list[k];
        char name[4096];
        const size_t length = strlen(site->is.call), tail = sizeof forward - 1;
        if (length <= tail || strcmp(site->is.call + length - tail, forward) != 0)
            continue;
        const int size =
            snprintf(name, sizeof name, "%.*s%s", (int)(length - tail), site->is.call, backward);
        struct site *other =
            size > 0 && (size_t)size < sizeof name
                ? sites_find(sites, name, (size_t)size, site->is.step, site->is.rank)
                : NULL;
        if (other && other->is.word == site->is.word)
            site->of_call = other->of_call = fmax(site->is.worst, other->is.worst);
    }
}

/* Worst first: what was computed before what was only compared, then by how bad the call is. */
static int compare_faults(const void *a, const void *b)
{
    const struct site *const *x = a, *const *y = b;
    if ((*x)->is.by_jump != (*y)->is.by_jump)
        return (*x)->is.by_jump ? 1 : -1;
    if ((*x)->of_call != (*y)->of_call)
        return (*x)->of_call > (*y)->of_call ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

static int compare_growth(const void *a, const void *b)
{
    const struct site *const *x = a, *const *y = b;
    const double p = growth(*x), q = growth(*y);
    return p != q ? (p > q ? -1 : 1) : *x < *y ? -1 : *x > *y;
}

static bool is_unsteady(const struct site *site)
{
    return site->is.unsteady;
}

typedef bool chooses(const struct site *site);

static bool is_fault(const struct site *site)
{
    return site->is.word == PLUMB_WORD_FAULT;
}

static bool is_suspicious(const struct site *site)
{
    return site->is.word == PLUMB_WORD_CHEAPER || site->jumps || site->doubtful;
}

static bool amplifies(const struct site *site)
{
    return is_right(site->is.word) && !site->holds && !graph_is_communication(site->is.call) &&
           !isnan(site->is.out) && growth(site) > 2 && isfinite(site->is.out);
}

/* The chosen ones, sorted; NULL when out of memory. */
static struct plumb_suspect *list(struct sites *sites, chooses *choose,
                                  int (*compare)(const void *, const void *), struct arena *arena,
                                  size_t *n)
{
    const struct site **chosen = malloc((sites->count + 1) * sizeof *chosen);
    if (!chosen)
        return NULL;
    *n = 0;
    for (size_t k = 0; k < sites->count; k++)
        if (choose(&sites->list[k]))
            chosen[(*n)++] = &sites->list[k];
    qsort(chosen, *n, sizeof *chosen, compare);
    struct plumb_suspect *out = arena_array(arena, *n + 1, sizeof *out);
    for (size_t k = 0; out && k < *n; k++)
        out[k] = chosen[k]->is;
    free(chosen);
    return out;
}

static int compare_tallies(const void *a, const void *b)
{
    const struct plumb_tally *x = a, *y = b;
    return x->count != y->count ? (x->count > y->count ? -1 : 1) : strcmp(x->what, y->what);
}

/* Counts sites of a word by a text of theirs. False when out of memory. */
static bool count_texts(const struct sites *sites, enum plumb_word word, bool by_parent,
                        struct plumb_tally *out, size_t *n)
{
    struct map index = {0};
    bool fine = true;
    *n = 0;
    for (size_t k = 0; k < sites->count && fine; k++) {
        const struct plumb_suspect *is = &sites->list[k].is;
        const char *what = by_parent                 ? (is->parent ? is->parent : "no module")
                           : sites->list[k].doubtful ? "not explained by what was recorded of it, "
                                                       "and suspicious"
                                                     : is->why;
        if (is->word != word)
            continue;
        bool added;
        uint64_t *place = map_put(&index, what, strlen(what), &added);
        fine = place != NULL;
        if (!fine)
            break;
        if (added) {
            *place = (*n)++;
            out[*place].what = what;
        }
        out[*place].count++;
    }
    map_free(&index);
    return fine;
}

/* The same, most frequent first; NULL when out of memory. */
static struct plumb_tally *tally(const struct sites *sites, enum plumb_word word, bool by_parent,
                                 struct arena *arena, size_t *n)
{
    struct plumb_tally *out = arena_array(arena, sites->count + 1, sizeof *out);
    if (!out || !count_texts(sites, word, by_parent, out, n))
        return NULL;
    qsort(out, *n, sizeof *out, compare_tallies);
    return out;
}

/* A backward call computes with what its forward call was given, too. */
static void note_saved(struct sites *sites)
{
    static const char forward[] = ".forward", backward[] = ".backward";
    for (size_t k = 0; k < sites->count; k++) {
        struct site *site = &sites->list[k];
        const char *at = strstr(site->is.call, backward);
        char name[4096];
        const int size = at ? snprintf(name, sizeof name, "%.*s%s%s", (int)(at - site->is.call),
                                       site->is.call, forward, at + sizeof backward - 1)
                            : -1;
        const struct site *other =
            size > 0 && (size_t)size < sizeof name
                ? sites_find(sites, name, (size_t)size, site->is.step, site->is.rank)
                : NULL;
        if (other)
            site->saved = fmax(site->saved, other->is.in);
    }
}

enum plumb_code answer_decide(struct sites *sites, bool golden, struct arena *arena,
                              struct plumb_error *err)
{
    note_saved(sites);
    for (size_t k = 0; k < sites->count; k++)
        if (!decide(&sites->list[k], golden, arena))
            return plumb_no_memory(err);
    if (!settle_modules(sites, arena))
        return plumb_no_memory(err);
    weigh_calls(sites);
    return PLUMB_OK;
}

/* The result that is furthest from the other run, and since when there is more than rounding. */
static void say_largest(const struct sites *sites, const struct site *largest,
                        struct plumb_blame *blame)
{
    blame->largest = largest->is;
    blame->rounding = largest->floor;
    for (const struct site *s = largest; s-- > sites->list && !blame->since;)
        if (s->is.step == largest->is.step && s->is.rank == largest->is.rank &&
            s->is.out <= 2 * s->floor)
            blame->since = s->is.call;
}

enum plumb_code answer_list(struct sites *sites, struct arena *arena, struct plumb_blame *blame,
                            struct plumb_error *err)
{
    const struct site *largest = NULL;
    blame->calls = sites->count;
    for (size_t k = 0; k < sites->count; k++) {
        const struct site *site = &sites->list[k];
        blame->words[site->is.word]++;
        blame->by_jump += site->is.by_jump && site->is.word != PLUMB_WORD_NOT_JUDGED;
        if (isfinite(site->is.out) && (!largest || site->is.out > largest->is.out))
            largest = site;
    }
    if (largest)
        say_largest(sites, largest, blame);
    blame->unsteady = list(sites, is_unsteady, compare_faults, arena, &blame->n_unsteady);
    if (blame->unsteady)
        blame->faults = list(sites, is_fault, compare_faults, arena, &blame->n_faults);
    if (blame->faults)
        blame->suspicious = list(sites, is_suspicious, compare_faults, arena, &blame->n_suspicious);
    if (blame->suspicious)
        blame->amplifiers = list(sites, amplifies, compare_growth, arena, &blame->n_amplifiers);
    if (blame->amplifiers)
        blame->reasons = tally(sites, PLUMB_WORD_NOT_JUDGED, false, arena, &blame->n_reasons);
    if (blame->reasons)
        blame->inherited = tally(sites, PLUMB_WORD_INHERITED, true, arena, &blame->n_inherited);
    if (blame->n_amplifiers > MAX_AMPLIFIERS)
        blame->n_amplifiers = MAX_AMPLIFIERS;
    return blame->inherited ? PLUMB_OK : plumb_no_memory(err);
}
