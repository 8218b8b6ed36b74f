/* Metrics of payload pairs, by the origin's rules. */
#include "msprobe/compare.h"

#include "base/pool.h"
#include "plumb/metric.h"
#include "plumb/run.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct session {
    struct general *general;
    size_t *work; /* pairs that have two payloads */
    size_t count, done;
    pthread_mutex_t lock;
};

/* One payload, as the file of a row has it. */
struct loaded {
    struct plumb_run *run;
    struct plumb_payload payload;
};

static void set_words(struct general_pair *pair, const char *word)
{
    for (size_t i = 0; i < GENERAL_METRICS; i++)
        pair->value[i] = (struct general_value){.kind = GENERAL_WORD, .word = word};
}

static bool load(struct loaded *out, const struct dump_tree *tree, size_t row)
{
    char path[4096];
    *out = (struct loaded){0};
    if (!dump_payload(tree, tree->rows[row].data_name, path, sizeof path) ||
        plumb_run_open(&out->run, path, NULL))
        return false;
    if (plumb_run_count(out->run) == 1 && !plumb_run_load(out->run, 0, &out->payload, NULL))
        return true;
    plumb_run_free(out->run);
    out->run = NULL;
    return false;
}

static void unload(struct loaded *loaded)
{
    if (!loaded->run)
        return;
    plumb_payload_release(&loaded->payload);
    plumb_run_free(loaded->run);
}

/* The value as 12 decimals tell it. Both calls see the same locale. */
static double decimals(double value, int digits)
{
    char text[400];
    if (!isfinite(value))
        return value;
    snprintf(text, sizeof text, "%.*f", digits, value);
    return strtod(text, NULL);
}

static struct general_value number(double value)
{
    return (struct general_value){.kind = GENERAL_NUMBER, .number = value};
}

/* The distance in the type of the data, in which small integers wrap around. */
static double scalar_distance(const struct plumb_tensor *target, const struct plumb_tensor *golden,
                              double t, double g)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(target->dtype);
    const struct plumb_dtype_info *other = plumb_dtype_info(golden->dtype);
    double distance = t - g;
    if (info->kind == PLUMB_KIND_FLOAT && other->kind == PLUMB_KIND_FLOAT) {
        bool half = target->dtype == PLUMB_F16 && golden->dtype == PLUMB_F16;
        bool wide = target->dtype == PLUMB_F64 || golden->dtype == PLUMB_F64;
        return fabs(wide ? distance : plumb_round_to(half ? PLUMB_F16 : PLUMB_F32, distance));
    }
    if (target->dtype != golden->dtype || info->bits > 32 ||
        (info->kind != PLUMB_KIND_INT && info->kind != PLUMB_KIND_UINT))
        return fabs(distance);
    double span = ldexp(1, info->bits), top = info->kind == PLUMB_KIND_INT ? span / 2 : span;
    if (distance >= top)
        distance -= span;
    else if (distance < top - span)
        distance += span;
    return fabs(distance);
}

/* One number against one number: nothing is said of direction or shares, and NaN and infinity take
 * part in the arithmetic. The relative error is float32's, whatever the type, unless a value does
 * not fit: in numpy a lone number does not widen a type. */
static void compare_scalars(struct general_pair *pair, const struct plumb_tensor *target,
                            const struct plumb_tensor *golden)
{
    double t[2] = {0}, g[2] = {0};
    plumb_tensor_to_f64(target, 0, 1, t);
    plumb_tensor_to_f64(golden, 0, 1, g);
    double distance = scalar_distance(target, golden, t[0], g[0]);

    double limit = plumb_dtype_info(PLUMB_F32)->max_finite;
    bool wide = (isfinite(t[0]) && fabs(t[0]) > limit) || (isfinite(g[0]) && fabs(g[0]) > limit);
    enum plumb_dtype type = wide ? PLUMB_F64 : PLUMB_F32;
    double n = plumb_round_to(type, t[0]), b = plumb_round_to(type, g[0]);
    if (b == 0) {
        double eps = wide ? 0x1p-52 : 0x1p-23;
        n = plumb_round_to(type, n + eps);
        b = eps;
    }
    double relative = fabs(plumb_round_to(type, plumb_round_to(type, n - b) / b));
    set_words(pair, "unsupported");
    pair->value[GENERAL_MAX_ABS] = number(decimals(distance, 12));
    pair->value[GENERAL_MAX_REL] = number(decimals(relative, 12));
}

