#define _GNU_SOURCE
#include "base/pool.h"
#include "h5_open.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

static void open_fixture(struct h5_open *open, const char *name)
{
    char path[4096];
    struct plumb_error err = {0};
    if (h5_open_path(open, h5_fixture(name, path, sizeof path), &err))
        fail_msg("%s: %s", path, err.message);
}

/* Loads a tensor and compares its elements, real parts first. */
static void check_values(const struct h5_open *open, const char *name, enum plumb_dtype dtype,
                         size_t count, const double *expected)
{
    const struct plumb_record *record = h5_find(open, name);
    struct plumb_payload payload;
    struct plumb_error err = {0};
    double values[256];
    if (!record)
        fail_msg("no %s", name);
    if (h5_load(open, record, &payload, &err))
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(payload.tensor.dtype, dtype);
    assert_int_equal(payload.tensor.count * plumb_dtype_parts(dtype), count);
    plumb_tensor_to_f64(&payload.tensor, 0, (size_t)payload.tensor.count, values);
    for (size_t i = 0; i < count; i++)
        if (values[i] != expected[i])
            fail_msg("%s[%zu] is %g, not %g", name, i, values[i], expected[i]);
    plumb_payload_release(&payload);
}

static void check_ramp(const struct h5_open *open, const char *name, enum plumb_dtype dtype,
                       size_t count)
{
    double ramp[256];
    for (size_t i = 0; i < count; i++)
        ramp[i] = (double)i;
    check_values(open, name, dtype, count, ramp);
}

static void check_refused(const struct h5_open *open, const char *name, enum plumb_code code,
                          const char *part)
{
    const struct plumb_record *record = h5_find(open, name);
    if (!record || !record->error)
        fail_msg("%s is not refused", name);
    assert_int_equal(record->error->code, code);
    if (!strstr(record->error->message, part))
        fail_msg("%s: \"%s\" does not say \"%s\"", name, record->error->message, part);
    struct plumb_payload payload;
    assert_int_equal(h5_load(open, record, &payload, NULL), code);
}

static void keeps_creation_order_steps_and_rank(void **state)
{
    (void)state;
    static const char *const names[] = {"proj.Linear.0.forward_params.weight",
                                        "proj.Linear.0.forward_input.0",
                                        "attn.Attention.0.forward_output.0"};
    static const int64_t steps[] = {2, 10, 1};
    struct h5_open open;
    open_fixture(&open, "module.h5");
    assert_int_equal(open.listing.count, 9);
    for (size_t i = 0; i < 9; i++) {
        const struct plumb_record *record = &open.listing.records[i];
        assert_string_equal(record->name, names[i % 3]);
        assert_int_equal(record->step, steps[i / 3]);
        assert_int_equal(record->rank, 3);
        assert_int_equal(record->dtype, PLUMB_F32);
        assert_int_equal(record->ndim, 2);
        assert_int_equal(record->shape[1], 3);
        assert_null(record->detail); /* mapped, not copied */
        struct plumb_payload payload;
        assert_int_equal(h5_load(&open, record, &payload, NULL), PLUMB_OK);
        double last;
        plumb_tensor_to_f64(&payload.tensor, 5, 1, &last);
        assert_true(last == 5 + 100 * (double)steps[i / 3] + 10 * (double)(i % 3));
        plumb_payload_release(&payload);
    }
    h5_open_close(&open);
}

