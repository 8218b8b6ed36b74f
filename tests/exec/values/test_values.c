#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/values/parts.h"
#include "exec/values/values.h"
#include "msprobe/profile.h"
#include "plumb/write.h"
#include "random.h"
#include "scratch.h"

#include <math.h>
#include <string.h>

/* A call of one tensor argument, or two. */
struct fixture {
    struct arena arena;
    struct plumb_error err;
    struct generate_options options;
    struct case_tensor info[2];
    int64_t shape[4];
    struct case_arg args[2];
    struct case_kwarg kwargs[2];
    struct check_case from;
    struct plumb_call call;
};

static struct case_limit as_int(int64_t value)
{
    return (struct case_limit){LIMIT_INT, value, (double)value};
}

static struct case_limit as_float(double value)
{
    return (struct case_limit){LIMIT_FLOAT, 0, value};
}

static void set_up(struct fixture *f, const char *api, enum plumb_dtype dtype, int64_t rows,
                   int64_t columns)
{
    *f = (struct fixture){.shape = {rows, columns}};
    f->from = (struct check_case){.name = "Torch.some.3",
                                  .prefix = "Torch",
                                  .api = api,
                                  .args = f->args,
                                  .n_args = 1,
                                  .kwargs = f->kwargs};
    for (int i = 0; i < 2; i++) {
        f->info[i] = (struct case_tensor){
            .dtype = dtype, .dtype_name = "some", .rank = 2, .shape = f->shape};
        f->args[i] = (struct case_arg){.value = {.kind = PLUMB_ARG_TENSOR}, .tensor = &f->info[i]};
    }
}

static enum plumb_code run(struct fixture *f)
{
    return generate_call(&f->from, &f->options, &f->arena, &f->call, &f->err);
}

static const struct plumb_tensor *made(struct fixture *f)
{
    if (run(f))
        fail_msg("%s", f->err.message);
    return f->call.args[0].tensor;
}

static void tear_down(struct fixture *f)
{
    arena_free(&f->arena);
}

static double element(const struct plumb_tensor *t, uint64_t at)
{
    double numbers[2];
    plumb_tensor_to_f64(t, at, 1, numbers);
    return plumb_dtype_parts(t->dtype) == 2 ? hypot(numbers[0], numbers[1]) : numbers[0];
}

/* ---- Generators ------------------------------------------------------------------------------ */

static void twister_gives_the_published_numbers(void **state)
{
    (void)state;
    struct mt19937 mt;
    mt19937_init(&mt, 5489);
    assert_int_equal(mt19937_next(&mt), 3499211612u);
    for (int i = 0; i < 9998; i++)
        mt19937_next(&mt);
    assert_int_equal(mt19937_next(&mt), 4123659995u); /* the 10000th, as C++11 demands */
}

static void keys_differ_by_everything(void **state)
{
    (void)state;
    uint64_t key = value_key(1, "Torch.cat.0", "forward.input.0");
    assert_int_equal(key, value_key(1, "Torch.cat.0", "forward.input.0"));
    assert_int_not_equal(key, value_key(2, "Torch.cat.0", "forward.input.0"));
    assert_int_not_equal(key, value_key(1, "Torch.cat.1", "forward.input.0"));
    assert_int_not_equal(key, value_key(1, "Torch.cat.0", "forward.input.0.0"));
    assert_int_not_equal(key, value_key(1, "Torch.cat.0", "backward.input.0"));
}

static void draws_come_from_the_chosen_generator(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "dropout", PLUMB_F32, 0, 0);
    made(&f);
    uint32_t first = f.call.draws->next(f.call.draws->state);
    assert_int_not_equal(first, f.call.draws->next(f.call.draws->state));
    made(&f);
    assert_int_equal(first, f.call.draws->next(f.call.draws->state));

    struct mt19937 mine, same;
    mt19937_init(&mine, 1234);
    mt19937_init(&same, 1234);
    f.options.mt = &mine;
    f.options.rng = &msprobe_values;
    made(&f);
    assert_int_equal(f.call.draws->next(f.call.draws->state), mt19937_next(&same));
    tear_down(&f);
}

/* ---- Storing --------------------------------------------------------------------------------- */