/* True when NaNs lie at the same places on both sides, and infinities of any sign too. */
static bool same_places(const struct plumb_metrics *metrics)
{
    static const unsigned group[PLUMB_CLASSES] = {
        [PLUMB_FINITE] = 0, [PLUMB_POS_INF] = 1, [PLUMB_NEG_INF] = 1, [PLUMB_NAN] = 2};
    for (unsigned t = 0; t < PLUMB_CLASSES; t++)
        for (unsigned g = 0; g < PLUMB_CLASSES; g++)
            if (group[t] != group[g] && metrics->classes[t][g])
                return false;
    return true;
}

static void compare_arrays(struct general_pair *pair, const struct plumb_tensor *target,
                           const struct plumb_tensor *golden)
{
    struct plumb_metric_spec spec;
    struct plumb_metrics metrics;
    plumb_metric_spec_init(&spec);
    spec.groups = PLUMB_G_ERROR | PLUMB_G_RELATIVE;
    spec.relative = PLUMB_REL_GENERAL;
    if (plumb_metric_pair(&spec, target, golden, &metrics, NULL)) {
        set_words(pair, "unsupported");
        return;
    }
    if (!same_places(&metrics)) {
        set_words(pair, "N/A");
        return;
    }
    double cosine = decimals(metrics.cosine, 12), count = (double)metrics.count;
    pair->value[GENERAL_COSINE] = number(cosine > 0.9999 ? decimals(cosine, 6) : cosine);
    pair->value[GENERAL_EUCLIDEAN] = number(metrics.euclidean);
    pair->value[GENERAL_MAX_ABS] = number(decimals(metrics.max_abs, 12));
    pair->value[GENERAL_MAX_REL] = number(decimals(metrics.max_rel, 12));
    pair->value[GENERAL_1E3] = number(decimals((double)metrics.rel_below_1e3 / count, 12));
    pair->value[GENERAL_5E3] = number(decimals((double)metrics.rel_below_5e3 / count, 12));
}

static void compare_payloads(struct general_pair *pair, const struct loaded *target,
                             const struct loaded *golden)
{
    const struct plumb_tensor *t = &target->payload.tensor, *g = &golden->payload.tensor;
    struct plumb_file_guard guards[2];
    if (!t->count) {
        set_words(pair, "unsupported");
        return;
    }
    if (!plumb_shape_equivalent(t, g)) {
        set_words(pair, "shape unmatched");
        return;
    }
    plumb_file_guard_enter(&guards[0], &target->payload.file);
    plumb_file_guard_enter(&guards[1], &golden->payload.file);
    if (t->count == 1)
        compare_scalars(pair, t, g);
    else
        compare_arrays(pair, t, g);
    bool shrank = plumb_file_guard_leave(&guards[1]);
    shrank |= plumb_file_guard_leave(&guards[0]);
    if (shrank)
        set_words(pair, "unsupported");
}

static void work(void *context, size_t i, unsigned thread)
{
    (void)thread;
    struct session *session = context;
    struct general *general = session->general;
    struct general_pair *pair = &general->pairs[session->work[i]];
    struct loaded target = {0}, golden = {0};
    if (load(&target, &general->target, pair->target) &&
        load(&golden, &general->golden, pair->golden))
        compare_payloads(pair, &target, &golden);
    unload(&golden);
    unload(&target);

    const struct plumb_general_options *options = general->options;
    if (!options->progress)
        return;
    pthread_mutex_lock(&session->lock);
    options->progress(options->progress_context, ++session->done, session->count);
    pthread_mutex_unlock(&session->lock);
}

enum plumb_code general_metrics(struct general *general, struct plumb_error *err)
{
    struct session session = {.general = general, .lock = PTHREAD_MUTEX_INITIALIZER};
    session.work = malloc((general->count ? general->count : 1) * sizeof *session.work);
    if (!session.work)
        return plumb_no_memory(err);
    for (size_t i = 0; i < general->count; i++) {
        struct general_pair *pair = &general->pairs[i];
        set_words(pair, "unsupported");
        if (pair->golden != GENERAL_NONE && general->target.rows[pair->target].data_name &&
            general->golden.rows[pair->golden].data_name)
            session.work[session.count++] = i;
    }
    unsigned threads = general->options->threads;
    pool_run(threads ? threads : pool_default_threads(), session.count, work, &session);
    free(session.work);
    return PLUMB_OK;
}
