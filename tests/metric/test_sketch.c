/* The sketch: its definition written once more, that it is linear, how good its estimates are, and
 * where it says that tensors differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/sketch_kept.h"
#include "metric/kept.h"
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* About normal, with standard deviation 1. */
static double bell(uint64_t *seed)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += random_unit(seed);
    return sum;
}

static struct plumb_tensor tensor_of(enum plumb_dtype dtype, unsigned rank, const int64_t *shape,
                                     const void *data)
{
    struct plumb_tensor tensor;
    assert_int_equal(plumb_tensor_init(&tensor, dtype, rank, shape, NULL), PLUMB_OK);
    tensor.data = data;
    return tensor;
}

static struct plumb_sketch sketch_of(const struct plumb_tensor *tensor)
{
    const struct kernels kernels = kernels_current();
    struct kept_state state;
    struct plumb_sketch out;
    assert_true(kept_begin(&state, tensor, KEPT_SKETCH));
    kept_tensor(&state, &kernels, tensor, 0, tensor->count);
    assert_true(sketch_finish(state.sketch, &out));
    kept_end(&state);
    return out;
}

static double sum_of(const struct plumb_sketch *sketch, int i)
{
    return ldexp((double)sketch->sum[i], sketch->exponent);
}

/* -- The definition ---------------------------------------------------------------------------- */

struct known_place {
    uint64_t index;
    int place, sign;
};

static void check_places(int version, const struct known_place *known, size_t count)
{
    const struct sketch_frame frame = {.version = version};
    const struct kernels kernels = kernels_current();
    for (size_t i = 0; i < count; i++) {
        for (double x = 1; x < INFINITY; x *= 0x1p1000) { /* large ones go another way */
            struct plumb_sketch sketch;
            struct sketch_state *sums = sketch_new(&frame);
            assert_non_null(sums);
            sketch_add(sums, &kernels, known[i].index, &x, 1, false);
            assert_true(sketch_finish(sums, &sketch));
            sketch_free(sums);
            for (int k = 0; k < PLUMB_SKETCH_SUMS; k++)
                if (sum_of(&sketch, k) != (k == known[i].place ? known[i].sign * x : 0))
                    fail_msg("index %llu: place %d has %g", (unsigned long long)known[i].index, k,
                             sum_of(&sketch, k));
        }
    }
}

/* These must never change: files have been written with them. */
static void test_places_and_signs(void **state)
{
    (void)state;
    static const struct known_place now[] = {
        {0, 219, -1},   {1, 218, -1},       {63, 228, -1},
        {64, 243, 1},   {511, 119, -1},     {512, 18, -1},
        {4095, 93, -1}, {1000003, 108, -1}, {UINT64_C(1) << 40, 29, 1}};
    static const struct known_place old[] = {
        {0, 175, -1},    {1, 176, 1},        {15, 190, 1},
        {16, 244, -1},   {160, 9, -1},       {255, 186, 1},
        {4095, 173, -1}, {1000003, 106, -1}, {UINT64_C(1) << 40, 71, -1}};
    check_places(SKETCH_VERSION, now, sizeof now / sizeof *now);
    check_places(SKETCH_OLD, old, sizeof old / sizeof *old);
}

