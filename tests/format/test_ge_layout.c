#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/ge_layout.h"
#include "msprobe/graph.h"

#include <string.h>

enum { MOST = 1 << 16 };
static const struct ge_reading documented = {0};
static int32_t device[MOST], got[MOST], want[MOST];

static uint64_t up(uint64_t n, uint64_t block)
{
    return (n + block - 1) / block;
}

static struct ge_tensor tensor(int32_t format, const uint64_t *s, unsigned rank, const uint64_t *o,
                               unsigned original)
{
    return (struct ge_tensor){
        .type = 7, .format = format, .shape = {rank, s}, .original = {original, o}};
}

static void check(const struct ge_tensor *t, bool as_origin, uint64_t count, const int64_t *shape,
                  unsigned rank)
{
    struct ge_order order;
    const struct ge_reading *reading = as_origin ? &msprobe_ge_reading : &documented;
    memset(got, -1, sizeof got);
    assert_int_equal(ge_order_find(&order, t, reading, NULL), PLUMB_OK);
    assert_false(order.plain);
    assert_int_equal(ge_order_count(&order), count);
    ge_order_copy(&order, device, got, sizeof *got);
    assert_memory_equal(got, want, count * sizeof *got);
    assert_int_equal(got[count], -1);
    assert_int_equal(order.rank, rank);
    for (unsigned i = 0; i < rank; i++)
        assert_int_equal(order.shape[i], shape[i]);
}

/* Number every original element, put it where the format has it, and -9 where there is padding. */
static void nz(void **state)
{
    (void)state;
    const uint64_t h = 3, n = 20, c = 37, block = 16, c1 = up(c, block), no = up(n, block);
    memset(device, -9, sizeof device);
    for (uint64_t i = 0; i < h; i++)
        for (uint64_t k = 0; k < n; k++)
            for (uint64_t m = 0; m < c; m++) {
                uint64_t at =
                    (((i * c1 + m / block) * no + k / block) * block + k % block) * block +
                    m % block;
                device[at] = want[(i * n + k) * c + m] = (int32_t)((i * n + k) * c + m);
            }
    const uint64_t s[] = {3, c1, no, 16, 16}, o3[] = {3, n, c}, o4[] = {1, 3, n, c};
    struct ge_tensor t = tensor(GE_FRACTAL_NZ, s, 5, o3, 3);
    check(&t, true, h * n * c, (const int64_t[]){3, 20, 37}, 3);
    check(&t, false, h * n * c, (const int64_t[]){3, 20, 37}, 3);
    /* Four dimensions: the origin keeps three, plumb gives the shape that people know. */
    t = tensor(GE_FRACTAL_NZ, s, 5, o4, 4);
    check(&t, true, h * n * c, (const int64_t[]){3, 20, 37}, 3);
    check(&t, false, h * n * c, (const int64_t[]){1, 3, 20, 37}, 4);
    t = tensor(GE_FRACTAL_NZ, s + 1, 4, o3 + 1, 2);
    check(&t, true, n * c, (const int64_t[]){20, 37}, 2);
    /* Five dimensions: undone by plumb only. */
    const uint64_t o5[] = {1, 1, 3, n, c};
    struct ge_order order;
    t = tensor(GE_FRACTAL_NZ, s, 5, o5, 5);
    check(&t, false, h * n * c, (const int64_t[]){1, 1, 3, 20, 37}, 5);
    assert_int_equal(ge_order_find(&order, &t, &msprobe_ge_reading, NULL), PLUMB_OK);
    assert_true(order.plain && order.rank == 5);
}

static void five_hd(void **state)
{
    (void)state;
    const uint64_t n = 2, c = 21, h = 3, w = 5, c0 = 16, c1 = up(c, c0);
    memset(device, -9, sizeof device);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < c; k++)
            for (uint64_t y = 0; y < h; y++)
                for (uint64_t x = 0; x < w; x++) {
                    uint64_t flat = ((i * c + k) * h + y) * w + x;
                    uint64_t at = (((i * c1 + k / c0) * h + y) * w + x) * c0 + k % c0;
                    device[at] = want[flat] = (int32_t)flat;
                }
    const uint64_t s[] = {n, c1, h, w, c0}, o[] = {n, c, h, w};
    struct ge_tensor t = tensor(GE_NC1HWC0, s, 5, o, 4);
    for (int as_origin = 0; as_origin < 2; as_origin++)
        check(&t, as_origin, n * c * h * w, (const int64_t[]){2, 21, 3, 5}, 4);
}

static void fractal_z(void **state)
{
    (void)state;
    const uint64_t n = 18, c = 21, h = 3, w = 2, block = 16, c1 = up(c, block), no = up(n, block);
    memset(device, -9, sizeof device);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < c; k++)
            for (uint64_t y = 0; y < h; y++)
                for (uint64_t x = 0; x < w; x++) {
                    uint64_t flat = ((i * c + k) * h + y) * w + x;
                    uint64_t at =
                        ((((k / block * h + y) * w + x) * no + i / block) * block + i % block) *
                            block +
                        k % block;
                    device[at] = want[flat] = (int32_t)flat;
                }
    const uint64_t s[] = {c1 * h * w, no, block, block}, o[] = {n, c, h, w};
    struct ge_tensor t = tensor(GE_FRACTAL_Z, s, 4, o, 4);
    for (int as_origin = 0; as_origin < 2; as_origin++)
        check(&t, as_origin, n * c * h * w, (const int64_t[]){18, 21, 3, 2}, 4);
    /* Groups are not undone: taken as it lies by the origin, refused by plumb. */
    struct ge_order order;
    t.sub_format = 2;
    assert_int_equal(ge_order_find(&order, &t, &msprobe_ge_reading, NULL), PLUMB_OK);
    assert_true(order.plain);
    assert_int_equal(ge_order_find(&order, &t, &documented, NULL), PLUMB_E_UNSUPPORTED);
}

