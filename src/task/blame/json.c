/* The answer for programs. docs/BLAME.md names the keys; they stay. */
#include "task/blame/parts.h"

#include "base/buf.h"
#include "base/json_put.h"
#include "base/number.h"

#include <inttypes.h>
#include <math.h>

static void put_number(struct buf *out, const char *name, double value)
{
    char text[NUMBER_BYTES];
    number_exact(value, false, text);
    buf_printf(out, ", \"%s\": %s", name, isfinite(value) ? text : "null");
}

static void put_string(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, ", \"%s\": ", name);
    if (text)
        json_put_string(out, text);
    else
        buf_text(out, "null");
}

static void put_suspect(struct buf *out, const char *target, const struct plumb_suspect *is)
{
    buf_text(out, "{\"call\": ");
    json_put_string(out, is->call);
    put_string(out, "result", is->result);
    buf_printf(out, ", \"step\": %" PRId64 ", \"rank\": %" PRId64, is->step, is->rank);
    put_string(out, "verdict", plumb_word_text(is->word));
    buf_printf(out, ", \"by_jump\": %s", is->by_jump ? "true" : "false");
    put_number(out, "worst", is->worst);
    put_number(out, "limit", is->limit);
    put_string(out, "why", is->why);
    put_string(out, "pattern", is->pattern);
    put_string(out, "arithmetic", is->arithmetic);
    put_string(out, "equals", is->equals);
    put_string(out, "at", is->place);
    put_number(out, "got", is->got);
    put_number(out, "expected", is->expected);
    put_number(out, "differing", is->differing);
    put_string(out, "baseline", plumb_standing_text(is->standing));
    put_string(out, "parent", is->parent);
    put_number(out, "inputs_apart", is->in);
    put_number(out, "outputs_apart", is->out);
    buf_text(out, ", \"stack\": [");
    for (size_t k = 0; is->stack && is->stack[k]; k++) {
        buf_text(out, k ? ", " : "");
        json_put_string(out, is->stack[k]);
    }
    buf_text(out, "]");
    struct buf replay = {0};
    if (!is->by_jump && !is->module && is->word != PLUMB_WORD_NOT_JUDGED)
        replay_put(&replay, target, is);
    put_string(out, "replay", replay.data);
    out->failed |= replay.failed;
    buf_free(&replay);
    buf_text(out, "}");
}

static void put_list(struct buf *out, const char *name, const char *target,
                     const struct plumb_suspect *list, size_t n)
{
    buf_printf(out, ",\n  \"%s\": [", name);
    for (size_t k = 0; k < n; k++) {
        buf_text(out, k ? ",\n    " : "\n    ");
        put_suspect(out, target, &list[k]);
    }
    buf_text(out, n ? "\n  ]" : "]");
}

static void put_counts(struct buf *out, const char *name, const struct plumb_tally *list, size_t n)
{
    buf_printf(out, ",\n  \"%s\": [", name);
    for (size_t k = 0; k < n; k++) {
        buf_printf(out, "%s{\"count\": %" PRIu64, k ? ",\n    " : "\n    ", list[k].count);
        put_string(out, "what", list[k].what);
        buf_text(out, "}");
    }
    buf_text(out, n ? "\n  ]" : "]");
}

static void put_baseline_json(struct buf *out, const struct plumb_baseline_diff *diff)
{
    buf_text(out, ",\n  \"baseline\": ");
    if (!diff) {
        buf_text(out, "null");
        return;
    }
    for (int k = PLUMB_STANDING_ACCEPTED; k < PLUMB_STANDINGS; k++)
        buf_printf(out, "%s\"%s\": %" PRIu64, k == PLUMB_STANDING_ACCEPTED ? "{" : ", ",
                   plumb_standing_text((enum plumb_standing)k), diff->count[k]);
    buf_text(out, ", \"changes\": [");
    for (size_t k = 0; k < diff->n_changes; k++) {
        const struct plumb_baseline_change *c = &diff->changes[k];
        buf_printf(out, "%s{\"baseline\": \"%s\"", k ? ",\n    " : "\n    ",
                   plumb_standing_text(c->standing));
        put_string(out, "call", c->is.call);
        put_string(out, "result", c->is.result);
        buf_printf(out, ", \"step\": %" PRId64 ", \"rank\": %" PRId64, c->is.step, c->is.rank);
        put_string(out, "verdict", plumb_word_text(c->is.word));
        put_number(out, "worst", c->is.worst);
        put_string(out, "why", c->why);
        buf_text(out, "}");
    }
    buf_text(out, diff->n_changes ? "\n  ]}" : "]}");
}