static void stores_round_to_nearest_even(void **state)
{
    (void)state;
    static const enum plumb_dtype types[] = {PLUMB_F16,         PLUMB_BF16,    PLUMB_F32,
                                             PLUMB_F8_E4M3FN,   PLUMB_F8_E5M2, PLUMB_F8_E4M3FNUZ,
                                             PLUMB_F8_E5M2FNUZ, PLUMB_F4_E2M1};
    uint64_t seed = 1;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const struct plumb_dtype_info *info = plumb_dtype_info(types[t]);
        struct encoder e;
        encoder_init(&e, types[t]);
        for (int i = 0; i < 20000; i++) {
            int exponent = (int)random_below(&seed, (uint64_t)(2 * -info->emin + 6));
            double x = ldexp(random_unit(&seed), info->emin - info->precision + exponent);
            x = (double)(float)x;
            if (i % 4 == 0) /* a tie */
                x = plumb_round_to(types[t], x) +
                    ldexp(1, info->emin - info->precision - 1 + exponent / 2);
            if (fabs(x) > info->max_finite)
                continue;
            uint8_t bytes[8] = {0};
            double back, want = plumb_round_to(types[t], (double)(float)x);
            encoder_put_one(&e, bytes, 0, x);
            plumb_to_f64(types[t], bytes, 0, 1, false, &back);
            if (isinf(want) || isnan(want))
                continue; /* 8-bit types keep the largest value here */
            if (back != want)
                fail_msg("%s: %a is stored as %a, not %a", info->name, x, back, want);
        }
    }
}

static void stores_specials(void **state)
{
    (void)state;
    static const double specials[] = {INFINITY, -INFINITY, NAN, -0.0, 65519.99, 65520, 0x1p-25};
    static const uint16_t want[] = {0x7C00, 0xFC00, 0x7E00, 0x8000, 0x7BFF, 0x7C00, 0};
    struct encoder e;
    encoder_init(&e, PLUMB_F16);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        uint16_t code;
        encoder_put_one(&e, &code, 0, specials[i]);
        assert_int_equal(code, want[i]);
    }
}

static void nibbles_keep_their_neighbours(void **state)
{
    (void)state;
    uint8_t bytes[2] = {0xFF, 0xFF};
    uint64_t value = 3;
    values_put_ints(PLUMB_I4, bytes, 1, 1, &value);
    values_put_ints(PLUMB_I4, bytes, 2, 1, &value);
    assert_int_equal(bytes[0], 0x3F);
    assert_int_equal(bytes[1], 0xF3);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static void values_stay_between_the_limits(void **state)
{
    (void)state;
    static const double limits[][2] = {
        {-1, 1},    {0, 1},     {-3.3, 3.3},     {0, 0},     {2, 2},
        {1e-3, 7},  {-6, -0.5}, {-100, 5},       {0.1, 0.3}, {-1e30, 1e30},
        {0, 1e-40}, {1e4, 1e5}, {-1e308, 1e308}, {0.1, 0.1}, {3, 5},
    };
    unsigned made_some = 0;
    for (int kind = 0; kind < 3; kind++)
        for (int type = 0; type < PLUMB_DTYPE_COUNT; type++)
            for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
                struct fixture f;
                set_up(&f, "index_select", (enum plumb_dtype)type, 37, 29);
                f.options.inputs = (enum input_kind)kind;
                double lo = limits[l][0], hi = limits[l][1];
                f.info[0].min = as_float(lo);
                f.info[0].max = as_float(hi);
                struct value_limits exact;
                if (values_limits(&f.info[0], f.info[0].dtype, &exact, &f.err)) {
                    assert_int_not_equal(run(&f), PLUMB_OK); /* the type has no such values */
                    tear_down(&f);
                    continue;
                }
                made_some++;
                const struct plumb_tensor *t = made(&f);
                enum plumb_kind of = plumb_dtype_info(t->dtype)->kind;
                bool is_float = of == PLUMB_KIND_FLOAT || of == PLUMB_KIND_COMPLEX;
                /* Where the type has nothing between them, its nearest values. */
                bool nothing = is_float && (lo == hi || t->dtype == PLUMB_F4_E2M1);
                double low = nothing && exact.lo < lo ? exact.lo : lo;
                double high = nothing && exact.hi > hi ? exact.hi : hi;
                for (uint64_t i = 0; i < t->count; i++) {
                    double x = element(t, i);
                    if (!(x >= low && x <= high))
                        fail_msg("%s, inputs %d: element %llu is %.17g, not in [%.17g, %.17g]",
                                 plumb_dtype_info(t->dtype)->name, kind, (unsigned long long)i, x,
                                 low, high);
                }
                if (is_float) {
                    assert_true(element(t, 0) == exact.lo);
                    assert_true(element(t, t->count - 1) == exact.hi);
                }
                tear_down(&f);
            }
    assert_true(made_some > 500);
}