static void reads_all_types(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum plumb_dtype dtype;
    } ramps[] = {
        {"le_u1", PLUMB_U8},  {"le_u2", PLUMB_U16},   {"le_u4", PLUMB_U32},    {"le_u8", PLUMB_U64},
        {"le_i1", PLUMB_I8},  {"le_i2", PLUMB_I16},   {"le_i4", PLUMB_I32},    {"le_i8", PLUMB_I64},
        {"le_f2", PLUMB_F16}, {"le_f4", PLUMB_F32},   {"le_f8", PLUMB_F64},    {"be_u2", PLUMB_U16},
        {"be_i4", PLUMB_I32}, {"be_i8", PLUMB_I64},   {"be_f2", PLUMB_F16},    {"be_f4", PLUMB_F32},
        {"be_f8", PLUMB_F64}, {"widened", PLUMB_F32}, {"odd_name", PLUMB_F32},
    };
    static const double bits[] = {1, -2, 3}, complex[] = {0, 0, 1, 0, 2, 0}, truth[] = {1, 0, 1};
    struct h5_open open;
    open_fixture(&open, "types.h5");
    for (size_t i = 0; i < sizeof ramps / sizeof ramps[0]; i++)
        check_ramp(&open, ramps[i].name, ramps[i].dtype, 3);
    check_values(&open, "le_c8", PLUMB_C64, 6, complex);
    check_values(&open, "le_c16", PLUMB_C128, 6, complex);
    check_values(&open, "be_c8", PLUMB_C64, 6, complex);
    check_values(&open, "bool", PLUMB_BOOL, 3, truth);
    check_values(&open, "bool_as_u1", PLUMB_BOOL, 3, truth);
    check_values(&open, "bf16", PLUMB_BF16, 3, bits);
    check_values(&open, "native_bf16", PLUMB_BF16, 3, bits);
    check_values(&open, "e4m3", PLUMB_F8_E4M3FN, 3, bits);
    check_values(&open, "e5m2", PLUMB_F8_E5M2, 3, bits);
    check_refused(&open, "contradicts", PLUMB_E_FORMAT, "torch.int32");
    check_refused(&open, "bytes_of_bf16", PLUMB_E_FORMAT, "torch.bfloat16");
    check_ramp(&open, "narrowed", PLUMB_I32, 3);
    h5_open_close(&open);
}

static void check_layouts(const char *fixture)
{
    static const double sparse[10] = {[5] = 1}, never[6] = {0},
                        minus_two[6] = {-2, -2, -2, -2, -2, -2};
    static const double filled[10] = {7, 7, 7, 7, 7, 1, 7, 7, 7, 7}, scalar[] = {2.5};
    struct h5_open open;
    open_fixture(&open, fixture);
    check_ramp(&open, "contiguous", PLUMB_F32, 20);
    check_ramp(&open, "chunked", PLUMB_F32, 35);
    check_ramp(&open, "deflate", PLUMB_F32, 35);
    check_ramp(&open, "shuffle", PLUMB_F32, 35);
    check_ramp(&open, "both", PLUMB_F64, 60);
    check_ramp(&open, "both_big", PLUMB_I16, 9);
    check_ramp(&open, "checksum", PLUMB_F32, 35);
    check_ramp(&open, "growing", PLUMB_F32, 5);
    check_ramp(&open, "compact", PLUMB_F32, 4);
    check_values(&open, "sparse", PLUMB_F32, 10, sparse);
    check_values(&open, "filled", PLUMB_F32, 10, filled);
    check_values(&open, "never", PLUMB_F32, 6, never);
    check_values(&open, "never_filled", PLUMB_I32, 6, minus_two);
    check_values(&open, "scalar", PLUMB_F64, 1, scalar);
    check_values(&open, "empty", PLUMB_F32, 0, NULL);
    check_values(&open, "null", PLUMB_F32, 0, NULL);
    assert_int_equal(h5_find(&open, "scalar")->ndim, 0);
    assert_int_equal(h5_find(&open, "empty")->ndim, 3);
    assert_null(h5_find(&open, "contiguous")->detail);
    h5_open_close(&open);
}

static void reads_all_layouts(void **state)
{
    (void)state;
    check_layouts("layouts.h5");
    check_layouts("layouts_latest.h5");
}

static void refuses_what_is_no_tensor_and_goes_on(void **state)
{
    (void)state;
    struct h5_open open;
    open_fixture(&open, "unsupported.h5");
    check_ramp(&open, "before", PLUMB_F32, 2);
    check_refused(&open, "text", PLUMB_E_UNSUPPORTED, "strings");
    check_refused(&open, "fixed_text", PLUMB_E_UNSUPPORTED, "strings");
    check_refused(&open, "structure", PLUMB_E_UNSUPPORTED, "structure");
    check_refused(&open, "opaque", PLUMB_E_UNSUPPORTED, "without a numeric type");
    check_refused(&open, "reference", PLUMB_E_UNSUPPORTED, "references");
    check_refused(&open, "ragged", PLUMB_E_UNSUPPORTED, "varying length");
    check_refused(&open, "virtual", PLUMB_E_UNSUPPORTED, "other files");
    check_refused(&open, "external", PLUMB_E_UNSUPPORTED, "other files");
    check_refused(&open, "packed", PLUMB_E_UNSUPPORTED, "filter 32000");
    check_ramp(&open, "after", PLUMB_F32, 2);
    h5_open_close(&open);
}