static uint64_t split_mix(uint64_t j)
{
    uint64_t z = (j + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* The sums and those of blocks of a tensor of integers, which only what is kept of them rounds, as
 * FORMATS.md has it. */
static void define(struct plumb_sketch *out, const float *x, const int64_t shape[2])
{
    double sums[PLUMB_SKETCH_SUMS] = {0};
    static double blocks[2][PLUMB_SKETCH_BLOCKS][2];
    memset(blocks, 0, sizeof blocks);
    for (int64_t i = 0; i < shape[0] * shape[1]; i++) {
        const uint64_t tile = (uint64_t)i / 64, l = (uint64_t)i % 64;
        const uint64_t places = split_mix((UINT64_C(1) << 63) + tile / 8);
        const uint64_t place = (places >> 8 * (tile % 8) & 255) ^ l;
        const double y = split_mix(tile) >> l & 1 ? -(double)x[i] : (double)x[i];
        sums[place] += y;
        for (unsigned k = 0; k < out->axes; k++) {
            const int64_t at = out->axis[k].axis ? i % shape[1] : i / shape[1];
            blocks[k][at / (int64_t)out->axis[k].length][place % 2] += y;
        }
    }
    const double step = ldexp(1, out->exponent - 10), small = ldexp(1, out->exponent - 22);
    for (int i = 0; i < PLUMB_SKETCH_SUMS; i++)
        assert_true(sum_of(out, i) == rint(sums[i] / step) * step);
    for (int j = 0; j < PLUMB_SKETCH_FINE; j++) {
        const double whole = sums[j] + sums[j + 64] + sums[j + 128] + sums[j + 192];
        const double kept =
            sum_of(out, j) + sum_of(out, j + 64) + sum_of(out, j + 128) + sum_of(out, j + 192);
        const double rest = ldexp((double)out->rest[j], out->exponent);
        assert_true(kept + rest == whole || rest == 8191 * small);
    }
    const double down = ldexp(1, out->block_exponent - 19);
    for (unsigned k = 0; k < out->axes; k++)
        for (unsigned b = 0; b < out->axis[k].blocks; b++)
            for (unsigned j = 0; j < 2; j++)
                assert_true(ldexp((double)out->axis[k].sum[b][j], out->block_exponent) ==
                            floor(blocks[k][b][j] / down) * down);
}

static void test_definition(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{300, 100}, {17, 1000}, {1, 70000}, {70000, 1},
                                        {5, 3},     {128, 512}, {1000, 67}};
    uint64_t seed = 3;
    float *x = malloc(100000 * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < 100000; i++)
        x[i] = (float)random_below(&seed, 2001) - 1000;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct plumb_tensor tensor = tensor_of(PLUMB_F32, 2, shapes[i], x);
        struct plumb_sketch sketch = sketch_of(&tensor);
        define(&sketch, x, shapes[i]);
    }
    free(x);
}

static void test_blocks(void **state)
{
    (void)state;
    static const struct {
        unsigned rank;
        int64_t shape[4];
        unsigned axes;
        struct {
            unsigned axis, blocks;
            uint64_t length;
        } axis[4];
    } known[] = {
        {0, {0}, 0, {{0}}},
        {1, {100}, 0, {{0}}},
        {1, {128}, 1, {{0, 2, 64}}},
        {2, {64, 1024}, 2, {{0, 16, 4}, {1, 16, 64}}},
        {2, {3, 1000}, 2, {{0, 3, 1}, {1, 15, 67}}},
        {2, {100000, 2}, 1, {{0, 16, 6250}}},
        {3, {0, 5, 5}, 0, {{0}}},
        {4, {8, 12, 128, 64}, 3, {{0, 8, 1}, {1, 12, 1}, {2, 16, 8}}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct sketch_frame frame;
        sketch_frame_init(&frame, SKETCH_VERSION, PLUMB_F32, known[i].rank, known[i].shape);
        assert_int_equal(frame.count, known[i].axes);
        for (unsigned k = 0; k < frame.count; k++) {
            assert_int_equal(frame.axis[k].axis, known[i].axis[k].axis);
            assert_int_equal(frame.axis[k].blocks, known[i].axis[k].blocks);
            assert_int_equal(frame.axis[k].length, known[i].axis[k].length);
        }
    }
    struct sketch_frame frame;
    sketch_frame_init(&frame, SKETCH_VERSION, PLUMB_C64, 1, (const int64_t[]){64});
    assert_true(frame.count == 1 && frame.axis[0].blocks == 2); /* 128 numbers */
}

/* -- Linear ------------------------------------------------------------------------------------ */

/* In parts, in another order, with numbers that cancel, large and tiny: not a bit changes. */
static void test_order_does_not_matter(void **state)
{
    (void)state;
    enum { COUNT = 5 * KEPT_CUT + 77 };
    uint64_t seed = 5;
    double *x = malloc(COUNT * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < COUNT; i++)
        x[i] = ldexp(bell(&seed), (int)random_below(&seed, 2000) - 1000);
    x[100000] = NAN;
    x[7] = 0x1.8p1023;
    x[200003] = -0x1.9p1023;
    x[200004] = INFINITY;
    struct plumb_tensor tensor = tensor_of(PLUMB_F64, 1, (const int64_t[]){COUNT}, x);
    const struct kernels kernels = kernels_current();
    struct kept_state whole, parts[3];
    assert_true(kept_begin(&whole, &tensor, KEPT_SKETCH | KEPT_HASH | KEPT_XOR));
    kept_tensor(&whole, &kernels, &tensor, 0, COUNT);
    for (int i = 0; i < 3; i++)
        assert_true(kept_begin(&parts[i], &tensor, KEPT_SKETCH | KEPT_HASH | KEPT_XOR));
    kept_tensor(&parts[2], &kernels, &tensor, (uint64_t)4 * KEPT_CUT, COUNT);
    kept_tensor(&parts[1], &kernels, &tensor, KEPT_CUT, (uint64_t)3 * KEPT_CUT);
    kept_tensor(&parts[2], &kernels, &tensor, 0, KEPT_CUT);
    kept_merge(&parts[0], &parts[2]);
    kept_merge(&parts[0], &parts[1]);
    struct plumb_sketch a, b;
    assert_true(sketch_finish(whole.sketch, &a) && sketch_finish(parts[0].sketch, &b));
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.exponent > 1022);
    assert_memory_equal(&whole.hash, &parts[0].hash, sizeof whole.hash);
    assert_true(whole.crc == parts[0].crc && whole.words == parts[0].words);
    for (int i = 0; i < 3; i++)
        kept_end(&parts[i]);
    kept_end(&whole);
    free(x);
}