static void limits_are_rounded_inwards(void **state)
{
    (void)state;
    static const struct {
        enum plumb_dtype dtype;
        double lo, hi, want_lo, want_hi;
    } cases[] = {
        {PLUMB_F16, 0.1, 3.3, 0x1.99cp-4, 0x1.a64p1},
        {PLUMB_F16, -3.3, -0.1, -0x1.a64p1, -0x1.99cp-4},
        {PLUMB_BF16, 1e-3, 1.001, 0x1.08p-10, 1},
        {PLUMB_F32, 0.1, 0.1, 0x1.99999ap-4, 0x1.99999ap-4}, /* nearest: there is none inside */
        {PLUMB_F16, 1e-9, 1, 0x1p-24, 1},
        {PLUMB_F16, -1, -1e-9, -1, -0x1p-24},
        {PLUMB_F16, -1e9, 1e9, -65504, 65504},
        {PLUMB_F8_E4M3FN, 0.3, 500, 0.3125, 448},
        {PLUMB_F8_E8M0, -5, 5, 0x1p-127, 4},
        {PLUMB_F64, 0.1, 0.7, 0.1, 0.7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct case_tensor info = {.min = as_float(cases[i].lo), .max = as_float(cases[i].hi)};
        struct value_limits limits;
        assert_int_equal(values_limits(&info, cases[i].dtype, &limits, NULL), PLUMB_OK);
        if (limits.lo != cases[i].want_lo || limits.hi != cases[i].want_hi)
            fail_msg("case %zu: [%a, %a]", i, limits.lo, limits.hi);
    }
}

static void integers_reach_both_ends_of_any_range(void **state)
{
    (void)state;
    static const struct {
        enum plumb_dtype dtype;
        int64_t lo, hi;
        bool middle; /* no small range: values between the ends must appear */
    } cases[] = {
        {PLUMB_I64, INT64_MIN, INT64_MAX, true},
        {PLUMB_I64, -5000000000, 5000000000, true},
        {PLUMB_I64, 7, 7, false},
        {PLUMB_I32, INT32_MIN, INT32_MAX, true},
        {PLUMB_I8, -128, 127, true},
        {PLUMB_U8, 0, 255, true},
        {PLUMB_U16, 0, 65535, true},
        {PLUMB_U32, 0, UINT32_MAX, true},
        {PLUMB_I16, -3, 3, false},
        {PLUMB_I4, -8, 7, true},
    };
    for (int kind = 0; kind < 3; kind++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            struct fixture f;
            set_up(&f, "index_select", cases[c].dtype, 50, 41);
            f.options.inputs = (enum input_kind)kind;
            f.info[0].min = as_int(cases[c].lo);
            f.info[0].max = as_int(cases[c].hi);
            const struct plumb_tensor *t = made(&f);
            double lo = (double)cases[c].lo, hi = (double)cases[c].hi;
            bool middle = false;
            for (uint64_t i = 0; i < t->count; i++) {
                double x = element(t, i);
                assert_true(x >= lo && x <= hi);
                middle |= x > lo + (hi - lo) / 4 && x < hi - (hi - lo) / 4;
            }
            assert_true(element(t, 0) == lo);
            assert_true(element(t, t->count - 1) == hi);
            assert_true(middle || !cases[c].middle);
            tear_down(&f);
        }
}

static void uint64_is_not_cut_at_int64(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "add", PLUMB_U64, 40, 40);
    f.info[0].min = as_int(0);
    f.info[0].max = (struct case_limit){LIMIT_INT, INT64_MAX, 0x1p64};
    const uint64_t *x = made(&f)->data;
    assert_true(x[1599] == UINT64_MAX);
    unsigned upper = 0;
    for (int i = 0; i < 1600; i++)
        upper += x[i] >> 63 ? 1 : 0;
    assert_true(upper >= 700 && upper <= 900);
    tear_down(&f);
}

static void limits_beyond_the_type_are_cut_or_refused(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "add", PLUMB_I8, 5, 5);
    f.info[0].min = as_int(-1000);
    f.info[0].max = as_int(3);
    assert_true(element(made(&f), 0) == -128);
    f.info[0].min = as_int(200);
    f.info[0].max = as_int(300);
    assert_int_equal(run(&f), PLUMB_E_FORMAT);
    assert_non_null(strstr(f.err.message, "forward.input.0: "));
    assert_non_null(strstr(f.err.message, "int8"));
    tear_down(&f);
}