static void permutations(void **state)
{
    (void)state;
    const uint64_t n = 2, c = 5, h = 3, w = 4;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < c; k++)
            for (uint64_t y = 0; y < h; y++)
                for (uint64_t x = 0; x < w; x++) {
                    uint64_t flat = ((i * c + k) * h + y) * w + x;
                    device[((i * h + y) * w + x) * c + k] = want[flat] = (int32_t)flat;
                }
    const uint64_t nhwc[] = {n, h, w, c};
    struct ge_tensor t = tensor(GE_NHWC, nhwc, 4, nhwc, 4);
    check(&t, false, n * c * h * w, (const int64_t[]){2, 5, 3, 4}, 4);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < c; k++)
            for (uint64_t y = 0; y < h; y++)
                for (uint64_t x = 0; x < w; x++)
                    device[((y * w + x) * c + k) * n + i] = want[((i * c + k) * h + y) * w + x];
    const uint64_t hwcn[] = {h, w, c, n};
    t = tensor(GE_HWCN, hwcn, 4, hwcn, 4);
    check(&t, false, n * c * h * w, (const int64_t[]){2, 5, 3, 4}, 4);
}

/* The origin turns NHWC into NCHW and then cuts with the sizes of NHWC. */
static void the_origins_cut(void **state)
{
    (void)state;
    const uint64_t s[] = {1, 4, 4, 8};
    struct ge_tensor t = tensor(GE_NHWC, s, 4, s, 4);
    struct ge_order order;
    assert_int_equal(ge_order_find(&order, &t, &msprobe_ge_reading, NULL), PLUMB_OK);
    assert_int_equal(ge_order_count(&order), 64); /* of 128 */
    assert_int_equal(ge_order_find(&order, &t, &documented, NULL), PLUMB_OK);
    assert_int_equal(ge_order_count(&order), 128);
}

static void ndc1hwc0(void **state)
{
    (void)state;
    const uint64_t n = 2, c = 20, d = 3, h = 2, w = 2, c0 = 16, c1 = up(c, c0);
    memset(device, -9, sizeof device);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < c; k++)
            for (uint64_t z = 0; z < d; z++)
                for (uint64_t y = 0; y < h; y++)
                    for (uint64_t x = 0; x < w; x++) {
                        uint64_t flat = (((i * c + k) * d + z) * h + y) * w + x;
                        uint64_t at = ((((i * d + z) * c1 + k / c0) * h + y) * w + x) * c0 + k % c0;
                        device[at] = want[flat] = (int32_t)flat;
                    }
    const uint64_t s[] = {n, d, c1, h, w, c0}, o[] = {n, c, d, h, w};
    struct ge_tensor t = tensor(GE_NDC1HWC0, s, 6, o, 5);
    check(&t, false, n * c * d * h * w, (const int64_t[]){2, 20, 3, 2, 2}, 5);
}

static void contradictions(void **state)
{
    (void)state;
    const uint64_t huge[] = {UINT64_MAX, UINT64_MAX}, few[] = {2, 2}, o[] = {4, 4, 4, 4};
    const uint64_t zero[] = {0, 16, 16, 16};
    struct ge_order order;
    struct ge_tensor t = tensor(GE_ND, huge, 2, few, 2);
    assert_int_equal(ge_order_find(&order, &t, &documented, NULL), PLUMB_E_FORMAT);
    t = tensor(GE_FRACTAL_NZ, few, 2, few, 2);
    assert_int_equal(ge_order_find(&order, &t, &documented, NULL), PLUMB_E_UNSUPPORTED);
    t = tensor(GE_FRACTAL_Z, zero, 4, o, 4);
    assert_int_equal(ge_order_find(&order, &t, &documented, NULL), PLUMB_OK);
    assert_true(order.plain);
    t = tensor(GE_NC1HWC0, few, 2, o, 4);
    assert_int_equal(ge_order_find(&order, &t, &documented, NULL), PLUMB_E_UNSUPPORTED);
    t = tensor(9999, few, 2, few, 2);
    assert_int_equal(ge_order_find(&order, &t, &documented, NULL), PLUMB_OK);
    assert_true(order.plain);
    assert_string_equal(ge_format_name(9999), "unknown");
    assert_string_equal(ge_format_name(29), "FRACTAL_NZ");
    assert_string_equal(ge_format_name(49), "C1HWC0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nz),
        cmocka_unit_test(five_hd),
        cmocka_unit_test(fractal_z),
        cmocka_unit_test(permutations),
        cmocka_unit_test(the_origins_cut),
        cmocka_unit_test(ndc1hwc0),
        cmocka_unit_test(contradictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
