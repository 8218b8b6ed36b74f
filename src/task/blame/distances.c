/* How far inputs and outputs of each call are from those of another run. */
#include "task/blame/parts.h"

#include "base/pool.h"
#include "pair/role.h"
#include "plumb/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct distances {
    const struct plumb_run *target, *golden;
    struct plumb_matching matching;
    double *of; /* of each pair; NaN: not known */
    bool *bad;  /* and that it should be */
    struct meter *meter;
};

/* Norms, largest and smallest values apart, in relation to their size. */
static double of_statistics(const struct plumb_recorded *a, const struct plumb_recorded *b)
{
    double scale = 0, worst = NAN;
    for (unsigned k = 0; k < PLUMB_STATISTICS; k++) {
        const struct plumb_value x = plumb_recorded_statistic(a, k);
        const struct plumb_value y = plumb_recorded_statistic(b, k);
        if (k == PLUMB_STATISTIC_MEAN || x.kind != PLUMB_VALUE_NUMBER ||
            y.kind != PLUMB_VALUE_NUMBER)
            continue;
        const double size = fmax(fabs(y.number), k == PLUMB_STATISTIC_NORM ? 0 : scale);
        scale = fmax(scale, size);
        const double apart = x.number == y.number || (isnan(x.number) && isnan(y.number)) ? 0
                             : isfinite(x.number) && isfinite(y.number) && size > 0
                                 ? fabs(x.number - y.number) / size
                                 : INFINITY;
        worst = isnan(worst) || apart > worst ? apart : worst;
    }
    return worst;
}

static double of_metrics(const struct plumb_metrics *m)
{
    if (m->integers)
        return m->count ? (double)m->unequal / (double)m->count : 0;
    if (m->nonfinite_mismatch)
        return INFINITY;
    if (m->euclidean == 0 || m->count == 0)
        return 0;
    return isnan(m->relative_euclidean) ? INFINITY : m->relative_euclidean;
}

static enum plumb_code of_values(const struct distances *d, const struct plumb_pair *pair,
                                 double *out, struct plumb_error *err)
{
    struct plumb_payload a = {0}, b = {0};
    enum plumb_code code = plumb_run_load(d->target, pair->target, &a, err);
    if (!code)
        code = plumb_run_load(d->golden, pair->golden, &b, err);
    if (!code && a.tensor.count != b.tensor.count) {
        *out = INFINITY;
    } else if (!code) {
        struct plumb_metric_spec spec;
        struct plumb_metrics metrics;
        struct plumb_file_guard guards[2];
        plumb_metric_spec_init(&spec);
        plumb_file_guard_enter(&guards[0], &a.file);
        plumb_file_guard_enter(&guards[1], &b.file);
        code = plumb_metric_pair(&spec, &a.tensor, &b.tensor, &metrics, err);
        const bool shrank = plumb_file_guard_leave(&guards[1]);
        if (plumb_file_guard_leave(&guards[0]) || shrank)
            code = plumb_fail(err, PLUMB_E_IO, "the file shrank while it was read");
        if (!code)
            *out = of_metrics(&metrics);
    }
    plumb_payload_release(&a);
    plumb_payload_release(&b);
    return code;
}

static bool is_unwritten(const struct plumb_record *record)
{
    return record->recorded && record->recorded->uninitialised;
}

static void measure(void *context, size_t i, unsigned thread)
{
    (void)thread;
    struct distances *d = context;
    const struct plumb_pair *pair = &d->matching.pairs[i];
    const struct plumb_record *a = plumb_run_record(d->target, pair->target),
                              *b = plumb_run_record(d->golden, pair->golden);
    struct plumb_error why;
    if (is_unwritten(a) || is_unwritten(b))
        d->of[i] = NAN;
    else if (a->error || b->error)
        d->bad[i] = true;
    else if (!a->absent && !b->absent)
        d->bad[i] = of_values(d, pair, &d->of[i], &why) != PLUMB_OK;
    else if (a->recorded && b->recorded && a->recorded->tensor && b->recorded->tensor)
        d->of[i] = of_statistics(a->recorded, b->recorded);
    meter_add(d->meter, 1);
}