static void odd_limits_are_refused(void **state)
{
    (void)state;
    static const struct case_limit bad[][2] = {
        {{LIMIT_OTHER, 0, 0}, {LIMIT_INT, 1, 1}},
        {{LIMIT_INT, 5, 5}, {LIMIT_INT, 3, 3}},
        {{LIMIT_FLOAT, 0, NAN}, {LIMIT_INT, 3, 3}},
        {{LIMIT_FLOAT, 0, -INFINITY}, {LIMIT_INT, 3, 3}},
        {{LIMIT_FLOAT, 0, 0.2}, {LIMIT_FLOAT, 0, 0.7}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int msprobe = 0; msprobe < 2; msprobe++) {
            struct fixture f;
            set_up(&f, "add", PLUMB_I32, 5, 5);
            f.options.profile = msprobe ? &msprobe_values : NULL;
            f.info[0].min = bad[i][0];
            f.info[0].max = bad[i][1];
            if (msprobe && i == 4) /* cut to 0 and 0 there */
                made(&f);
            else
                assert_int_equal(run(&f), PLUMB_E_FORMAT);
            tear_down(&f);
        }
}

static void missing_limits_have_a_default(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "add", PLUMB_F32, 30, 30);
    const struct plumb_tensor *t = made(&f);
    assert_true(element(t, 0) == -1 && element(t, 899) == 1);
    f.info[0].dtype = PLUMB_I32;
    f.info[0].min.kind = f.info[0].max.kind = LIMIT_NULL;
    t = made(&f);
    assert_true(element(t, 0) == 0 && element(t, 899) == 1);
    f.info[0].dtype = PLUMB_BOOL;
    t = made(&f);
    double sum = 0;
    for (uint64_t i = 0; i < t->count; i++)
        sum += element(t, i);
    assert_true(sum > 300 && sum < 600);
    f.options.profile = &msprobe_values;
    assert_int_equal(run(&f), PLUMB_E_FORMAT);
    f.shape[1] = 0; /* an empty tensor has none and needs none */
    assert_int_equal(made(&f)->count, 0);
    tear_down(&f);
}

static void recorded_nan_and_infinity_are_planted(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "masked_fill", PLUMB_F16, 4, 8);
    f.info[0].min = as_float(-INFINITY);
    f.info[0].max = as_float(0);
    const struct plumb_tensor *t = made(&f);
    assert_true(isinf(element(t, 0)) && element(t, 31) == 0);
    for (uint64_t i = 1; i < 31; i++)
        assert_true(element(t, i) >= -1 && element(t, i) <= 0);
    f.info[0].min = f.info[0].max = as_float(NAN);
    f.info[0].min_finite = as_float(2);
    f.info[0].max_finite = as_float(3);
    t = made(&f);
    assert_true(element(t, 0) == 2 && isnan(element(t, 1)) && element(t, 31) == 3);
    f.info[0].min_finite.kind = f.info[0].max_finite.kind = LIMIT_NULL;
    f.info[0].min = f.info[0].max = as_float(-INFINITY);
    t = made(&f);
    for (uint64_t i = 0; i < 32; i++)
        assert_true(element(t, i) == (double)-INFINITY);
    tear_down(&f);
}

/* ---- Distributions --------------------------------------------------------------------------- */

static void distribution(enum input_kind inputs, double *mean, double *deviation)
{
    struct fixture f;
    set_up(&f, "add", PLUMB_F32, 300, 300);
    f.options.inputs = inputs;
    f.info[0].min = as_float(-6);
    f.info[0].max = as_float(6);
    const struct plumb_tensor *t = made(&f);
    double sum = 0, squares = 0, n = (double)t->count;
    for (uint64_t i = 0; i < t->count; i++) {
        sum += element(t, i);
        squares += element(t, i) * element(t, i);
    }
    *mean = sum / n;
    *deviation = sqrt(squares / n - *mean * *mean);
    tear_down(&f);
}

