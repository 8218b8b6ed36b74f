/* Decisions that may fall either way: among equals, and among numbers that rounding makes equal.
 * The reference takes the device's choice where it is as good as its own. */
#include "verdict/expected_parts.h"

#include "verdict/ties.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct plumb_arg *copied(struct arena *arena, const struct plumb_arg *list, size_t n)
{
    struct plumb_arg *copy = arena_array(arena, n + 1, sizeof *copy);
    if (copy && list && n)
        memcpy(copy, list, n * sizeof *copy);
    return copy;
}

/* The reference as a result of our own, whose tensors may be replaced. */
static bool make_settled(struct plumb_expected *e)
{
    if (e->reference == &e->settled)
        return true;
    e->settled = *e->reference;
    e->settled.memory = NULL;
    e->settled.outputs = copied(&e->arena, e->reference->outputs, e->reference->n_outputs);
    e->settled.grads = copied(&e->arena, e->reference->grads, e->reference->n_grads);
    return e->settled.outputs && e->settled.grads;
}

/* Elements in which two tensors of one shape differ. */
static uint64_t count_others(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    uint64_t n = 0;
    for (uint64_t k = 0; k < a->count; k++) {
        double x, y;
        plumb_tensor_to_f64(a, k, 1, &x);
        plumb_tensor_to_f64(b, k, 1, &y);
        n += !(x == y || (isnan(x) && isnan(y)));
    }
    return n;
}

static void take_settled(struct plumb_expected *e, enum plumb_expected_part part)
{
    for (size_t k = 0; k < e->n_parts[part]; k++) {
        struct expected_tensor *t = &e->parts[part][k];
        const struct plumb_tensor *now = expected_tensor_of(&e->settled, part, k);
        if (now && t->reference && now != t->reference)
            t->ties += count_others(now, t->reference);
        t->reference = now;
    }
}

enum plumb_code decision_settle(struct plumb_expected *e, const struct plumb_result *got,
                                struct plumb_error *err)
{
    uint64_t n = 0;
    if (!make_settled(e) || ties_settle(&e->call, got, &e->settled, &e->arena, &n))
        return plumb_no_memory(err);
    e->reference = &e->settled;
    take_settled(e, PLUMB_PART_OUTPUT);
    take_settled(e, PLUMB_PART_GRADIENT);
    return PLUMB_OK;
}

/* ---- By noise -------------------------------------------------------------------------------- */

/* Between what the runs gave, element by element. */
struct range {
    double *low, *high;
};

static void widen(const struct range *r, const struct plumb_tensor *run)
{
    for (uint64_t k = 0; k < run->count; k++) {
        double x;
        plumb_tensor_to_f64(run, k, 1, &x);
        r->low[k] = fmin(r->low[k], x);
        r->high[k] = fmax(r->high[k], x);
    }
}

/* Errors eight times as large as right arithmetic makes in one step find what one may turn in
 * several; sixteen runs miss one that it turns in half of them once in 65,536. */
static enum plumb_code measure_range(struct plumb_expected *e, enum plumb_expected_part part,
                                     size_t k, const struct range *r, struct plumb_error *err)
{
    enum { RUNS = 16 };
    const double relative = e->wide ? 0x1p-50 : 0x1p-21;
    const struct plumb_tensor *y = e->parts[part][k].reference;
    enum plumb_code code = PLUMB_OK;
    for (uint64_t i = 0; i < y->count; i++) {
        plumb_tensor_to_f64(y, i, 1, &r->low[i]);
        r->high[i] = r->low[i];
    }
    for (unsigned n = 0; n < RUNS && !code; n++) {
        const struct plumb_noise noise = {
            .relative = relative, .seed = e->options.seed + 1000 + n, .store = PLUMB_DTYPE_COUNT};
        struct plumb_result run = {0};
        code = expected_run(e, &noise, &run, err);
        const struct plumb_tensor *t = code ? NULL : expected_tensor_of(&run, part, k);
        if (t && t->count == y->count)
            widen(r, t);
        plumb_result_destroy(&run);
    }
    return code;
}

static bool is_whole(const struct plumb_tensor *t)
{
    const enum plumb_kind kind = plumb_dtype_info(t->dtype)->kind;
    return kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX;
}

/* Whether rounding has a say in which of several numbers a result is. */
static bool may_turn(const struct plumb_expected *e, enum plumb_expected_part part,
                     const struct plumb_tensor *y)
{
    if (e->op->exact || plumb_dtype_parts(y->dtype) != 1 || plumb_dtype_info(y->dtype)->bits < 8)
        return false;
    return part == PLUMB_PART_OUTPUT && (is_whole(y) || e->op->results == PLUMB_OP_DECISION);
}

enum plumb_code decision_by_noise(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                                  const struct plumb_tensor *got, struct plumb_error *err)
{
    struct expected_tensor *t = k < e->n_parts[part] ? &e->parts[part][k] : NULL;
    const struct plumb_tensor *y = t ? t->reference : NULL;
    if (!y || !may_turn(e, part, y) || y->count != got->count || is_whole(y) != is_whole(got) ||
        plumb_dtype_parts(got->dtype) != 1 || !count_others(y, got))
        return PLUMB_OK;
    const size_t n = (size_t)y->count, size = plumb_dtype_info(y->dtype)->bits / 8;
    struct range r = {arena_array(&e->arena, n, sizeof(double)),
                      arena_array(&e->arena, n, sizeof(double))};
    unsigned char *bytes = arena_array(&e->arena, n, size);
    struct plumb_tensor *taken = arena_alloc(&e->arena, sizeof *taken);
    if (!r.low || !r.high || !bytes || !taken || !make_settled(e))
        return plumb_no_memory(err);
    struct plumb_error why = {0};
    if (measure_range(e, part, k, &r, &why) == PLUMB_E_NOMEM)
        return plumb_no_memory(err);
    plumb_tensor_gather(y, 0, n, bytes);
    for (uint64_t i = 0; i < n; i++) {
        double x, z;
        plumb_tensor_to_f64(y, i, 1, &x);
        plumb_tensor_to_f64(got, i, 1, &z);
        if (x == z || !(r.low[i] < r.high[i] && r.low[i] <= z && z <= r.high[i]))
            continue;
        if (y->dtype == got->dtype)
            plumb_tensor_gather(got, i, 1, bytes + i * size);
        else
            plumb_from_f64(y->dtype, &z, 1, bytes + i * size);
        t->ties++;
    }
    *taken = *y;
    taken->data = bytes;
    taken->dense = true;
    t->reference = taken;
    e->settled.outputs[k].tensor = taken;
    e->reference = &e->settled;
    return PLUMB_OK;
}

void decision_tell(const struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                   struct plumb_opinion *o)
{
    const uint64_t ties = k < e->n_parts[part] ? e->parts[part][k].ties : 0;
    if (!ties || o->word == PLUMB_WORD_NOT_JUDGED)
        return;
    if (o->word == PLUMB_WORD_SAME || o->word == PLUMB_WORD_ROUNDING)
        o->word = PLUMB_WORD_TIE;
    const size_t length = strlen(o->why);
    snprintf(
        o->why + length, sizeof o->why - length,
        "; %llu elements follow from choices among equals that fell another way, and are as good",
        (unsigned long long)ties);
}