/* Shards of a matrix, by rows, by columns and both: their sketches add up. */
static void test_parts_add_up(void **state)
{
    (void)state;
    enum { ROWS = 96, COLUMNS = 330 };
    static const struct {
        int64_t rows, columns;
    } cuts[] = {{ROWS, COLUMNS}, {24, COLUMNS}, {ROWS, 110}, {32, 33}};
    static float x[ROWS * COLUMNS], part[ROWS * COLUMNS];
    const int64_t shape[2] = {ROWS, COLUMNS};
    uint64_t seed = 8;
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)bell(&seed);
    struct plumb_tensor tensor = tensor_of(PLUMB_F32, 2, shape, x);
    struct plumb_sketch whole = sketch_of(&tensor);
    struct sketch_frame frame;
    sketch_frame_init(&frame, SKETCH_VERSION, PLUMB_F32, 2, shape);
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        const int64_t size[2] = {cuts[c].rows, cuts[c].columns};
        struct sketch_state *merged = sketch_new(&frame);
        struct plumb_sketch sum = {.version = SKETCH_VERSION}, all;
        bool first = true;
        for (int64_t r = 0; r < ROWS; r += size[0])
            for (int64_t k = 0; k < COLUMNS; k += size[1]) {
                for (int64_t i = 0; i < size[0]; i++)
                    memcpy(part + i * size[1], x + (r + i) * COLUMNS + k,
                           (size_t)size[1] * sizeof *x);
                struct plumb_tensor shard = tensor_of(PLUMB_F32, 2, size, part);
                struct sketch_state *one = sketch_new(&frame);
                struct plumb_sketch finished;
                const int64_t offset[2] = {r, k};
                assert_true(one && merged);
                assert_int_equal(sketch_part(one, &shard, shape, offset, NULL), PLUMB_OK);
                sketch_merge(merged, one);
                assert_true(sketch_finish(one, &finished));
                sketch_free(one);
                if (first)
                    sum = finished;
                else
                    assert_true(sketch_sum(&sum, &sum, &finished));
                first = false;
            }
        assert_true(sketch_finish(merged, &all));
        sketch_free(merged);
        assert_true(sketch_distance(&all, &whole, NAN).distance < 1e-7);
        assert_true(sketch_distance(&sum, &whole, NAN).distance < 3e-6);
        for (unsigned k = 0; k < whole.axes; k++)
            for (unsigned b = 0; b < whole.axis[k].blocks; b++)
                for (unsigned j = 0; j < PLUMB_SKETCH_FOLD; j++)
                    assert_true(fabsf(whole.axis[k].sum[b][j] - all.axis[k].sum[b][j]) < 1e-6f);
    }
    struct sketch_state *none = sketch_new(&frame);
    struct plumb_error err;
    assert_non_null(none);
    assert_int_equal(sketch_part(none, &tensor, shape, (const int64_t[]){1, 0}, &err), PLUMB_E_ARG);
    sketch_free(none);
}

