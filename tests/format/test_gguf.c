/* GGUF files made here: what is listed, what is refused, and damage at every byte. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "format/format.h"
#include "plumb/run.h"
#include "scratch.h"

enum { ALIGNMENT = 32 };

static void put(struct buf *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        char byte = (char)(i < 8 ? value >> (8 * i) : 0);
        buf_append(out, &byte, 1);
    }
}

static void put_string(struct buf *out, const char *text)
{
    put(out, strlen(text), 8);
    buf_text(out, text);
}

static void begin(struct buf *out, unsigned version, uint64_t tensors, uint64_t pairs)
{
    buf_text(out, "GGUF");
    put(out, version, 4);
    put(out, tensors, 8);
    put(out, pairs, 8);
}

static void pad(struct buf *out, size_t alignment)
{
    while (out->size % alignment)
        put(out, 0, 1);
}

static void put_info(struct buf *out, const char *name, unsigned ndim, const uint64_t *dims,
                     uint32_t type, uint64_t offset)
{
    put_string(out, name);
    put(out, ndim, 4);
    for (unsigned i = 0; i < ndim; i++)
        put(out, dims[i], 8);
    put(out, type, 4);
    put(out, offset, 8);
}

/* One pair of each kind of value. */
enum { PAIRS = 6 };
static void put_pairs(struct buf *out)
{
    put_string(out, "general.architecture");
    put(out, 8, 4);
    put_string(out, "llama");
    put_string(out, "flag");
    put(out, 7, 4);
    put(out, 1, 1);
    put_string(out, "pi");
    put(out, 12, 4);
    put(out, 0x400921fb54442d18, 8);
    put_string(out, "tokens");
    put(out, 9, 4);
    put(out, 8, 4);
    put(out, 2, 8);
    put_string(out, "a");
    put_string(out, "");
    put_string(out, "scores");
    put(out, 9, 4);
    put(out, 6, 4);
    put(out, 3, 8);
    put(out, 0, 12);
    put_string(out, "nested");
    put(out, 9, 4);
    put(out, 9, 4);
    put(out, 1, 8);
    put(out, 0, 4);
    put(out, 2, 8);
    put(out, 0, 2);
}

/* "w", float32 [2, 3], 0 to 5; "q", quantised; "h", bfloat16 [2], 1 and -2. */
static void make_model(struct buf *out, unsigned version)
{
    static const float w[6] = {0, 1, 2, 3, 4, 5};
    begin(out, version, 3, PAIRS);
    put_pairs(out);
    put_info(out, "w", 2, (const uint64_t[]){3, 2}, 0, 0);
    put_info(out, "q", 1, (const uint64_t[]){256}, 12, 64);
    put_info(out, "h", 1, (const uint64_t[]){2}, 30, 32);
    pad(out, ALIGNMENT);
    buf_append(out, (const char *)w, sizeof w);
    pad(out, ALIGNMENT);
    put(out, 0xc0003f80, 4);
    pad(out, ALIGNMENT);
    put(out, 0, 144);
    assert_false(out->failed);
}

struct result {
    enum plumb_code code;
    struct plumb_error err;
    struct arena arena;
    struct listing listing;
};

/* Lists a copy that ends exactly where the file does. */
static void list_bytes(struct result *r, const void *bytes, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    struct plumb_file file = {.data = exact, .size = size, .file_size = size};
    *r = (struct result){0};
    r->listing = (struct listing){.arena = &r->arena, .path = "m.gguf"};
    r->code = format_list(&format_gguf, &r->listing, &file, &r->err);
    free(exact);
}

