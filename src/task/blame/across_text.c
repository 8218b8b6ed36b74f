/* What is to be said of several ranks, for people and for programs. */
#include "task/blame/across.h"

#include "base/json_put.h"
#include "ranks/travel.h"

#include <inttypes.h>

/* ---- People ---------------------------------------------------------------------------------- */

enum { SHOWN = 4, SHOWN_HOPS = 4 };

static void put_where(struct buf *out, int64_t step, int64_t rank)
{
    if (rank >= 0)
        buf_printf(out, "rank %" PRId64, rank);
    if (step >= 0)
        buf_printf(out, "%sstep %" PRId64, rank >= 0 ? ", " : "", step);
    if (rank >= 0 || step >= 0)
        buf_text(out, ": ");
}

static void put_hops_text(struct buf *line, const struct plumb_journey *journey, bool seen)
{
    if (!journey->n_hops)
        buf_text(line, ", and went to no other rank");
    for (size_t h = 0; h < journey->n_hops && h < SHOWN_HOPS; h++) {
        const struct plumb_hop *hop = &journey->hops[h];
        const char *s = hop->n_to == 1 ? "" : "s";
        if (seen)
            buf_printf(line, " -> %s -> rank%s ", hop->call, s);
        else
            buf_printf(line, "; from %s on it may be in rank%s ", hop->call, s);
        travel_put_ranks(line, hop->to, hop->n_to);
    }
    if (journey->n_hops > SHOWN_HOPS)
        buf_printf(line, " and %zu more exchanges", journey->n_hops - SHOWN_HOPS);
}

static void put_journeys(struct buf *out, const char *title, const struct plumb_journey *list,
                         size_t n, bool seen, unsigned width)
{
    for (size_t k = 0; k < n && k < SHOWN; k++) {
        struct buf line = {0};
        buf_text(&line, title);
        put_where(&line, list[k].step, list[k].rank);
        if (list[k].place)
            buf_printf(&line, "%s came in with %s of ",
                       list[k].nan && !list[k].since ? "a NaN" : "an infinity", list[k].place);
        buf_text(&line, list[k].call);
        if (list[k].since)
            buf_printf(&line, ", a NaN since %s", list[k].since);
        put_hops_text(&line, &list[k], seen);
        text_put(out, line.data ? line.data : "", width, 2);
        out->failed |= line.failed;
        buf_free(&line);
    }
    if (n > SHOWN)
        buf_printf(out, "... and %zu more, which --format json lists\n", n - SHOWN);
}

static void put_odd_text(struct buf *out, const struct plumb_odd *odd, unsigned width)
{
    struct buf line = {0};
    buf_text(&line, odd->rank < 0 ? "Ranks " : "Odd rank out: ");
    if (odd->rank < 0) {
        travel_put_ranks(&line, odd->group, odd->n_group);
        buf_text(&line, " differ");
        if (odd->step >= 0)
            buf_printf(&line, ", step %" PRId64, odd->step);
        buf_text(&line, ": ");
    } else {
        put_where(&line, odd->step, odd->rank);
    }
    buf_printf(&line, "%s: %s", odd->name, odd->why);
    if (odd->tensors > 1)
        buf_printf(&line, "; so it is with %" PRIu64 " tensors", odd->tensors);
    text_put(out, line.data ? line.data : "", width, 2);
    out->failed |= line.failed;
    buf_free(&line);
}

void across_put_text(struct buf *out, const struct plumb_blame *blame, unsigned width)
{
    if (!blame->ranks)
        return;
    buf_printf(out,
               "%" PRIu64 " ranks, %" PRIu64 " calls of exchanges, %" PRIu64
               " tensor%s that ranks have alike\n",
               blame->ranks, blame->exchanges, blame->replicas, blame->replicas == 1 ? "" : "s");
    put_journeys(out, "First fault of all ranks: ", blame->first, blame->n_first, blame->followed,
                 width);
    put_journeys(out, "Not finite first: ", blame->not_finite, blame->n_not_finite, true, width);
    for (size_t k = 0; k < blame->n_odd && k < SHOWN; k++)
        put_odd_text(out, &blame->odd[k], width);
    if (blame->n_odd > SHOWN)
        buf_printf(out, "... and %zu more odd ranks, which --format json lists\n",
                   blame->n_odd - SHOWN);
}

/* ---- Programs -------------------------------------------------------------------------------- */

static void put_ranks_json(struct buf *out, const int64_t *ranks, size_t n)
{
    buf_text(out, "[");
    for (size_t k = 0; k < n; k++)
        buf_printf(out, "%s%" PRId64, k ? ", " : "", ranks[k]);
    buf_text(out, "]");
}

static void put_word_json(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, ", \"%s\": ", key);
    if (text)
        json_put_string(out, text);
    else
        buf_text(out, "null");
}

static void put_journeys_json(struct buf *out, const char *name, const struct plumb_journey *list,
                              size_t n, bool finite)
{
    buf_printf(out, ",\n  \"%s\": [", name);
    for (size_t k = 0; k < n; k++) {
        buf_printf(out, "%s{\"call\": ", k ? ",\n    " : "\n    ");
        json_put_string(out, list[k].call);
        buf_printf(out, ", \"step\": %" PRId64 ", \"rank\": %" PRId64, list[k].step, list[k].rank);
        if (finite) {
            put_word_json(out, "place", list[k].place);
            put_word_json(out, "since", list[k].since);
            buf_printf(out, ", \"nan\": %s", list[k].nan ? "true" : "false");
        }
        buf_text(out, ", \"hops\": [");
        for (size_t h = 0; h < list[k].n_hops; h++) {
            buf_printf(out, "%s{\"call\": ", h ? ", " : "");
            json_put_string(out, list[k].hops[h].call);
            buf_printf(out, ", \"from\": %" PRId64 ", \"to\": ", list[k].hops[h].from);
            put_ranks_json(out, list[k].hops[h].to, list[k].hops[h].n_to);
            buf_text(out, "}");
        }
        buf_text(out, "]}");
    }
    buf_text(out, n ? "\n  ]" : "]");
}

void across_put_json(struct buf *out, const struct plumb_blame *blame)
{
    buf_printf(out,
               ",\n  \"ranks\": %" PRIu64 ", \"exchanges\": %" PRIu64 ", \"replicas\": %" PRIu64,
               blame->ranks, blame->exchanges, blame->replicas);
    put_journeys_json(out, "first", blame->first, blame->n_first, false);
    buf_printf(out, ",\n  \"followed\": %s", blame->followed ? "true" : "false");
    put_journeys_json(out, "not_finite", blame->not_finite, blame->n_not_finite, true);
    buf_text(out, ",\n  \"odd\": [");
    for (size_t k = 0; k < blame->n_odd; k++) {
        const struct plumb_odd *odd = &blame->odd[k];
        buf_printf(out, "%s{\"rank\": %" PRId64 ", \"step\": %" PRId64 ", \"tensor\": ",
                   k ? ",\n    " : "\n    ", odd->rank, odd->step);
        json_put_string(out, odd->name);
        buf_printf(out, ", \"tensors\": %" PRIu64 ", \"group\": ", odd->tensors);
        put_ranks_json(out, odd->group, odd->n_group);
        buf_printf(out, ", \"baseline\": \"%s\", \"why\": ", plumb_standing_text(odd->standing));
        json_put_string(out, odd->why);
        buf_text(out, "}");
    }
    buf_text(out, blame->n_odd ? "\n  ]" : "]");
}