/* -- Estimates --------------------------------------------------------------------------------- */

enum change { NOISE, SCALE, ONE_BLOCK, ONE_ELEMENT, PERMUTED, CHANGES };

static void change(double *x, size_t n, enum change how, uint64_t *seed)
{
    const size_t at = (size_t)random_below(seed, n), run = n / 16 + 1;
    for (size_t i = 0; i < n; i++) {
        const double other = x[(i + at + 1) % n];
        if (how == NOISE)
            x[i] += 0.05 * bell(seed);
        else if (how == SCALE)
            x[i] *= 1.25;
        else if (how == ONE_BLOCK && i >= at && i - at < run)
            x[i] += bell(seed);
        else if (how == ONE_ELEMENT && i == at)
            x[i] += 3;
        else if (how == PERMUTED && i % 2 == 0)
            x[i] = other;
    }
}

/* As a tensor of the type, with what the rounding to it leaves. */
static void round_to(enum plumb_dtype dtype, const double *x, size_t n, unsigned char *bytes,
                     double *rounded)
{
    const bool whole = plumb_dtype_info(dtype)->kind == PLUMB_KIND_INT;
    const double scale = dtype == PLUMB_I8 ? 20 : whole ? 1e6 : 1;
    for (size_t i = 0; i < n; i++)
        rounded[i] = x[i] * scale;
    plumb_from_f64(dtype, rounded, n, bytes);
    plumb_to_f64(dtype, bytes, 0, n, false, rounded);
}

/* 1,000 pairs of various types, sizes and kinds of difference: within three standard errors of the
 * true distance in at least 99 of 100, and their root mean square is what the formula says. */
static void test_stated_error(void **state)
{
    (void)state;
    enum { PAIRS = 1000, MOST = 40000 };
    static const enum plumb_dtype dtypes[] = {PLUMB_F32, PLUMB_BF16,      PLUMB_F16, PLUMB_F64,
                                              PLUMB_I8,  PLUMB_F8_E4M3FN, PLUMB_I64};
    static const size_t sizes[] = {300, 3000, 12345, MOST};
    uint64_t seed = 11;
    static double x[2][MOST], rounded[2][MOST];
    static unsigned char bytes[2][MOST * 8];
    double squares = 0;
    unsigned within = 0, compared = 0;
    for (unsigned pair = 0; pair < PAIRS; pair++) {
        const enum plumb_dtype dtype = dtypes[pair % (sizeof dtypes / sizeof *dtypes)];
        const size_t n = sizes[pair / 7 % (sizeof sizes / sizeof *sizes)];
        for (size_t i = 0; i < n; i++)
            x[0][i] = x[1][i] = bell(&seed);
        change(x[0], n, pair % CHANGES, &seed);
        struct plumb_sketch sketch[2];
        double distance = 0, norm = 0;
        for (int k = 0; k < 2; k++) {
            round_to(dtype, x[k], n, bytes[k], rounded[k]);
            struct plumb_tensor tensor =
                tensor_of(dtype, 2, (const int64_t[]){(int64_t)n / 5, 5}, bytes[k]);
            sketch[k] = sketch_of(&tensor);
        }
        for (size_t i = 0; i < n; i++) {
            distance += (rounded[0][i] - rounded[1][i]) * (rounded[0][i] - rounded[1][i]);
            norm += rounded[1][i] * rounded[1][i];
        }
        const double truth = sqrt(distance / norm);
        const struct sketch_estimate estimate = sketch_distance(&sketch[0], &sketch[1], sqrt(norm));
        const double got = estimate.distance;
        compared++;
        within += fabs(got - truth) <= 3 * estimate.error + 1e-7;
        squares += truth > 0 ? (got / truth - 1) * (got / truth - 1) : 0;
    }
    printf("# %u of %u within three standard errors; root mean square %.4f, stated %.4f\n", within,
           compared, sqrt(squares / PAIRS), SKETCH_ERROR);
    assert_true(within * 100 >= compared * 99);
    assert_true(sqrt(squares / PAIRS) < 1.1 * SKETCH_ERROR);
}