static void uniform_and_normal_are_what_they_say(void **state)
{
    (void)state;
    double mean, deviation;
    distribution(INPUTS_UNIFORM, &mean, &deviation);
    assert_true(fabs(mean) < 0.05);
    assert_true(fabs(deviation - 12 / sqrt(12)) < 0.05);
    distribution(INPUTS_NORMAL, &mean, &deviation);
    assert_true(fabs(mean) < 0.03);
    assert_true(fabs(deviation - 2) < 0.05);
}

static void complex_points_every_way(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "add", PLUMB_C64, 40, 40);
    f.info[0].min = as_float(1);
    f.info[0].max = as_float(2);
    const struct plumb_tensor *t = made(&f);
    unsigned quadrants[4] = {0};
    for (uint64_t i = 0; i < t->count; i++) {
        double z[2];
        plumb_tensor_to_f64(t, i, 1, z);
        quadrants[(z[0] < 0 ? 1 : 0) + (z[1] < 0 ? 2 : 0)]++;
    }
    for (int i = 0; i < 4; i++)
        assert_true(quadrants[i] >= 300 && quadrants[i] <= 500);
    f.options.profile = &msprobe_values;
    assert_int_equal(run(&f), PLUMB_E_UNSUPPORTED);
    tear_down(&f);
}

static void adversarial_has_what_it_promises(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "softmax", PLUMB_F32, 64, 64);
    f.options.inputs = INPUTS_ADVERSARIAL;
    f.info[0].min = as_float(-5);
    f.info[0].max = as_float(9);
    const float *x = made(&f)->data;
    unsigned cancelling = 0, subnormal = 0, minus_zero = 0, halves = 0, wide = 0, repeated = 0;
    unsigned special = 0, rows_that_cancel = 0;
    for (int i = 0; i < 4096; i += 2) {
        double a = (double)x[i], b = (double)x[i + 1];
        cancelling += a != 0 && fabs(a + b) < 1e-5 * fabs(a);
        repeated += x[i] == x[i + 1] && a != 0 && a != -5 && a != 9;
    }
    for (int row = 0; row < 64; row++) {
        double sum = 0, size = 0;
        for (int i = 0; i < 64; i++) {
            sum += (double)x[row * 64 + i];
            size += fabs((double)x[row * 64 + i]);
        }
        rows_that_cancel += size > 1 && fabs(sum) < 1e-5 * size;
    }
    for (int i = 0; i < 4096; i++) {
        special += !isfinite(x[i]) || x[i] > 9 || x[i] < -5;
        subnormal += x[i] != 0 && fabsf(x[i]) < 0x1p-126f;
        minus_zero += x[i] == 0 && signbit(x[i]);
        halves += fabsf(x[i] - truncf(x[i])) == 0.5f;
        wide += fabsf(x[i]) < 1e-6f && fabsf(x[i]) > 1e-20f;
    }
    assert_true(cancelling > 100 && rows_that_cancel > 0);
    assert_true(subnormal > 100 && minus_zero > 50 && halves > 100 && wide > 100 && repeated > 50);
    assert_int_equal(special, 0);

    f.from.api = "__add__"; /* defined for everything */
    x = made(&f)->data;
    unsigned nan = 0, infinite = 0, largest = 0;
    for (int i = 0; i < 4096; i++) {
        nan += isnan(x[i]) ? 1 : 0;
        infinite += isinf(x[i]) ? 1 : 0;
        largest += fabsf(x[i]) == 0x1.fffffep127f;
    }
    assert_true(nan && infinite && largest);
    tear_down(&f);
}

/* ---- Rules of operators ---------------------------------------------------------------------- */

static void absurd_tensors_are_refused_before_they_exist(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "add", PLUMB_F32, (int64_t)1 << 40, (int64_t)1 << 40);
    assert_int_equal(run(&f), PLUMB_E_FORMAT);
    f.shape[1] = 1;
    assert_int_equal(run(&f), PLUMB_E_NOMEM);
    assert_non_null(strstr(f.err.message, "memory"));
    f.shape[0] = -1;
    assert_int_equal(run(&f), PLUMB_E_FORMAT);
    f.shape[0] = 2;
    f.info[0].dtype = PLUMB_DTYPE_COUNT;
    f.info[0].dtype_name = "torch.strange";
    assert_int_equal(run(&f), PLUMB_E_UNSUPPORTED);
    assert_non_null(strstr(f.err.message, "torch.strange"));
    tear_down(&f);
}