static void walks_nested_groups_once_and_stays_inside(void **state)
{
    (void)state;
    /* By name, because the file kept no order; not steps, because not all groups are numbers. */
    static const char *const names[] = {"1/y",      "a/x",     "b/deep/er/w", "by_way_of_outside",
                                        "dangling", "outside", "same",        "soft"};
    struct h5_open open;
    open_fixture(&open, "nested.h5");
    assert_int_equal(open.listing.count, 8);
    for (size_t i = 0; i < 8; i++) {
        assert_string_equal(open.listing.records[i].name, names[i]);
        assert_int_equal(open.listing.records[i].step, -1);
        assert_int_equal(open.listing.records[i].rank, -1);
    }
    check_ramp(&open, "soft", PLUMB_F32, 3);
    check_refused(&open, "by_way_of_outside", PLUMB_E_UNSUPPORTED, "another file");
    check_refused(&open, "dangling", PLUMB_E_UNSUPPORTED, "leads nowhere");
    check_refused(&open, "outside", PLUMB_E_UNSUPPORTED, "another file");
    h5_open_close(&open);
}

static void refuses_huge_promises(void **state)
{
    (void)state;
    struct h5_open open;
    open_fixture(&open, "huge.h5");
    assert_int_equal(open.listing.count, 3);
    check_refused(&open, "never", PLUMB_E_FORMAT, "promises");
    check_refused(&open, "sparse", PLUMB_E_FORMAT, "promises");
    check_refused(&open, "overflow", PLUMB_E_FORMAT, "promises");
    h5_open_close(&open);
}

static void lists_from_several_threads(void *context, size_t i, unsigned thread)
{
    (void)thread;
    size_t *counts = context;
    char path[4096];
    struct h5_open open;
    if (!h5_open_path(&open, h5_fixture("layouts.h5", path, sizeof path), NULL))
        counts[i] = open.listing.count;
    h5_open_close(&open);
}

static void is_thread_safe(void **state)
{
    (void)state;
    size_t counts[8] = {0};
    pool_run(4, 8, lists_from_several_threads, counts);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(counts[i], 16);
}

#if defined(__SANITIZE_ADDRESS__)
enum { STRIDE = 7 }; /* the helper starts slowly then */
#else
enum { STRIDE = 1 };
#endif

static void truncation_is_an_error_at_every_byte(void **state)
{
    (void)state;
    char path[4096], copy[] = "/tmp/plumb-test-XXXXXX";
    struct plumb_file whole;
    assert_int_equal(
        plumb_file_map(&whole, h5_fixture("tiny.h5", path, sizeof path), 0, UINT64_MAX, NULL), 0);
    int fd = mkstemp(copy);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, whole.data, whole.size), (ssize_t)whole.size);
    for (uint64_t size = whole.size - 1; size > STRIDE; size -= STRIDE) {
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        struct h5_open open;
        struct plumb_error err = {0};
        if (h5_open_path(&open, copy, &err) == PLUMB_OK)
            fail_msg("cut to %llu bytes it is read", (unsigned long long)size);
        assert_true(err.message[0] && err.file[0]);
        h5_open_close(&open);
    }
    close(fd);
    unlink(copy);
    plumb_file_unmap(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_creation_order_steps_and_rank),
        cmocka_unit_test(reads_all_types),
        cmocka_unit_test(reads_all_layouts),
        cmocka_unit_test(refuses_what_is_no_tensor_and_goes_on),
        cmocka_unit_test(walks_nested_groups_once_and_stays_inside),
        cmocka_unit_test(refuses_huge_promises),
        cmocka_unit_test(is_thread_safe),
        cmocka_unit_test(truncation_is_an_error_at_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
