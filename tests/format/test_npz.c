#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/archive.h"

static void check_arrays(struct opened *o)
{
    const double ramp[] = {0, 1, 2, 3, 4, 5}, quarter[] = {0, .25, .5, .75, 1, 1.25};
    const double seven[] = {-7}, big[] = {-2, -1, 0, 1};
    assert_values(o, &format_npz, "weight", PLUMB_F32, 2, (int64_t[]){2, 3}, quarter);
    assert_values(o, &format_npz, "scalar", PLUMB_I64, 0, NULL, seven);
    assert_values(o, &format_npz, "fortran", PLUMB_F64, 2, (int64_t[]){2, 3}, ramp);
    assert_values(o, &format_npz, "big", PLUMB_I16, 1, (int64_t[]){4}, big);
    assert_values(o, &format_npz, "sub/empty", PLUMB_F16, 2, (int64_t[]){0, 5}, NULL);
    assert_int_equal(record_of(o, "fortran")->view->stride[0], 1);
    assert_int_equal(record_of(o, "fortran")->view->stride[1], 2);
}

static void stored_members_are_mapped(void **state)
{
    (void)state;
    struct opened o;
    assert_int_equal(open_data(&o, &format_npz, "npz/plain.npz"), PLUMB_OK);
    assert_int_equal(o.listing.count, 5);
    assert_string_equal(o.listing.records[0].name, "weight");
    for (size_t i = 0; i < o.listing.count; i++)
        assert_null(o.listing.records[i].detail);
    check_arrays(&o);
    struct plumb_payload payload;
    assert_int_equal(format_load(&format_npz, record_of(&o, "weight"), o.file.file_size,
                                 o.file.mtime_ns, NULL, &payload, &o.err),
                     PLUMB_OK);
    assert_null(payload.owned);
    assert_int_equal(payload.file.size, 24);
    plumb_payload_release(&payload);
    close_data(&o);
}

static void deflated_members_are_decoded(void **state)
{
    (void)state;
    struct opened o;
    assert_int_equal(open_data(&o, &format_npz, "npz/deflated.npz"), PLUMB_OK);
    assert_int_equal(o.listing.count, 6);
    check_arrays(&o);

    /* Longer than what listing unpacks of it: pins that a short buffer is filled to the end. */
    double *values = malloc(50000 * sizeof *values);
    assert_non_null(values);
    for (int i = 0; i < 50000; i++)
        values[i] = i % 7;
    assert_values(&o, &format_npz, "long", PLUMB_F32, 1, (int64_t[]){50000}, values);
    free(values);
    close_data(&o);
}

static void bad_members_do_not_hide_others(void **state)
{
    (void)state;
    const double quarter[] = {0, .25, .5, .75, 1, 1.25}, last[] = {1, 2, 3};
    struct opened o;
    assert_int_equal(open_data(&o, &format_npz, "npz/mixed.npz"), PLUMB_OK);
    assert_int_equal(o.listing.count, 6); /* readme.txt is none */
    assert_values(&o, &format_npz, "a", PLUMB_F32, 2, (int64_t[]){2, 3}, quarter);
    assert_values(&o, &format_npz, "z", PLUMB_U8, 1, (int64_t[]){3}, last);
    assert_refused(&o, "object", PLUMB_E_UNSUPPORTED, "");
    assert_refused(&o, "short", PLUMB_E_FORMAT,
                   "promises 24 bytes of elements, but the member has 23");
    assert_refused(&o, "long", PLUMB_E_FORMAT, "but the member has 25");
    assert_refused(&o, "noise", PLUMB_E_FORMAT, "");
    assert_true(record_of(&o, "noise")->error->offset > record_of(&o, "a")->offset);

    struct plumb_payload payload;
    assert_int_equal(format_load(&format_npz, record_of(&o, "short"), o.file.file_size,
                                 o.file.mtime_ns, NULL, &payload, &o.err),
                     PLUMB_E_FORMAT);
    close_data(&o);
}

static void zip64_and_empty(void **state)
{
    (void)state;
    const double quarter[] = {0, .25, .5, .75, 1, 1.25};
    struct opened o;
    assert_int_equal(open_data(&o, &format_npz, "npz/zip64.npz"), PLUMB_OK);
    assert_int_equal(o.listing.count, 2);
    assert_values(&o, &format_npz, "a", PLUMB_F32, 2, (int64_t[]){2, 3}, quarter);
    close_data(&o);
    assert_int_equal(open_data(&o, &format_npz, "npz/empty.npz"), PLUMB_OK);
    assert_int_equal(o.listing.count, 0);
    close_data(&o);
}

/* Flips each byte of the packed data: reading fails or, where the flip is harmless, gives bytes. */
static void damage_in_deflated_data_is_seen(void **state)
{
    (void)state;
    struct opened o;
    assert_int_equal(open_data(&o, &format_npz, "npz/deflated.npz"), PLUMB_OK);
    const struct plumb_record *record = record_of(&o, "weight");
    uint8_t *copy = malloc(o.file.size);
    assert_non_null(copy);
    struct plumb_file file = in_memory(copy, o.file.size);
    for (uint64_t i = 0; i < record->bytes; i++) {
        memcpy(copy, o.file.data, o.file.size);
        copy[record->offset + i] ^= 0x55;
        void *owned = NULL;
        uint64_t bytes = 0;
        assert_int_equal(format_npz.read(record, &file, &owned, &bytes, &o.err), PLUMB_E_FORMAT);
        assert_null(owned);
    }
    free(copy);
    close_data(&o);
}

static void every_prefix_fails(void **state)
{
    (void)state;
    assert_prefixes_fail(&format_npz, "npz/plain.npz");
    assert_prefixes_fail(&format_npz, "npz/deflated.npz");
    assert_prefixes_fail(&format_npz, "npz/zip64.npz");
    assert_prefixes_fail(&format_npz, "npz/empty.npz");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_members_are_mapped),
        cmocka_unit_test(deflated_members_are_decoded),
        cmocka_unit_test(bad_members_do_not_hide_others),
        cmocka_unit_test(zip64_and_empty),
        cmocka_unit_test(damage_in_deflated_data_is_seen),
        cmocka_unit_test(every_prefix_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
