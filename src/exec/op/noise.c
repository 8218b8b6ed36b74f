/* Errors made on purpose: inputs and results on the way are multiplied by numbers close to 1, or
 * rounded to fewer bits, so that one can see what a device's rounding may do to the outputs. */
#include "exec/op/noise.h"

#include <string.h>

/* Which of all numbers of a call: the disturbance, and the element within it. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 27;
    x *= UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* Uniform in [-1, 1): two for every mixed number. */
struct draws {
    double of[2];
};

static struct draws draw(uint64_t key, int64_t pair)
{
    const uint64_t bits = mix(key + (uint64_t)pair * UINT64_C(0x9E3779B97F4A7C15));
    return (struct draws){{(double)(int32_t)(uint32_t)bits * 0x1p-31,
                           (double)(int32_t)(uint32_t)(bits >> 32) * 0x1p-31}};
}

/* Multiplies n numbers by 1 + relative r, or divides them by that. */
static void scale(real *x, int64_t n, double relative, uint64_t key, bool back)
{
    for (int64_t k = 0; k < n; k += 2) {
        const struct draws r = draw(key, k / 2);
        for (int64_t j = 0; j < 2 && k + j < n; j++) {
            const real factor = (real)(1 + relative * r.of[j]);
            x[k + j] = back ? x[k + j] / factor : x[k + j] * factor;
        }
    }
}

static uint64_t key_of(const struct op *o, uint64_t disturbance)
{
    return mix(o->call->noise->seed * UINT64_C(0xD1342543DE82EF95) + disturbance);
}

static void round_bits(real *x, int64_t n, unsigned bits)
{
    const double split = (double)(UINT64_C(1) << (53 - bits)) + 1;
    for (int64_t k = 0; k < n; k++) {
        const double v = (double)x[k], c = v * split, rounded = c - (c - v);
        if (isfinite(rounded))
            x[k] = (real)rounded;
    }
}

static void cut_bits(real *x, int64_t n, unsigned bits)
{
    for (int64_t k = 0; k < n; k++) {
        double v = (double)x[k];
        uint64_t pattern;
        memcpy(&pattern, &v, sizeof pattern);
        pattern &= ~UINT64_C(0) << (53 - bits);
        memcpy(&v, &pattern, sizeof v);
        if (isfinite(x[k]))
            x[k] = (real)v;
    }
}

static void disturb(struct op *o, real *x, int64_t n, double factor)
{
    const double relative = factor * o->call->noise->relative;
    const uint64_t key = key_of(o, ++o->disturbances);
    if (relative != 0)
        scale(x, n, relative, key, false);
}

static _Thread_local bool on_the_way_back;

void noise_set_back(bool back)
{
    on_the_way_back = back;
}

/* What is between two steps: an array inside of an operator, one number of a row, or a tensor. */
enum place { ARRAY, ONE, NODE };

static bool stores(enum plumb_stored stored, enum place place)
{
    return stored == PLUMB_STORED_ALL || (stored == PLUMB_STORED_SINGLE && place == ONE) ||
           (stored == PLUMB_STORED_ARRAYS && place != ONE) ||
           (stored == PLUMB_STORED_NODES && place == NODE) ||
           (stored == PLUMB_STORED_BOTH && place != ARRAY) ||
           (stored == PLUMB_STORED_BACK && (place == NODE || (place == ONE && on_the_way_back)));
}

static void store(const struct op *o, real *x, int64_t n, enum place place)
{
    const struct plumb_noise *noise = o->call->noise;
    if (noise->store == PLUMB_DTYPE_COUNT || !stores(noise->stored, place))
        return;
    for (int64_t k = 0; k < n; k++)
        x[k] = (real)plumb_round_to(noise->store, (double)x[k]);
}

static void between(struct op *o, real *x, int64_t n, enum place place)
{
    disturb(o, x, n, 1);
    store(o, x, n, place);
}

void op_accumulated(struct op *o, real *x, int64_t n)
{
    if (o->call->noise)
        store(o, x, n, ARRAY);
}

void op_between(struct op *o, real *x, int64_t n)
{
    if (o->call->noise)
        between(o, x, n, ARRAY);
}

void op_between_nodes(struct op *o, real *x, int64_t n)
{
    if (o->call->noise)
        between(o, x, n, NODE);
}

real op_between_one(struct op *o, real x)
{
    if (o->call->noise)
        between(o, &x, 1, ONE);
    return x;
}

/* Devices approximate erf and tanh to a few units in the last place. */
void op_between_function(struct op *o, real *x, int64_t n)
{
    if (o->call->noise)
        disturb(o, x, n, 4);
    op_between(o, x, n);
}

real noise_rough(struct op *o, real x)
{
    if (o->call->noise)
        disturb(o, &x, 1, 1024);
    return x;
}

void noise_input(struct op *o, real *x, int64_t n)
{
    const unsigned bits = o->call->noise->input_bits;
    if (bits && bits < 53)
        (o->call->noise->input_cut ? cut_bits : round_bits)(x, n, bits);
    disturb(o, x, n, 1);
}

void noise_take_back(const struct op *o, struct val *x)
{
    const struct plumb_noise *noise = o->call->noise;
    if (!noise || noise->relative == 0 || !x->disturbed)
        return;
    scale(x->f, x->count, noise->relative, key_of(o, x->disturbed), true);
    x->disturbed = 0;
}

/* ---- Sums of few bits ------------------------------------------------------------------------ */

static _Thread_local unsigned sum_bits;

void noise_set_sum_bits(unsigned bits)
{
    sum_bits = bits < 53 ? bits : 0;
}

unsigned noise_sum_bits(void)
{
    return sum_bits;
}

/* ---- How long sums are ----------------------------------------------------------------------- */

static _Thread_local int64_t longest = 1;

void op_terms(int64_t n)
{
    if (n > longest)
        longest = n;
}

void op_terms_again(int64_t n)
{
    if (n > 1 && __builtin_mul_overflow(longest, n, &longest))
        longest = INT64_MAX;
}

void op_terms_map(struct op *o, const int64_t *map, int64_t n, int64_t places)
{
    int64_t *hits = op_alloc(o, places + 1, sizeof *hits);
    for (int64_t k = 0; hits && k < n; k++)
        if (map[k] >= 0)
            op_terms(++hits[map[k]]);
}

int64_t noise_take_terms(void)
{
    const int64_t n = longest;
    longest = 1;
    return n;
}