static void gradients_are_wanted_where_they_can_be(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "add", PLUMB_F32, 2, 2);
    f.info[0].requires_grad = f.info[1].requires_grad = true;
    f.info[1].dtype = PLUMB_I32;
    f.from.n_args = 2;
    made(&f);
    assert_true(f.call.args[0].requires_grad);
    assert_false(f.call.args[1].requires_grad);
    f.from.n_kwargs = 1;
    f.kwargs[0] = (struct case_kwarg){"out", f.args[0]};
    made(&f);
    assert_false(f.call.args[0].requires_grad);
    tear_down(&f);
}

static void gradients_are_those_of_the_entry(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "add", PLUMB_F32, 2, 2);
    const struct plumb_tensor *const *grads;
    size_t n;
    assert_int_equal(generate_grads(&f.from, &f.options, &f.arena, &grads, &n, &f.err), PLUMB_OK);
    assert_int_equal(n, 0);
    f.from.grads = f.args;
    f.from.n_grads = 2;
    assert_int_equal(generate_grads(&f.from, &f.options, &f.arena, &grads, &n, &f.err), PLUMB_OK);
    assert_int_equal(n, 2);
    assert_int_equal(grads[0]->count, 4);
    assert_memory_not_equal(grads[0]->data, made(&f)->data, 16); /* of another position */
    f.args[0] = (struct case_arg){.value = {.kind = PLUMB_ARG_NONE}};
    assert_int_equal(generate_grads(&f.from, &f.options, &f.arena, &grads, &n, &f.err), PLUMB_OK);
    assert_null(grads[0]);
    tear_down(&f);
}

static void conv_is_rounded_for_msprobe_only(void **state)
{
    (void)state;
    for (int msprobe = 0; msprobe < 2; msprobe++) {
        struct fixture f;
        set_up(&f, "conv2d", PLUMB_F32, 10, 10);
        f.options.profile = msprobe ? &msprobe_values : NULL;
        f.info[0].min = as_float(-1.3);
        f.info[0].max = as_float(1.1);
        const uint32_t *bits = made(&f)->data;
        uint32_t low = 0;
        for (int i = 0; i < 100; i++)
            low |= bits[i] & 0xFFF;
        assert_int_equal(low == 0, msprobe);
        tear_down(&f);
    }
}

static void classes_and_histograms_change_type(void **state)
{
    (void)state;
    for (int msprobe = 0; msprobe < 2; msprobe++) {
        struct fixture f;
        set_up(&f, "cross_entropy", PLUMB_I32, 10, 10);
        f.options.profile = msprobe ? &msprobe_values : NULL;
        f.from.n_args = 2;
        f.info[0].dtype = PLUMB_F32;
        f.info[0].min = f.info[1].min = as_int(-100);
        f.info[0].max = f.info[1].max = as_int(5);
        made(&f);
        const struct plumb_tensor *classes = f.call.args[1].tensor;
        assert_int_equal(classes->dtype, PLUMB_I64);
        for (uint64_t i = 0; i < classes->count; i++)
            assert_true(element(classes, i) >= 0 && element(classes, i) <= 5);
        assert_true(element(f.call.args[0].tensor, 0) == -100);
        f.from.api = "histc";
        f.info[0].dtype = PLUMB_I8;
        f.info[1].dtype = PLUMB_I64;
        made(&f);
        assert_int_equal(f.call.args[0].tensor->dtype, PLUMB_F32);
        assert_int_equal(f.call.args[1].tensor->dtype, PLUMB_F32);
        tear_down(&f);
    }
}

static void compressed_attention_mask_is_causal(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "npu_fusion_attention", PLUMB_BOOL, 2048, 2048);
    f.from.n_args = 0;
    f.from.n_kwargs = 2;
    f.kwargs[0] = (struct case_kwarg){"atten_mask", f.args[0]};
    f.kwargs[1] =
        (struct case_kwarg){"sparse_mode", {.value = {.kind = PLUMB_ARG_INT, .integer = 3}}};
    assert_int_equal(run(&f), PLUMB_OK);
    const uint8_t *mask = f.call.kwargs[0].value.tensor->data;
    for (int i = 0; i < 2048; i += 89)
        for (int j = 0; j < 2048; j++)
            assert_int_equal(mask[i * 2048 + j], j > i);
    f.kwargs[1].value.value.integer = 1; /* an ordinary mask */
    assert_int_equal(run(&f), PLUMB_OK);
    mask = f.call.kwargs[0].value.tensor->data;
    unsigned below = 0;
    for (int i = 0; i < 2048; i++)
        below += mask[2047 * 2048 + i];
    assert_true(below > 500);
    tear_down(&f);
}