static void tensors_are_listed(void **state)
{
    (void)state;
    for (unsigned version = 2; version <= 3; version++) {
        struct buf file = {0};
        struct result r;
        make_model(&file, version);
        assert_true(format_gguf.probe((const uint8_t *)file.data, 4));
        assert_false(format_gguf.probe((const uint8_t *)file.data, 3));
        list_bytes(&r, file.data, file.size);
        assert_int_equal(r.code, PLUMB_OK);
        assert_int_equal(r.listing.count, 3);
        const struct plumb_record *record = r.listing.records;
        assert_string_equal(record[0].name, "w");
        assert_int_equal(record[0].dtype, PLUMB_F32);
        assert_int_equal(record[0].ndim, 2);
        assert_int_equal(record[0].shape[0], 2);
        assert_int_equal(record[0].shape[1], 3);
        assert_int_equal(record[0].bytes, 24);
        assert_int_equal(record[0].offset % ALIGNMENT, 0);
        assert_null(record[0].error);
        assert_string_equal(record[1].name, "q");
        assert_non_null(record[1].error);
        assert_int_equal(record[1].error->code, PLUMB_E_UNSUPPORTED);
        assert_string_equal(record[1].error->message,
                            "tensor q is quantised (Q4_K), and not comparable; convert the model to"
                            " F32 or F16");
        assert_string_equal(record[2].name, "h");
        assert_int_equal(record[2].dtype, PLUMB_BF16);
        assert_int_equal(record[2].offset, record[0].offset + 32);
        assert_null(record[2].error);
        arena_free(&r.arena);
        buf_free(&file);
    }
}

static void values_are_read(void **state)
{
    (void)state;
    struct buf file = {0};
    struct scratch scratch;
    struct plumb_run *run;
    struct plumb_payload payload;
    struct plumb_error err;
    double values[6];
    make_model(&file, 3);
    scratch_make(&scratch);
    assert_int_equal(
        plumb_run_open(&run, scratch_write(&scratch, "m.gguf", file.data, file.size), &err),
        PLUMB_OK);
    assert_string_equal(plumb_run_kind(run), "gguf");
    assert_int_equal(plumb_run_load(run, 0, &payload, &err), PLUMB_OK);
    assert_null(payload.owned); /* mapped */
    plumb_tensor_to_f64(&payload.tensor, 0, 6, values);
    for (int i = 0; i < 6; i++)
        assert_true(values[i] == i);
    plumb_payload_release(&payload);
    assert_int_equal(plumb_run_load(run, 1, &payload, &err), PLUMB_E_UNSUPPORTED);
    assert_int_equal(plumb_run_load(run, 2, &payload, &err), PLUMB_OK);
    plumb_tensor_to_f64(&payload.tensor, 0, 2, values);
    assert_true(values[0] == 1 && values[1] == -2);
    plumb_payload_release(&payload);
    plumb_run_free(run);
    scratch_remove(&scratch);
    buf_free(&file);
}

static void all_types_are_known(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        enum plumb_dtype dtype;
        uint64_t bytes; /* of 4 elements */
    } plain[] = {
        {0, PLUMB_F32, 16},  {1, PLUMB_F16, 8},   {24, PLUMB_I8, 4},   {25, PLUMB_I16, 8},
        {26, PLUMB_I32, 16}, {27, PLUMB_I64, 32}, {28, PLUMB_F64, 32}, {30, PLUMB_BF16, 8},
    };
    size_t seen = 0;
    for (uint32_t type = 0; type < 50; type++) {
        struct buf file = {0};
        struct result r;
        begin(&file, 3, 1, 0);
        put_info(&file, "x", 1, (const uint64_t[]){4}, type, 0);
        pad(&file, ALIGNMENT);
        put(&file, 0, 32);
        list_bytes(&r, file.data, file.size);
        assert_int_equal(r.code, PLUMB_OK);
        const struct plumb_record *record = r.listing.records;
        if (seen < sizeof plain / sizeof *plain && plain[seen].type == type) {
            assert_null(record->error);
            assert_int_equal(record->dtype, plain[seen].dtype);
            assert_int_equal(record->bytes, plain[seen].bytes);
            seen++;
        } else {
            assert_non_null(record->error);
            assert_int_equal(record->error->code, PLUMB_E_UNSUPPORTED);
            assert_non_null(
                strstr(record->error->message, type < 40 ? "not comparable" : "does not know"));
            assert_null(strstr(record->error->message, "(null)"));
        }
        arena_free(&r.arena);
        buf_free(&file);
    }
    assert_int_equal(seen, sizeof plain / sizeof *plain);
}

