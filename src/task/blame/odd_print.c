/* Tensors by what tells them apart, and two of them beside each other. */
#include "task/blame/exchanged_parts.h"
#include "task/blame/odd.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 4096, WIDEST = 16 };

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93U;
    x ^= x >> 29;
    x *= 0x9e3779b97f4a7c15U;
    return x ^ x >> 32;
}

static void add_bytes(struct print *p, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, size - i < 8 ? size - i : 8);
        p->bits[0] = mix(p->bits[0] + word);
        p->bits[1] = mix(p->bits[1] ^ (word + 0x632be59bd9b4e019U)) + p->bits[0];
    }
}

static void add_block(struct print *p, const struct plumb_tensor *tensor, uint64_t at, size_t count,
                      unsigned char *first)
{
    unsigned char bytes[BLOCK];
    const size_t width = plumb_dtype_info(tensor->dtype)->bits / 8;
    plumb_tensor_gather(tensor, at, count, bytes);
    if (!at)
        memcpy(first, bytes, width);
    for (size_t i = 0; i < count && p->constant && width; i++)
        p->constant = memcmp(first, bytes + i * width, width) == 0;
    add_bytes(p, bytes, count * width);
}

static bool print_values(struct print *out, const struct plumb_run *run, size_t record)
{
    struct opened o = {0};
    struct arena arena = {0};
    const char *why;
    unsigned char first[WIDEST] = {0};
    const bool open = opened_load(&o, run, record, &arena, &why);
    const struct plumb_tensor *tensor = &o.payload.tensor;
    const size_t width = open ? plumb_dtype_info(tensor->dtype)->bits / 8 : 0;
    const size_t step = width ? BLOCK / width : 1;
    out->constant = true;
    for (uint64_t at = 0; width && at < tensor->count; at += step)
        add_block(out, tensor, at, tensor->count - at < step ? (size_t)(tensor->count - at) : step,
                  first);
    out->known = opened_close(&o) && open && width;
    arena_free(&arena);
    return out->known;
}

static void print_statistics(struct print *out, const struct plumb_recorded *recorded)
{
    struct plumb_value all[PLUMB_STATISTICS];
    *out = (struct print){0};
    if (recorded->checksum) {
        add_bytes(out, recorded->checksum, strlen(recorded->checksum));
        out->known = true;
    }
    for (unsigned k = 0; k < PLUMB_STATISTICS; k++) {
        all[k] = plumb_recorded_statistic(recorded, k);
        if (all[k].kind == PLUMB_VALUE_NUMBER) {
            add_bytes(out, &all[k].number, sizeof all[k].number);
            out->known = true;
        }
    }
    out->constant = all[PLUMB_STATISTIC_MAX].kind == PLUMB_VALUE_NUMBER &&
                    all[PLUMB_STATISTIC_MIN].kind == PLUMB_VALUE_NUMBER &&
                    all[PLUMB_STATISTIC_MAX].number == all[PLUMB_STATISTIC_MIN].number;
}

void print_of(struct print *out, const struct plumb_run *run, size_t record)
{
    const struct plumb_record *tensor = plumb_run_record(run, record);
    *out = (struct print){0};
    if (tensor->error || (!tensor->absent && print_values(out, run, record)))
        return;
    if (tensor->absent && tensor->recorded)
        print_statistics(out, tensor->recorded);
}

/* ---- Two of them ----------------------------------------------------------------------------- */

struct sums {
    double a, b, aa, bb, ab, square;
};

static void add_values(struct sums *s, const double *a, const double *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        s->a += a[i];
        s->b += b[i];
        s->aa += a[i] * a[i];
        s->bb += b[i] * b[i];
        s->ab += a[i] * b[i];
        s->square += (a[i] - b[i]) * (a[i] - b[i]);
    }
}

/* What a correlation over n values is at least, but for a chance of 1 in 30,000: few values go
 * together easily. */
static double at_least(double correlation, double n)
{
    return n > 3 ? tanh(atanh(fmin(correlation, 1)) - 4 / sqrt(n - 3)) : NAN;
}

static void compare_values(const struct plumb_tensor *a, const struct plumb_tensor *b,
                           double *apart, double *together)
{
    double x[BLOCK], y[BLOCK];
    struct sums s = {0};
    const size_t step = BLOCK / plumb_dtype_parts(a->dtype);
    for (uint64_t at = 0; at < a->count; at += step) {
        const size_t count = a->count - at < step ? (size_t)(a->count - at) : step;
        plumb_tensor_to_f64(a, at, count, x);
        plumb_tensor_to_f64(b, at, count, y);
        add_values(&s, x, y, count * plumb_dtype_parts(a->dtype));
    }
    const double n = (double)a->count * plumb_dtype_parts(a->dtype);
    const double p = s.aa - s.a * s.a / n, q = s.bb - s.b * s.b / n, r = s.ab - s.a * s.b / n;
    *apart = s.aa > 0 ? sqrt(s.square / s.aa) : NAN;
    *together = p > 0 && q > 0 ? at_least(r / sqrt(p * q), n) : NAN;
}

static void compare_statistics(const struct plumb_recorded *a, const struct plumb_recorded *b,
                               double *apart)
{
    double size = 0, most = 0;
    for (unsigned k = 0; k < PLUMB_STATISTICS; k++) {
        const struct plumb_value x = plumb_recorded_statistic(a, k);
        const struct plumb_value y = plumb_recorded_statistic(b, k);
        if (k == PLUMB_STATISTIC_NORM || x.kind != PLUMB_VALUE_NUMBER ||
            y.kind != PLUMB_VALUE_NUMBER)
            continue;
        size = fmax(size, fabs(x.number));
        most = fmax(most, fabs(x.number - y.number));
    }
    *apart = size > 0 ? most / size : NAN;
}

void print_compare(const struct plumb_run *run, size_t a, size_t b, double *apart, double *together)
{
    struct opened x = {0}, y = {0};
    struct arena arena = {0};
    const char *why;
    *apart = *together = NAN;
    if (plumb_run_record(run, a)->absent) {
        compare_statistics(plumb_run_record(run, a)->recorded, plumb_run_record(run, b)->recorded,
                           apart);
        return;
    }
    if (opened_load(&x, run, a, &arena, &why) && opened_load(&y, run, b, &arena, &why) &&
        x.payload.tensor.count == y.payload.tensor.count &&
        x.payload.tensor.dtype == y.payload.tensor.dtype)
        compare_values(&x.payload.tensor, &y.payload.tensor, apart, together);
    opened_close(&y);
    opened_close(&x);
    arena_free(&arena);
}
