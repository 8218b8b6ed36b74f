#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/format.h"
#include "plumb/run.h"
#include "scratch.h"

static size_t make_file(uint8_t *out, const char *header, const void *data, size_t bytes)
{
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)((uint64_t)length >> (8 * i));
    memcpy(out + 8, header, length);
    if (bytes)
        memcpy(out + 8 + length, data, bytes);
    return 8 + length + bytes;
}

struct result {
    enum plumb_code code;
    struct plumb_error err;
    struct arena arena;
    struct listing listing;
};

/* Lists a copy that ends exactly where the file does. */
static void list_bytes(struct result *r, const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    struct plumb_file file = {.data = exact, .size = size, .file_size = size};
    *r = (struct result){0};
    r->listing = (struct listing){.arena = &r->arena, .path = "m.safetensors"};
    r->code = format_list(&format_safetensors, &r->listing, &file, &r->err);
    free(exact);
}

static void list_header(struct result *r, const char *header, size_t data_bytes)
{
    static const uint8_t zeros[64];
    uint8_t bytes[2048];
    list_bytes(r, bytes, make_file(bytes, header, zeros, data_bytes));
}

static void tensors_are_listed_in_header_order(void **state)
{
    (void)state;
    struct result r;
    list_header(
        &r,
        "{\"__metadata__\":{\"format\":\"pt\",\"x\":[1,{}]},"
        "\"second\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[4,12]},"
        "\"fi\\u0072st\":{\"shape\":[],\"data_offsets\":[0,4],\"dtype\":\"F32\",\"new\":[]},"
        "\"empty\":{\"dtype\":\"I64\",\"shape\":[0,3],\"data_offsets\":[12,12]}}   ",
        12);
    assert_int_equal(r.code, PLUMB_OK);
    assert_int_equal(r.listing.count, 3);
    const struct plumb_record *record = r.listing.records;
    assert_string_equal(record[0].name, "second");
    assert_int_equal(record[0].dtype, PLUMB_BF16);
    assert_int_equal(record[0].ndim, 2);
    assert_int_equal(record[0].count, 4);
    assert_int_equal(record[0].bytes, 8);
    assert_string_equal(record[1].name, "first");
    assert_int_equal(record[1].dtype, PLUMB_F32);
    assert_int_equal(record[1].count, 1);
    assert_int_equal(record[1].offset + 4, record[0].offset);
    assert_string_equal(record[2].name, "empty");
    assert_int_equal(record[2].count, 0);
    for (int i = 0; i < 3; i++) {
        assert_null(record[i].error);
        assert_int_equal(record[i].step, -1);
        assert_int_equal(record[i].rank, -1);
        assert_int_equal(record[i].requires_grad, -1);
    }
    arena_free(&r.arena);
}

static void all_types_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum plumb_dtype dtype;
        int bytes; /* of 4 elements */
    } cases[] = {
        {"BOOL", PLUMB_BOOL, 4},       {"U8", PLUMB_U8, 4},
        {"I8", PLUMB_I8, 4},           {"I16", PLUMB_I16, 8},
        {"U16", PLUMB_U16, 8},         {"F16", PLUMB_F16, 8},
        {"BF16", PLUMB_BF16, 8},       {"I32", PLUMB_I32, 16},
        {"U32", PLUMB_U32, 16},        {"F32", PLUMB_F32, 16},
        {"F64", PLUMB_F64, 32},        {"I64", PLUMB_I64, 32},
        {"U64", PLUMB_U64, 32},        {"F8_E4M3", PLUMB_F8_E4M3FN, 4},
        {"F8_E5M2", PLUMB_F8_E5M2, 4}, {"F8_E8M0", PLUMB_F8_E8M0, 4},
        {"F4", PLUMB_F4_E2M1, 2},      {"C64", PLUMB_C64, 32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[256];
        struct result r;
        snprintf(header, sizeof header,
                 "{\"x\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[0,%d]}}", cases[i].name,
                 cases[i].bytes);
        list_header(&r, header, (size_t)cases[i].bytes);
        assert_int_equal(r.code, PLUMB_OK);
        assert_null(r.listing.records[0].error);
        assert_int_equal(r.listing.records[0].dtype, cases[i].dtype);
        arena_free(&r.arena);
    }
}