static void alignment_is_honoured(void **state)
{
    (void)state;
    static const struct {
        uint32_t type, value;
        enum plumb_code code;
    } cases[] = {
        {4, 64, PLUMB_OK},       {4, 8, PLUMB_OK},        {4, 0, PLUMB_E_FORMAT},
        {4, 12, PLUMB_E_FORMAT}, {5, 64, PLUMB_E_FORMAT}, {4, 1u << 31, PLUMB_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf file = {0};
        struct result r;
        begin(&file, 3, 1, 1);
        put_string(&file, "general.alignment");
        put(&file, cases[i].type, 4);
        put(&file, cases[i].value, 4);
        put_info(&file, "x", 0, NULL, 0, 0);
        pad(&file, cases[i].code ? 8 : cases[i].value);
        const size_t data = file.size;
        put(&file, 0, 4);
        list_bytes(&r, file.data, file.size);
        assert_int_equal(r.code, cases[i].code);
        if (!r.code) {
            assert_null(r.listing.records[0].error);
            assert_int_equal(r.listing.records[0].offset, data);
            assert_int_equal(r.listing.records[0].count, 1);
        }
        arena_free(&r.arena);
        buf_free(&file);
    }
}

/* A tensor that cannot be read does not take the others with it. */
static void a_bad_tensor_is_one_record(void **state)
{
    (void)state;
    static const uint64_t most = UINT64_MAX;
    static const struct {
        uint64_t dims[2], offset;
        const char *message;
    } cases[] = {
        {{1, 1}, 33, "no multiple of the alignment 32"},
        {{1, 1}, 64, "which has 36: the file is cut short"},
        {{1, 1}, most / 32 * 32, "cut short"},
        {{16, 1}, 32, "needs 64 bytes at 32"},
        {{most, 1}, 32, "a dimension of 18446744073709551615"},
        {{1, 1ull << 62}, 32, "2^63"},
        {{1ull << 32, 1ull << 32}, 32, "2^63"},
        {{1ull << 60, 1}, 32, "cut short"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf file = {0};
        struct result r;
        begin(&file, 3, 2, 0);
        put_info(&file, "bad", 2, cases[i].dims, 0, cases[i].offset);
        put_info(&file, "good", 1, (const uint64_t[]){8}, 0, 0);
        pad(&file, ALIGNMENT);
        put(&file, 0, 36);
        list_bytes(&r, file.data, file.size);
        assert_int_equal(r.code, PLUMB_OK);
        assert_int_equal(r.listing.count, 2);
        const struct plumb_error *error = r.listing.records[0].error;
        assert_non_null(error);
        if (!strstr(error->message, cases[i].message))
            fail_msg("%s", error->message);
        assert_null(r.listing.records[1].error);
        arena_free(&r.arena);
        buf_free(&file);
    }
}

static void expect_refused(struct buf *file, enum plumb_code code, uint64_t at, const char *message)
{
    struct result r;
    list_bytes(&r, file->data, file->size);
    if (r.code != code || r.err.offset != at || !strstr(r.err.message, message))
        fail_msg("%s: code %d at %llu: %s", message, (int)r.code, (unsigned long long)r.err.offset,
                 r.err.message);
    assert_int_equal(r.listing.count, 0);
    arena_free(&r.arena);
    buf_free(file);
}

static void a_bad_header_is_refused(void **state)
{
    (void)state;
    struct buf file = {0};
    static const uint64_t four[] = {4};
    static const unsigned versions[] = {0, 1, 4, 0x03000000};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        begin(&file, versions[i], 0, 0);
        expect_refused(&file, PLUMB_E_UNSUPPORTED, 4,
                       i == 3 ? "big-endian" : "plumb reads 2 and 3");
    }
    begin(&file, 3, UINT64_MAX, 0);
    expect_refused(&file, PLUMB_E_FORMAT, 8, "18446744073709551615 tensors cannot be in");
    begin(&file, 3, 0, 1ull << 60);
    expect_refused(&file, PLUMB_E_FORMAT, 16, "key-value pairs cannot be in");

    begin(&file, 3, 0, 1);
    put(&file, UINT64_MAX, 8);
    put(&file, 0, 8);
    expect_refused(&file, PLUMB_E_FORMAT, 24, "a string of 18446744073709551615 bytes");
    begin(&file, 3, 0, 1);
    put_string(&file, "k");
    put(&file, 13, 4);
    expect_refused(&file, PLUMB_E_FORMAT, 37, "a value of an unknown type");
    begin(&file, 3, 0, 1);
    put_string(&file, "k");
    put(&file, 9, 4);
    put(&file, 10, 4);
    put(&file, 1ull << 61, 8);
    expect_refused(&file, PLUMB_E_FORMAT, 41, "elements of an array cannot be in");
    begin(&file, 3, 0, 1);
    put_string(&file, "k");
    put(&file, 9, 4);
    for (int level = 0; level < 20; level++) {
        put(&file, 9, 4);
        put(&file, 1, 8);
    }
    expect_refused(&file, PLUMB_E_FORMAT, 133, "nested too deeply");

    begin(&file, 3, 2, 0);
    put_info(&file, "a", 1, four, 0, 0);
    put_info(&file, "a", 1, four, 0, 32);
    expect_refused(&file, PLUMB_E_FORMAT, 57, "a second tensor is called a");
    begin(&file, 3, 2, 0);
    put_info(&file, "a", 1, (const uint64_t[]){9}, 0, 0);
    put_info(&file, "b", 1, four, 0, 32);
    pad(&file, ALIGNMENT);
    put(&file, 0, 64);
    expect_refused(&file, PLUMB_E_FORMAT, 128, "tensors a and b overlap");
    begin(&file, 3, 1, 0);
    put(&file, 1, 8);
    put(&file, 0, 40);
    expect_refused(&file, PLUMB_E_FORMAT, 33, "a name with a zero byte");
    begin(&file, 3, 1, 0);
    put_string(&file, "a");
    put(&file, 65, 4);
    put(&file, 0, 40);
    expect_refused(&file, PLUMB_E_FORMAT, 37, "more dimensions than plumb knows");
}

static void every_cut_is_an_error(void **state)
{
    (void)state;
    struct buf file = {0};
    struct result r;
    make_model(&file, 3);
    list_bytes(&r, file.data, file.size);
    const size_t data = r.listing.records[0].offset;
    arena_free(&r.arena);
    for (size_t cut = 0; cut < file.size; cut++) {
        list_bytes(&r, file.data, cut);
        if (!r.code) {
            assert_true(cut + ALIGNMENT > data);
            /* The tensors that are still whole are still there. */
            assert_int_equal(r.listing.records[0].error == NULL, cut >= data + 24);
            assert_int_equal(r.listing.records[2].error == NULL, cut >= data + 36);
        } else {
            assert_int_equal(r.code, PLUMB_E_FORMAT);
            assert_int_equal(r.listing.count, 0);
        }
        arena_free(&r.arena);
    }
    buf_free(&file);
}

/* Whatever a damaged byte does, records lie inside the file and errors say something. */
static void damage_at_every_byte_is_survived(void **state)
{
    (void)state;
    static const uint8_t masks[] = {0x01, 0x02, 0x10, 0x80, 0xff};
    struct buf file = {0};
    make_model(&file, 3);
    for (size_t at = 0; at < file.size; at++) {
        for (size_t m = 0; m < sizeof masks; m++) {
            struct result r;
            file.data[at] = (char)(file.data[at] ^ masks[m]);
            list_bytes(&r, file.data, file.size);
            assert_true(!r.code || (r.err.message[0] && !r.listing.count));
            for (size_t i = 0; i < r.listing.count; i++) {
                const struct plumb_record *record = &r.listing.records[i];
                assert_true(record->error || (record->offset <= file.size &&
                                              record->bytes <= file.size - record->offset));
            }
            arena_free(&r.arena);
            file.data[at] = (char)(file.data[at] ^ masks[m]);
        }
    }
    buf_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_listed),
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(all_types_are_known),
        cmocka_unit_test(alignment_is_honoured),
        cmocka_unit_test(a_bad_tensor_is_one_record),
        cmocka_unit_test(a_bad_header_is_refused),
        cmocka_unit_test(every_cut_is_an_error),
        cmocka_unit_test(damage_at_every_byte_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