static void put_source(struct buf *out, const struct plumb_source *source)
{
    buf_text(out, "{\"call\": ");
    json_put_string(out, source->call);
    put_string(out, "place", source->place);
    put_string(out, "parent", source->parent);
    buf_printf(out, ", \"step\": %" PRId64 ", \"rank\": %" PRId64, source->step, source->rank);
    put_number(out, "apart", source->apart);
    put_string(out, "why", source->why);
    buf_text(out, "}");
}

static void put_sources(struct buf *out, const struct plumb_source *list, size_t n)
{
    buf_text(out, ",\n  \"sources\": [");
    for (size_t k = 0; k < n; k++) {
        buf_text(out, k ? ",\n    " : "\n    ");
        put_source(out, &list[k]);
    }
    buf_text(out, n ? "\n  ]" : "]");
}

char *plumb_blame_json(const struct plumb_blame *blame, const struct plumb_blame_options *options)
{
    struct buf out = {0};
    buf_printf(&out, "{\n  \"version\": %d, \"seed\": %" PRIu64, PLUMB_EXPECTED_VERSION,
               options->seed);
    put_string(&out, "arithmetic", options->arithmetic);
    put_string(&out, "target", options->target);
    put_string(&out, "golden", options->golden);
    buf_text(&out, ", \"repeats\": [");
    for (size_t k = 0; k < options->n_repeats; k++) {
        buf_text(&out, k ? ", " : "");
        json_put_string(&out, options->repeats[k]);
    }
    buf_text(&out, "]");
    buf_printf(&out,
               ",\n  \"calls\": %" PRIu64 ", \"by_jump\": %" PRIu64 ", \"unmatched\": %" PRIu64
               ", \"covered\": %" PRIu64 ", \"unreadable\": %" PRIu64 ",\n  \"verdicts\": {",
               blame->calls, blame->by_jump, blame->unmatched, blame->covered, blame->unreadable);
    for (int k = 0; k < PLUMB_WORDS; k++)
        buf_printf(&out, "%s\"%s\": %" PRIu64, k ? ", " : "", plumb_word_text((enum plumb_word)k),
                   blame->words[k]);
    buf_text(&out, "}");
    put_counts(&out, "not_judged", blame->reasons, blame->n_reasons);
    put_sources(&out, blame->sources, blame->n_sources);
    buf_text(&out, ",\n  \"parting\": ");
    if (blame->parting.call)
        put_source(&out, &blame->parting);
    else
        buf_text(&out, "null");
    across_put_json(&out, blame);
    put_list(&out, "faults", options->target, blame->faults, blame->n_faults);
    put_list(&out, "suspicious", options->target, blame->suspicious, blame->n_suspicious);
    put_list(&out, "unsteady", options->target, blame->unsteady, blame->n_unsteady);
    put_list(&out, "amplifiers", options->target, blame->amplifiers, blame->n_amplifiers);
    put_counts(&out, "inherited", blame->inherited, blame->n_inherited);
    buf_text(&out, ",\n  \"largest\": ");
    if (blame->largest.call)
        put_suspect(&out, options->target, &blame->largest);
    else
        buf_text(&out, "null");
    put_number(&out, "rounding", blame->rounding);
    put_string(&out, "since", blame->since);
    put_baseline_json(&out, blame->baseline);
    buf_text(&out, "\n}\n");
    if (out.failed) {
        buf_free(&out);
        return NULL;
    }
    return out.data;
}
