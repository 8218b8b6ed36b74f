/* Operators that drop elements at random. The reference takes the device's choice of them, which
 * shows in its results; values, gradients and the scale are judged by it like those of any
 * operator, and the choice itself by how likely it is. */
#include "verdict/expected_parts.h"

#include "base/number.h"
#include "verdict/mask.h"

#include <stdio.h>
#include <string.h>

struct dropout {
    struct plumb_result kept, dropped; /* everything */
    double p;
    struct mask mask;
    struct mask_replay replay;
    struct plumb_draws draws;
    bool by_outputs; /* outputs were among what the mask was found in */
    char fault[240]; /* what is wrong with the mask, or "" */
};

struct counter {
    uint64_t draws;
};

static uint32_t count_draw(void *state)
{
    ((struct counter *)state)->draws++;
    return 0;
}

/* All forms have the probability second, by name "p", and 0.5 where it is not given. */
static double probability(const struct plumb_call *call)
{
    const struct plumb_arg *arg = call->n_args > 1 ? &call->args[1] : NULL;
    for (size_t k = 0; k < call->n_kwargs; k++)
        if (strcmp(call->kwargs[k].name, "p") == 0)
            arg = &call->kwargs[k].value;
    return !arg || arg->kind == PLUMB_ARG_NONE ? 0.5
           : arg->kind == PLUMB_ARG_FLOAT      ? arg->number
                                               : (double)arg->integer;
}

static bool is_dropout(const struct plumb_expected *e)
{
    return e->op->random && strcmp(e->op->family, "dropout") == 0;
}

enum plumb_code dropout_begin(struct plumb_expected *e, struct plumb_error *err)
{
    if (!is_dropout(e))
        return PLUMB_OK;
    struct dropout *d = arena_alloc(&e->arena, sizeof *d);
    if (!d)
        return plumb_no_memory(err);
    *d = (struct dropout){.p = probability(&e->call)};
    e->dropout = d;
    struct counter counter = {0};
    const struct plumb_draws keep = {count_draw, &counter};
    struct plumb_call call = e->call;
    call.draws = &keep;
    enum plumb_code code = plumb_op_run(&call, PLUMB_RAISED, &d->kept, err);
    if (!code && !counter.draws) { /* nothing to drop, or everything */
        e->own_reference = d->kept;
        d->kept = (struct plumb_result){0};
        e->still = true;
        e->dropout = NULL;
        return PLUMB_OK;
    }
    call.draws = &mask_drop_all;
    return code ? code : plumb_op_run(&call, PLUMB_RAISED, &d->dropped, err);
}

void dropout_end(struct plumb_expected *e)
{
    if (!e->dropout)
        return;
    plumb_result_destroy(&e->dropout->kept);
    plumb_result_destroy(&e->dropout->dropped);
}

void dropout_rewind(const struct plumb_expected *e)
{
    if (e->dropout)
        e->dropout->replay.next = 0;
}

/* ---- The mask -------------------------------------------------------------------------------- */

static enum plumb_code judge_mask(struct dropout *d, struct plumb_error *err)
{
    const struct plumb_tensor *x = d->kept.outputs[0].tensor;
    const uint64_t row = x->rank ? (uint64_t)x->shape[x->rank - 1] : 1, parts = mask_torn(&d->mask);
    char text[160];
    if (parts)
        snprintf(d->fault, sizeof d->fault, "%llu of %llu channels were dropped in part",
                 (unsigned long long)parts, (unsigned long long)(d->mask.n / d->mask.each));
    else if (d->mask.traces)
        snprintf(d->fault, sizeof d->fault, "%llu elements are neither kept nor zero",
                 (unsigned long long)d->mask.traces);
    if (d->fault[0])
        return PLUMB_OK;
    if (!mask_suspicion(&d->mask, d->p, row, text, sizeof text))
        return plumb_no_memory(err);
    if (*text)
        snprintf(d->fault, sizeof d->fault, "what is dropped is not left to chance: %s", text);
    return PLUMB_OK;
}

enum plumb_code dropout_settle(struct plumb_expected *e, const struct plumb_result *got,
                               struct plumb_error *err)
{
    struct dropout *d = e->dropout;
    if (!d->kept.n_outputs || d->kept.outputs[0].kind != PLUMB_ARG_TENSOR)
        return PLUMB_OK;
    if (!mask_find(&d->mask, e->call.name, got, &d->kept, &d->dropped, &e->arena))
        return plumb_no_memory(err);
    d->replay = (struct mask_replay){.mask = &d->mask};
    d->draws = (struct plumb_draws){mask_next, &d->replay};
    for (size_t k = 0; k < got->n_outputs; k++)
        d->by_outputs |= got->outputs[k].kind == PLUMB_ARG_TENSOR;
    e->call.draws = &d->draws;
    plumb_result_destroy(&e->own_reference);
    enum plumb_code code = plumb_op_run(&e->call, PLUMB_RAISED, &e->own_reference, err);
    e->reference = &e->own_reference;
    e->runs = 0; /* what was measured belongs to other choices */
    e->whole = false;
    d->fault[0] = '\0';
    if (!code && !expected_make_parts(e))
        code = plumb_no_memory(err);
    return code ? code : judge_mask(d, err);
}

void dropout_tell(const struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                  struct plumb_opinion *o)
{
    const struct dropout *d = e->dropout;
    const enum plumb_expected_part source = d->by_outputs ? PLUMB_PART_OUTPUT : PLUMB_PART_GRADIENT;
    if (part != source || (part == PLUMB_PART_OUTPUT && k))
        return;
    const size_t length = strlen(o->why);
    if (d->fault[0]) {
        o->word = PLUMB_WORD_FAULT;
        snprintf(o->pattern, sizeof o->pattern, "%.180s", d->fault);
        snprintf(o->why, sizeof o->why, "%s", d->fault);
        return;
    }
    char p[NUMBER_BYTES];
    snprintf(o->why + length, sizeof o->why - length,
             "; %llu of the %llu elements that tell were dropped, as p = %s may",
             (unsigned long long)d->mask.dropped, (unsigned long long)d->mask.known,
             number_brief(d->p, 4, p));
}