/* A column of a matrix whose rows are multiples of a group must not fall into few sums. */
static void test_columns(void **state)
{
    (void)state;
    enum { ROWS = 500, COLUMNS = 64, PAIRS = 60 };
    static float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    const int64_t shape[2] = {ROWS, COLUMNS};
    uint64_t seed = 17;
    double squares = 0;
    for (int pair = 0; pair < PAIRS; pair++) {
        double distance = 0;
        for (size_t i = 0; i < ROWS * COLUMNS; i++) {
            x[i] = y[i] = (float)bell(&seed);
            if (i % COLUMNS == (size_t)pair) {
                y[i] += (float)bell(&seed);
                distance += ((double)y[i] - (double)x[i]) * ((double)y[i] - (double)x[i]);
            }
        }
        struct plumb_tensor a = tensor_of(PLUMB_F32, 2, shape, x);
        struct plumb_tensor b = tensor_of(PLUMB_F32, 2, shape, y);
        struct plumb_sketch s = sketch_of(&a), t = sketch_of(&b);
        const double error = sketch_distance(&t, &s, sqrt(distance)).distance - 1;
        squares += error * error;
    }
    assert_true(sqrt(squares / PAIRS) < 1.3 * SKETCH_ERROR);
}

/* From far apart to nearly the same: the error that is stated is the one there is, and no distance
 * is lost in the rounding of sums. */
static void test_small_distances(void **state)
{
    (void)state;
    enum { COUNT = 20000, PAIRS = 40 };
    static double x[COUNT], y[COUNT];
    const int64_t shape[2] = {COUNT / 50, 50};
    uint64_t seed = 31;
    for (double size = 1; size > 3e-7; size /= 10) {
        double squares = 0, stated = 0;
        unsigned within = 0;
        for (int pair = 0; pair < PAIRS; pair++) {
            double distance = 0, norm = 0;
            for (size_t i = 0; i < COUNT; i++) {
                x[i] = bell(&seed);
                y[i] = x[i] + size * bell(&seed);
                distance += (y[i] - x[i]) * (y[i] - x[i]);
                norm += x[i] * x[i];
            }
            struct plumb_tensor a = tensor_of(PLUMB_F64, 2, shape, x);
            struct plumb_tensor b = tensor_of(PLUMB_F64, 2, shape, y);
            struct plumb_sketch s = sketch_of(&a), t = sketch_of(&b);
            const struct sketch_estimate estimate = sketch_distance(&t, &s, sqrt(norm));
            const double truth = sqrt(distance / norm), error = estimate.distance / truth - 1;
            within += fabs(estimate.distance - truth) <= 3 * estimate.error;
            assert_true(estimate.at_least < truth * 1.1);
            squares += error * error;
            stated = estimate.error / estimate.distance;
        }
        printf("# distance %.0e: stated %.4f, root mean square %.4f\n", size, stated,
               sqrt(squares / PAIRS));
        assert_true(within >= PAIRS - 1 && sqrt(squares / PAIRS) < 1.4 * stated);
        assert_true(fabs(stated - (size > 5e-3 ? SKETCH_ERROR : 2 * SKETCH_ERROR)) < 5e-3);
    }
}

/* Kept with fewer digits, a sketch is what it was before: as bytes, and when rounded again. Two
 * numbers that change places are seen unless they share sum and sign. */
