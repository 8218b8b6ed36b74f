/* Elements of parts, held against the whole. */
#include "pair/shards_infer.h"

#include <math.h>

/* A counter-based generator: which elements are looked at does not depend on order or machine. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

bool shards_sample(struct shards_sample *sample, struct arena *arena,
                   const struct plumb_tensor *tensor, unsigned stage)
{
    static const size_t most[SHARDS_STAGES] = {512, 65536, 4194304};
    const size_t limit = most[stage < SHARDS_STAGES ? stage : SHARDS_STAGES - 1];
    sample->width = plumb_dtype_parts(tensor->dtype);
    sample->all = tensor->count <= limit;
    sample->count = sample->all ? (size_t)tensor->count : limit;
    sample->index = arena_room(arena, sample->count + 1, sizeof *sample->index);
    sample->value = arena_room(arena, (sample->count + 1) * sample->width, sizeof(double));
    if (!sample->index || !sample->value)
        return false;
    /* One element of each stretch of equal length: small regions are not missed. */
    for (size_t i = 0; i < sample->count; i++) {
        const uint64_t begin =
            (uint64_t)((double)i / (double)sample->count * (double)tensor->count);
        const uint64_t end =
            (uint64_t)((double)(i + 1) / (double)sample->count * (double)tensor->count);
        const uint64_t at = sample->all || end <= begin ? begin : begin + mix(i) % (end - begin);
        sample->index[i] = sample->all ? i : at < tensor->count ? at : tensor->count - 1;
        plumb_tensor_to_f64(tensor, sample->index[i], 1, sample->value + i * sample->width);
    }
    return true;
}

struct distance {
    double error, part, whole;
};

static void add(struct distance *d, double part, double whole)
{
    if (isfinite(part) && isfinite(whole)) {
        d->error += (part - whole) * (part - whole);
        d->part += part * part;
        d->whole += whole * whole;
    } else if (!(isnan(part) && isnan(whole)) && part != whole) {
        d->error = INFINITY;
    }
}

static double relative(const struct distance *d)
{
    const double norm = d->part > d->whole ? d->part : d->whole;
    return d->error == 0 ? 0 : isinf(d->error) || norm == 0 ? INFINITY : sqrt(d->error / norm);
}

double shards_distance(const struct shards_sum *sum, const struct plumb_tensor *part,
                       const struct shards_plan *plan, unsigned place,
                       const struct plumb_tensor *whole)
{
    struct distance d = {0};
    const struct shards_sample *first = &sum->samples[sum->from];
    for (size_t i = 0; i < first->count; i++) {
        const uint64_t element = shards_element(plan, place, part, first->index[i]);
        double golden[2];
        if (element == UINT64_MAX)
            continue;
        plumb_tensor_to_f64(whole, element, 1, golden);
        for (unsigned k = 0; k < first->width; k++) {
            double value = 0;
            for (unsigned p = 0; p < sum->count; p++)
                value += sum->samples[sum->from + p * sum->step].value[i * first->width + k];
            add(&d, value * sum->scale, golden[k]);
        }
    }
    return relative(&d);
}

double shards_apart(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    enum { PIECE = 1024 };
    double left[2 * PIECE], right[2 * PIECE];
    struct distance d = {0};
    const unsigned width = plumb_dtype_parts(a->dtype);
    for (uint64_t at = 0; at < a->count; at += PIECE) {
        const uint64_t rest = a->count - at;
        const size_t count = rest < PIECE ? (size_t)rest : PIECE;
        plumb_tensor_to_f64(a, at, count, left);
        plumb_tensor_to_f64(b, at, count, right);
        for (size_t i = 0; i < count * width; i++)
            add(&d, left[i], right[i]);
    }
    return relative(&d);
}