/* A tensor that cannot be read does not take the others with it. */
static void a_bad_tensor_is_one_record(void **state)
{
    (void)state;
    static const struct {
        const char *entry;
        enum plumb_code code;
        const char *message;
    } cases[] = {
        {"{\"dtype\":\"Q9\",\"shape\":[1],\"data_offsets\":[0,4]}", PLUMB_E_UNSUPPORTED,
         "tensor bad is of type Q9"},
        {"{\"dtype\":\"float32\",\"shape\":[1],\"data_offsets\":[0,4]}", PLUMB_E_UNSUPPORTED,
         "type float32"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}", PLUMB_E_FORMAT,
         "tensor bad ends at 0, before it begins at 4"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}", PLUMB_E_FORMAT,
         "tensor bad ends at byte 12 of the data, which has 8"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}", PLUMB_E_FORMAT,
         "tensor bad has 4 bytes, but its type and shape need 8"},
        {"{\"dtype\":\"F32\",\"shape\":[1152921504606846976],\"data_offsets\":[0,4]}",
         PLUMB_E_FORMAT, "need 4611686018427387904"},
        {"{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}",
         PLUMB_E_FORMAT, "2^63"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[512];
        struct result r;
        snprintf(header, sizeof header,
                 "{\"bad\":%s,\"good\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                 cases[i].entry);
        list_header(&r, header, 8);
        assert_int_equal(r.code, PLUMB_OK);
        assert_int_equal(r.listing.count, 2);
        const struct plumb_error *error = r.listing.records[0].error;
        assert_non_null(error);
        assert_int_equal(error->code, cases[i].code);
        assert_string_equal(error->file, "m.safetensors");
        if (!strstr(error->message, cases[i].message))
            fail_msg("%s", error->message);
        assert_null(r.listing.records[1].error);
        arena_free(&r.arena);
    }
}

#define GOOD "\"dtype\":\"U8\",\"shape\":[4]"

static void a_bad_header_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        uint64_t at;
        const char *message;
    } cases[] = {
        {"{\"a\":{" GOOD ",\"data_offsets\":[0,4]},\"a\":{" GOOD ",\"data_offsets\":[4,8]}}", 61,
         "a second tensor is called a"},
        {"{\"a\":{" GOOD ",\"data_offsets\":[0,4]},\"b\":{" GOOD ",\"data_offsets\":[3,7]}}", 116,
         "tensors a and b overlap"},
        {"{\"a\":{" GOOD ",\"data_offsets\":[0,4]},\"b\":{" GOOD ",\"data_offsets\":[0,4]}}", 113,
         "overlap"},
        {"{\"a\":{" GOOD "}}", 38, "data_offsets before the end"},
        {"{\"a\":{" GOOD ",\"data_offsets\":[0]}}", 56, "two numbers"},
        {"{\"a\":{" GOOD ",\"data_offsets\":[0,4,5]}}", 59, "fewer numbers"},
        {"{\"a\":{" GOOD ",\"data_offsets\":[-1,4]}}", 55, "not negative"},
        {"{\"a\":{" GOOD ",\"data_offsets\":[0.0,4]}}", 55, "whole number"},
        {"{\"a\":{\"dtype\":1}}", 22, "the name of a type"},
        {"{\"a\":{\"shape\":{}}}", 22, "an array of sizes"},
        {"{\"a\":3}", 13, "an object that describes a tensor"},
        {"{\"a\\u0000\":{}}", 9, "zero byte"},
        {"{\"\\ud800\":{}}", 10, "surrogate"},
        {"{} x", 11, "unexpected text"},
        {"{\"a\"", 12, "in the middle"},
        {"{", 9, "in the middle"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result r;
        list_header(&r, cases[i].header, 16);
        if (r.code != PLUMB_E_FORMAT || r.err.offset != cases[i].at ||
            !strstr(r.err.message, cases[i].message))
            fail_msg("%s: code %d at %llu: %s", cases[i].header, (int)r.code,
                     (unsigned long long)r.err.offset, r.err.message);
        assert_int_equal(r.listing.count, 0);
        arena_free(&r.arena);
    }
}