static void test_rounding(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static float x[COUNT];
    const int64_t shape[2] = {COUNT / 60, 60};
    uint64_t seed = 37;
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < COUNT; i++)
            x[i] = (float)ldexp(bell(&seed), round - 100);
        if (round == 0)
            memset(x, 0, sizeof x);
        struct plumb_tensor a = tensor_of(PLUMB_F32, 2, shape, x);
        const struct plumb_sketch first = sketch_of(&a);
        struct plumb_sketch again = first;
        uint8_t bytes[SKETCH_MOST_BYTES];
        sketch_round(&again);
        assert_memory_equal(&again, &first, sizeof first);
        const size_t blocks = first.axis[0].blocks + first.axis[1].blocks;
        assert_int_equal(sketch_bytes(&first),
                         SKETCH_SUM_BYTES + (SKETCH_BLOCK_BYTES * blocks + 3) / 4 * 4);
        sketch_to_bytes(&first, bytes);
        memset(again.sum, 0, sizeof again.sum);
        memset(again.rest, 0, sizeof again.rest);
        for (unsigned k = 0; k < again.axes; k++)
            memset(again.axis[k].sum, 0, sizeof again.axis[k].sum);
        sketch_from_bytes(&again, bytes);
        assert_memory_equal(&again, &first, sizeof first);
    }
    struct plumb_tensor a = tensor_of(PLUMB_F32, 2, shape, x);
    const struct plumb_sketch before = sketch_of(&a);
    unsigned unseen = 0, wrong = 0;
    for (size_t i = 0; i < COUNT / 2; i++) {
        const float left = x[i], right = x[COUNT - 1 - i];
        x[i] = right;
        x[COUNT - 1 - i] = left;
        const struct plumb_sketch after = sketch_of(&a);
        const double got = sketch_distance(&after, &before, 1).distance;
        const double most = sqrt(2) * 2 * fabs((double)left - (double)right);
        unseen += got == 0;
        wrong += got > most;
        x[i] = left;
        x[COUNT - 1 - i] = right;
    }
    printf("# %u of %d exchanges unseen, one in 512 is expected\n", unseen, COUNT / 2);
    assert_true(unseen < 10 && wrong == 0);
}

static void test_scale(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static double x[COUNT], y[COUNT];
    uint64_t seed = 23;
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = bell(&seed);
        y[i] = 1.01 * x[i] + 0.001 * bell(&seed);
    }
    struct plumb_tensor a = tensor_of(PLUMB_F64, 1, (const int64_t[]){COUNT}, x);
    struct plumb_tensor b = tensor_of(PLUMB_F64, 1, (const int64_t[]){COUNT}, y);
    struct plumb_sketch s = sketch_of(&a), t = sketch_of(&b);
    struct sketch_scale scale = sketch_scale(&t, &s);
    assert_true(fabs(scale.factor - 1.01) < 4 * scale.error && scale.error < 2e-4);
    assert_true(scale.left > 0.05 && scale.left < 0.15);
    memset(x, 0, sizeof x);
    s = sketch_of(&a);
    assert_true(isnan(sketch_scale(&t, &s).factor));
    assert_true(isinf(sketch_distance(&t, &s, 0).distance) &&
                sketch_distance(&s, &s, 0).distance == 0);
}

static void test_where(void **state)
{
    (void)state;
    enum { ROWS = 160, COLUMNS = 1024 };
    static float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    const int64_t shape[2] = {ROWS, COLUMNS};
    uint64_t seed = 29;
    char text[120];
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)bell(&seed);
    struct plumb_tensor a = tensor_of(PLUMB_F32, 2, shape, x);
    struct plumb_tensor b = tensor_of(PLUMB_F32, 2, shape, y);
    struct plumb_sketch s = sketch_of(&a);

    memcpy(y, x, sizeof x);
    struct plumb_sketch t = sketch_of(&b);
    assert_string_equal(sketch_where(&t, &s, text, sizeof text), "");
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        y[i] = x[i] + (i % COLUMNS >= 192 && i % COLUMNS < 256 ? 1e-4f : 0);
    t = sketch_of(&b);
    assert_string_equal(sketch_where(&t, &s, text, sizeof text),
                        "axis 1: 192-255 (1 of 16 blocks)");
    unsigned told = 0;
    for (int round = 0; round < 200;
         round++) { /* everywhere, but so little that few sums show it */
        const double size = ldexp(1e-7, round % 14);
        for (size_t i = 0; i < ROWS * COLUMNS; i++)
            y[i] = x[i] + (float)(size * bell(&seed));
        t = sketch_of(&b);
        told += *sketch_where(&t, &s, text, sizeof text) != 0;
    }
    assert_true(told <= 1);
    for (size_t i = 0; i < ROWS * COLUMNS; i++) /* noise everywhere, much more of it in one place */
        y[i] = x[i] + (float)(1e-5 * bell(&seed)) + (i / COLUMNS < 20 ? (float)bell(&seed) : 0);
    t = sketch_of(&b);
    assert_string_equal(sketch_where(&t, &s, text, sizeof text), "axis 0: 0-19 (2 of 16 blocks)");
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        y[i] = x[i] + (float)(1e-3 * bell(&seed));
    t = sketch_of(&b);
    assert_string_equal(sketch_where(&t, &s, text, sizeof text), "");
    memcpy(y, x, sizeof x);
    y[159 * COLUMNS + 1023] += 1;
    t = sketch_of(&b);
    assert_string_equal(sketch_where(&t, &s, text, sizeof text),
                        "axis 0: 150-159 (1 of 16 blocks); axis 1: 960-1023 (1 of 16 blocks)");
    assert_int_equal(strlen(sketch_where(&t, &s, text, 10)), 9);
}