static bool is_call_input(const struct plumb_record *record, bool *output)
{
    size_t length;
    const enum pair_role role = pair_role(record->name, &length);
    *output = role == ROLE_OUTPUT;
    return role == ROLE_INPUT || strstr(record->name, ".kwargs.") ||
           strstr(record->name, ".parameters.") || strstr(record->name, ".forward_params.");
}

/* The longest sum is at most as long as the last dimension of an input. */
static void spread(const struct distances *d, struct sites *sites, bool between)
{
    for (size_t i = 0; i < d->matching.matched; i++) {
        const struct plumb_record *record =
            plumb_run_record(d->target, d->matching.pairs[i].target);
        const struct plumb_record *other = plumb_run_record(d->golden, d->matching.pairs[i].golden);
        struct site *site = sites_of(sites, record);
        bool output;
        if (!site || isnan(d->of[i]))
            continue;
        const bool input = is_call_input(record, &output);
        double *in = between ? &site->between_in : &site->is.in;
        double *out = between ? &site->between : &site->is.out;
        if (input && !(*in >= d->of[i]))
            *in = d->of[i];
        if (output && !(*out >= d->of[i]))
            *out = d->of[i];
        if (between)
            continue;
        site->n_out += output;
        const int64_t terms = record->ndim ? record->shape[record->ndim - 1] : 1;
        if (record->recorded ? record->recorded->tensor : true)
            site->floor = fmax(site->floor, fmax(calls_floor(record->dtype, terms),
                                                 calls_floor(other->dtype, terms)));
    }
}

static void count_alone(const struct plumb_matching *matching, struct plumb_blame *blame)
{
    for (size_t i = matching->matched; i < matching->count; i++)
        *(matching->pairs[i].covered ? &blame->covered : &blame->unmatched) += 1;
}

/* between: the other run is a repeat of the program. */
static enum plumb_code fill(struct sites *sites, const struct plumb_run *target,
                            const struct plumb_run *other, bool between, unsigned threads,
                            struct meter *meter, struct arena *arena, struct plumb_blame *blame,
                            struct plumb_error *err)
{
    struct distances d = {.target = target, .golden = other, .meter = meter};
    const struct plumb_pair_options how = {.mode = PLUMB_PAIR_AUTO};
    enum plumb_code code = plumb_match(&d.matching, target, other, &how, err);
    if (code)
        return code;
    if (blame)
        count_alone(&d.matching, blame);
    d.of = malloc((d.matching.matched + 1) * sizeof *d.of);
    d.bad = calloc(d.matching.matched + 1, sizeof *d.bad);
    if (!d.of || !d.bad)
        code = plumb_no_memory(err);
    if (!code) {
        for (size_t i = 0; i < d.matching.matched; i++)
            d.of[i] = NAN;
        pool_run(threads, d.matching.matched, measure, &d);
        for (size_t i = 0; blame && i < d.matching.matched; i++)
            blame->unreadable += d.bad[i];
        spread(&d, sites, between);
        if (blame)
            code = sources_find(target, other, &d.matching, d.of, arena, blame, err);
        if (plumb_run_count(target) > d.matching.matched)
            meter_add(meter, plumb_run_count(target) - d.matching.matched);
    }
    free(d.of);
    free(d.bad);
    plumb_matching_free(&d.matching);
    return code;
}

enum plumb_code distances_fill(struct sites *sites, const struct plumb_run *target,
                               const struct plumb_run *golden, unsigned threads,
                               struct meter *meter, struct arena *arena, struct plumb_blame *blame,
                               struct plumb_error *err)
{
    return fill(sites, target, golden, false, threads, meter, arena, blame, err);
}

enum plumb_code distances_between(struct sites *sites, const struct plumb_run *target,
                                  const struct plumb_run *repeat, unsigned threads,
                                  struct meter *meter, struct plumb_error *err)
{
    return fill(sites, target, repeat, true, threads, meter, NULL, NULL, err);
}