static void lengths_are_checked_first(void **state)
{
    (void)state;
    static const uint8_t lengths[][9] = {
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{'},
        {0, 0xe1, 0xf5, 0x05, 0, 0, 0, 0, '{'}, /* 100,000,000: allowed, but not there */
        {1, 0xe1, 0xf5, 0x05, 0, 0, 0, 0, '{'},
        {2, 0, 0, 0, 0, 0, 0, 0, '{'},
    };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct result r;
        list_bytes(&r, lengths[i], sizeof lengths[i]);
        assert_int_equal(r.code, PLUMB_E_FORMAT);
        assert_int_equal(r.err.offset, 0);
        arena_free(&r.arena);
    }
    assert_false(format_safetensors.probe(lengths[2], 9));
    assert_true(format_safetensors.probe(lengths[3], 9));
    assert_false(format_safetensors.probe(lengths[3], 8));
}

static void every_cut_is_an_error(void **state)
{
    (void)state;
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                                 "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[3,11]}}";
    uint8_t bytes[512];
    size_t size = make_file(bytes, header, "0123456789a", 11);
    for (size_t cut = 0; cut < size; cut++) {
        struct result r;
        list_bytes(&r, bytes, cut);
        if (cut < size - 11) {
            assert_int_equal(r.code, PLUMB_E_FORMAT);
        } else {
            /* The tensors that are still whole are still there. */
            assert_int_equal(r.code, PLUMB_OK);
            assert_int_equal(r.listing.records[0].error == NULL, cut >= size - 8);
            assert_non_null(r.listing.records[1].error);
        }
        arena_free(&r.arena);
    }
}

static void values_are_read(void **state)
{
    (void)state;
    static const uint8_t data[] = {0x80, 0x3f, 0x00, 0xc0, 1, 0, 1};
    uint8_t bytes[512];
    struct scratch scratch;
    struct plumb_run *run;
    struct plumb_payload payload;
    struct plumb_error err;
    double values[4];
    scratch_make(&scratch);
    size_t size = make_file(bytes,
                            "{\"w\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]},"
                            "\"m\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[4,7]}}",
                            data, sizeof data);
    assert_int_equal(
        plumb_run_open(&run, scratch_write(&scratch, "m.safetensors", bytes, size), &err),
        PLUMB_OK);
    assert_string_equal(plumb_run_kind(run), "safetensors");
    assert_int_equal(plumb_run_count(run), 2);

    assert_int_equal(plumb_run_load(run, 0, &payload, &err), PLUMB_OK);
    plumb_tensor_to_f64(&payload.tensor, 0, 2, values);
    assert_true(values[0] == 1 && values[1] == -2);
    plumb_payload_release(&payload);

    assert_int_equal(plumb_run_load(run, 1, &payload, &err), PLUMB_OK);
    plumb_tensor_to_f64(&payload.tensor, 0, 3, values);
    assert_true(values[0] == 1 && values[1] == 0 && values[2] == 1);
    plumb_payload_release(&payload);

    assert_int_equal(plumb_run_load(run, 2, &payload, &err), PLUMB_E_ARG);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_listed_in_header_order),
        cmocka_unit_test(all_types_are_known),
        cmocka_unit_test(a_bad_tensor_is_one_record),
        cmocka_unit_test(a_bad_header_is_refused),
        cmocka_unit_test(lengths_are_checked_first),
        cmocka_unit_test(every_cut_is_an_error),
        cmocka_unit_test(values_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