static void odd_arguments_stop_a_call_for_msprobe_only(void **state)
{
    (void)state;
    const struct case_arg odd[] = {
        {.value = {.kind = PLUMB_ARG_OTHER}},
        {.value = {.kind = PLUMB_ARG_INT, .integer = 4}, .bare = true},
        {.value = {.kind = PLUMB_ARG_OTHER, .text = "numpy.ndarray"}, .numpy = true},
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct fixture f;
        set_up(&f, "add", PLUMB_F32, 2, 2);
        f.args[0] = odd[i];
        assert_int_equal(run(&f), PLUMB_OK);
        assert_int_equal(f.call.args[0].kind, odd[i].value.kind);
        f.options.profile = &msprobe_values;
        assert_int_equal(run(&f), PLUMB_E_UNSUPPORTED);
        assert_non_null(strstr(f.err.message, "forward.input.0: "));
        tear_down(&f);
    }
}

static void lists_keep_their_shape(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, "cat", PLUMB_F32, 3, 3);
    struct case_arg inner[2] = {f.args[0], {.value = {.kind = PLUMB_ARG_NONE}}};
    struct case_arg list = {.value = {.kind = PLUMB_ARG_LIST}, .items = inner, .n_items = 2};
    f.args[0] = list;
    assert_int_equal(run(&f), PLUMB_OK);
    assert_int_equal(f.call.args[0].kind, PLUMB_ARG_LIST);
    assert_int_equal(f.call.args[0].n_items, 2);
    assert_int_equal(f.call.args[0].items[0].kind, PLUMB_ARG_TENSOR);
    assert_int_equal(f.call.args[0].items[1].kind, PLUMB_ARG_NONE);
    f.from.n_args = 0;
    f.from.n_kwargs = 1;
    f.kwargs[0] = (struct case_kwarg){"tensors", list};
    inner[0].tensor = &f.info[0];
    f.info[0].requires_grad = true;
    assert_int_equal(run(&f), PLUMB_OK);
    assert_true(f.call.kwargs[0].value.items[0].requires_grad);
    f.options.profile = &msprobe_values; /* a null in the list of a keyword */
    f.info[0].min = f.info[0].max = as_int(1);
    assert_int_equal(run(&f), PLUMB_E_UNSUPPORTED);
    f.kwargs[0].value.n_items = 1;
    assert_int_equal(run(&f), PLUMB_OK);
    assert_false(f.call.kwargs[0].value.items[0].requires_grad);
    tear_down(&f);
}

static void twister_refuses_other_inputs(void **state)
{
    (void)state;
    struct fixture f;
    struct mt19937 mt;
    mt19937_init(&mt, 1);
    set_up(&f, "add", PLUMB_F32, 2, 2);
    f.options.mt = &mt;
    f.options.rng = &msprobe_values;
    f.options.inputs = INPUTS_NORMAL;
    assert_int_equal(run(&f), PLUMB_E_ARG);
    tear_down(&f);
}

/* ---- Real data ------------------------------------------------------------------------------- */

static void write_npy(struct scratch *scratch, const char *name, enum plumb_dtype dtype,
                      const int64_t *shape, const void *data)
{
    struct plumb_tensor t;
    struct plumb_error err;
    assert_int_equal(plumb_tensor_init(&t, dtype, 2, shape, &err), PLUMB_OK);
    t.data = data;
    assert_int_equal(plumb_npy_write(scratch_path(scratch, name), &t, &err), PLUMB_OK);
}

static void data_files_are_read(void **state)
{
    (void)state;
    static const int64_t shape[2] = {2, 2}, numbers[4] = {1, 2, 3, 1 << 20};
    struct scratch scratch;
    scratch_make(&scratch);
    write_npy(&scratch, "a.npy", PLUMB_I64, shape, numbers);
    struct fixture f;
    set_up(&f, "add", PLUMB_I64, 2, 2);
    f.options.data_dir = scratch.folder;
    f.info[0].data_name = "a.npy";
    assert_memory_equal(made(&f)->data, numbers, sizeof numbers);
    f.from.api = "histc";
    assert_int_equal(made(&f)->dtype, PLUMB_F32);
    assert_true(element(f.call.args[0].tensor, 3) == 1 << 20);
    f.from.api = "add";
    f.shape[0] = 4;
    assert_int_equal(run(&f), PLUMB_E_FORMAT); /* another shape than recorded */
    f.options.profile = &msprobe_values;
    assert_int_equal(made(&f)->count, 4);
    f.options.data_dir = NULL;
    assert_int_equal(run(&f), PLUMB_E_FORMAT);
    tear_down(&f);
    scratch_remove(&scratch);
}