/* Noise of one size in an eighth of one axis, with none or a thousandth of it everywhere else; or
 * everywhere: how often (a part of) that is named, and how often anything else. */
enum fault { ALONE, AMONG_NOISE, EVERYWHERE, FAULTS };

static void plant(enum fault fault, unsigned axis, const int64_t shape[3], int64_t at, double size,
                  const float *x, float *y, uint64_t *seed)
{
    const int64_t n = shape[0] * shape[1] * shape[2];
    for (int64_t i = 0; i < n; i++) {
        const int64_t index[3] = {i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]};
        const bool inside = fault == EVERYWHERE || index[axis] / (shape[axis] / 8) == at;
        const double part = inside ? size : fault == AMONG_NOISE ? size / 1000 : 0;
        y[i] = part > 0 ? (float)((double)x[i] + part * bell(seed)) : x[i];
    }
}

static void test_planted_blocks(void **state)
{
    (void)state;
    enum { ROUNDS = 20, MOST = 64 * 512 };
    static const int64_t shapes[][3] = {{1, 64, 512}, {16, 32, 64}, {1, 1, 8192}};
    static const char *const names[FAULTS] = {"alone", "among noise", "everywhere"};
    static float x[MOST], y[MOST];
    uint64_t seed = 41;
    for (int fault = 0; fault < FAULTS; fault++)
        for (int digits = 0; digits < 6; digits++) {
            unsigned planted = 0, found = 0, wrong = 0;
            for (int round = 0; round < ROUNDS * 6; round++) {
                const int64_t *shape = shapes[round % 3], at = (int64_t)random_below(&seed, 8);
                unsigned axis = (unsigned)random_below(&seed, 3);
                while (shape[axis] < 16 || (axis == 2 && shape[2] < 128))
                    axis = (axis + 1) % 3;
                for (int64_t i = 0; i < shape[0] * shape[1] * shape[2]; i++)
                    x[i] = (float)bell(&seed);
                plant((enum fault)fault, axis, shape, at, pow(10, -digits), x, y, &seed);
                struct plumb_tensor a = tensor_of(PLUMB_F32, 3, shape, x);
                struct plumb_tensor b = tensor_of(PLUMB_F32, 3, shape, y);
                const struct plumb_sketch s = sketch_of(&a), t = sketch_of(&b);
                const long long size = shape[axis] / 8, from = at * size;
                long long first = -1, last = -1;
                unsigned named = 3;
                char text[120];
                sketch_where(&t, &s, text, sizeof text);
                sscanf(text, "axis %u: %lld-%lld", &named, &first, &last);
                const bool right = fault != EVERYWHERE && named == axis && first >= from &&
                                   last < from + size && !strpbrk(text, ";,");
                planted++;
                found += right;
                wrong += *text && !right;
            }
            printf("# %s, size 1e-%d: %u of %u found, %u wrong\n", names[fault], digits, found,
                   planted, wrong);
            assert_true(wrong == 0);
            assert_true(fault == EVERYWHERE || digits > 4 || found * 100 >= planted * 95);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_and_signs),
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_parts_add_up),
        cmocka_unit_test(test_stated_error),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_small_distances),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_planted_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
