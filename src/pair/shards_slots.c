/* Which part fills which slot of the whole, by values.
 *
 * Every part is held against every slot and goes where it fits best: that finds the order of the
 * ranks, replicas, and a part that is wrong (the slot that nobody else fills). */
#include "pair/shards_search.h"

#include <math.h>
#include <string.h>

struct shards_layout *search_layout(struct search *s)
{
    struct shards_layout *layout = shards_replica(s->arena, s->count);
    s->no_memory = s->no_memory || !layout;
    return layout;
}

static unsigned first_of(const struct sums *sums, unsigned group)
{
    return sums->strided ? group : group * sums->terms;
}

double search_distance(const struct search *s, const struct sums *sums, unsigned group,
                       const struct shards_plan *plan, unsigned slot)
{
    const struct shards_sum sum = {s->samples, first_of(sums, group),
                                   sums->strided ? sums->groups : 1, sums->terms,
                                   1.0 / ((sums->reduce == SHARDS_MEAN ? sums->terms : 1) *
                                          (sums->divisor ? sums->divisor : 1.0))};
    return shards_distance(&sum, s->parts[sum.from], plan, slot, s->whole);
}

bool search_clear(double best, double other)
{
    return other > CLEAR * best + 1e-14;
}

/* May a group stand in a slot, as far as the data tell? */
static bool may(const double *row, double best, unsigned slot)
{
    return best > FITS || !search_clear(best, row[slot]);
}

/* Does the order p % slots (or p / (groups / slots)) agree with all that is known? */
static bool natural(const double *table, const double *best, unsigned groups, unsigned slots,
                    bool cyclic, unsigned *slot)
{
    if (groups % slots)
        return false;
    for (unsigned g = 0; g < groups; g++) {
        slot[g] = cyclic ? g % slots : g / (groups / slots);
        if (!may(table + (size_t)g * slots, best[g], slot[g]))
            return false;
    }
    return true;
}

/* Each group to its best slot; those that fit nowhere fill what is left. */
static bool by_best(const double *table, const double *best, unsigned groups, unsigned slots,
                    unsigned *slot, unsigned *filled)
{
    memset(filled, 0, slots * sizeof *filled);
    for (unsigned g = 0; g < groups; g++) {
        const double *row = table + (size_t)g * slots;
        unsigned choice = slots;
        for (unsigned k = 0; k < slots && best[g] <= FITS; k++)
            if (may(row, best[g], k) && (choice == slots || filled[k] < filled[choice]))
                choice = k;
        slot[g] = choice;
        if (choice < slots)
            filled[choice]++;
    }
    for (unsigned g = 0; g < groups; g++)
        if (slot[g] == slots) {
            unsigned emptiest = 0;
            for (unsigned k = 1; k < slots; k++)
                emptiest = filled[k] < filled[emptiest] ? k : emptiest;
            slot[g] = emptiest;
            filled[emptiest]++;
        }
    for (unsigned k = 0; k < slots; k++)
        if (!filled[k])
            return false;
    return true;
}

static void take_layout(struct shards_layout *layout, const struct sums *sums, const unsigned *slot)
{
    layout->reduce = sums->reduce;
    layout->terms = sums->terms;
    layout->divisor = sums->divisor;
    for (unsigned p = 0; p < layout->parts; p++) {
        const unsigned group = sums->strided ? p % sums->groups : p / sums->terms;
        layout->slot[p] = slot[group];
        layout->term[p] = sums->strided ? p / sums->groups : p % sums->terms;
    }
}

double search_median(double *values, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        for (unsigned k = i; k && values[k - 1] > values[k]; k--) {
            const double swap = values[k];
            values[k] = values[k - 1];
            values[k - 1] = swap;
        }
    return values[(count - 1) / 2];
}

void search_judge(struct search *s, struct candidate *c, const struct sums *sums,
                  const struct shards_plan *plan, unsigned slots)
{
    double *table = arena_array(s->arena, (size_t)sums->groups * slots, sizeof *table);
    double *best = arena_array(s->arena, sums->groups, sizeof *best);
    unsigned *slot = arena_array(s->arena, (size_t)sums->groups + slots, sizeof *slot);
    if (!table || !best || !slot) {
        s->no_memory = true;
        return;
    }
    for (unsigned g = 0; g < sums->groups; g++) {
        unsigned fitting = 0;
        best[g] = INFINITY;
        for (unsigned k = 0; k < slots; k++) {
            const double d = search_distance(s, sums, g, plan, k);
            table[(size_t)g * slots + k] = d;
            best[g] = d < best[g] ? d : best[g];
        }
        for (unsigned k = 0; k < slots && best[g] <= FITS; k++)
            fitting += may(table + (size_t)g * slots, best[g], k);
        c->open = c->open || fitting > 1;
    }
    if (!natural(table, best, sums->groups, slots, true, slot) &&
        !natural(table, best, sums->groups, slots, false, slot) &&
        !by_best(table, best, sums->groups, slots, slot, slot + sums->groups))
        return;
    for (unsigned g = 0; g < sums->groups; g++) {
        best[g] = table[(size_t)g * slots + slot[g]];
        c->missed += !(best[g] <= FITS);
    }
    take_layout(c->layout, sums, slot);
    c->residual = search_median(best, sums->groups);
    /* Of a sum that is off nobody can say which term is. */
    c->fits = c->residual <= search_limit(s) &&
              (sums->terms > 1 ? !c->missed : c->missed * 2 <= sums->groups);
    /* Sums that several groups of ranks have alike agree better than by chance. */
    const double alike = search_limit(s) < ALIKE_SUMS ? search_limit(s) : ALIKE_SUMS;
    if (sums->terms > 1 && sums->groups > slots && best[sums->groups - 1] > alike)
        c->fits = false;
}

bool search_any_fits(const struct search *s)
{
    for (size_t i = 0; i < s->candidates; i++)
        if (s->list[i].fits)
            return true;
    return false;
}

double search_limit(const struct search *s)
{
    enum { FEW = 16 };
    if (s->whole->count >= FEW)
        return FITS;
    return plumb_dtype_info(s->whole->dtype)->bits > 16 ? 1e-3 : 2e-2;
}