static void big_endian_files_are_turned(void **state)
{
    (void)state;
    static const char head[] = "{'descr': '>f4', 'fortran_order': False, 'shape': (1, 2), }";
    uint8_t bytes[128 + 8];
    memset(bytes, ' ', 128);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, head, sizeof head - 1);
    bytes[127] = '\n';
    memcpy(bytes + 128, "\x3F\x80\x00\x00\x40\x00\x00\x00", 8);
    struct scratch scratch;
    scratch_make(&scratch);
    scratch_write(&scratch, "b.npy", bytes, sizeof bytes);
    struct fixture f;
    set_up(&f, "add", PLUMB_F32, 1, 2);
    f.options.data_dir = scratch.folder;
    f.info[0].data_name = "b.npy";
    const float *x = made(&f)->data;
    assert_true(x[0] == 1 && x[1] == 2);
    tear_down(&f);
    scratch_remove(&scratch);
}

static void names_do_not_leave_the_folder(void **state)
{
    (void)state;
    static const int64_t shape[2] = {1, 1};
    static const float one = 1;
    struct scratch outer;
    scratch_make(&outer);
    write_npy(&outer, "secret.npy", PLUMB_F32, shape, &one);
    char folder[300], link[320];
    snprintf(folder, sizeof folder, "%s/dump_tensor_data", outer.folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(link, sizeof link, "%s/link.npy", folder);
    assert_int_equal(symlink("../secret.npy", link), 0);
    static const struct {
        const char *name;
        enum plumb_code code;
    } names[] = {
        {"../secret.npy", PLUMB_E_FORMAT},    {"link.npy", PLUMB_E_FORMAT},
        {"/etc/passwd", PLUMB_E_UNSUPPORTED}, {"", PLUMB_E_UNSUPPORTED},
        {"missing.npy", PLUMB_E_IO},          {"a/../../secret.npy", PLUMB_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fixture f;
        set_up(&f, "add", PLUMB_F32, 1, 1);
        f.options.data_dir = folder;
        f.info[0].data_name = names[i].name;
        assert_int_equal(run(&f), names[i].code);
        assert_non_null(strstr(f.err.message, "forward.input.0: "));
        tear_down(&f);
    }
    scratch_remove(&outer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twister_gives_the_published_numbers),
        cmocka_unit_test(keys_differ_by_everything),
        cmocka_unit_test(draws_come_from_the_chosen_generator),
        cmocka_unit_test(stores_round_to_nearest_even),
        cmocka_unit_test(stores_specials),
        cmocka_unit_test(nibbles_keep_their_neighbours),
        cmocka_unit_test(values_stay_between_the_limits),
        cmocka_unit_test(limits_are_rounded_inwards),
        cmocka_unit_test(integers_reach_both_ends_of_any_range),
        cmocka_unit_test(uint64_is_not_cut_at_int64),
        cmocka_unit_test(limits_beyond_the_type_are_cut_or_refused),
        cmocka_unit_test(odd_limits_are_refused),
        cmocka_unit_test(missing_limits_have_a_default),
        cmocka_unit_test(recorded_nan_and_infinity_are_planted),
        cmocka_unit_test(uniform_and_normal_are_what_they_say),
        cmocka_unit_test(complex_points_every_way),
        cmocka_unit_test(adversarial_has_what_it_promises),
        cmocka_unit_test(absurd_tensors_are_refused_before_they_exist),
        cmocka_unit_test(gradients_are_wanted_where_they_can_be),
        cmocka_unit_test(gradients_are_those_of_the_entry),
        cmocka_unit_test(conv_is_rounded_for_msprobe_only),
        cmocka_unit_test(classes_and_histograms_change_type),
        cmocka_unit_test(compressed_attention_mask_is_causal),
        cmocka_unit_test(odd_arguments_stop_a_call_for_msprobe_only),
        cmocka_unit_test(lists_keep_their_shape),
        cmocka_unit_test(twister_refuses_other_inputs),
        cmocka_unit_test(data_files_are_read),
        cmocka_unit_test(big_endian_files_are_turned),
        cmocka_unit_test(names_do_not_leave_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
