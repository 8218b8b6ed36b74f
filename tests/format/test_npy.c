#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/format.h"
#include "format/npy.h"
#include "plumb/run.h"
#include "scratch.h"

/* A .npy file of that version around a header text and its elements. */
static size_t make_npy(uint8_t *out, unsigned version, const char *dict, const void *elements,
                       size_t bytes)
{
    size_t length = strlen(dict), prefix = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    for (size_t i = 8; i < prefix; i++)
        out[i] = (uint8_t)(length >> (8 * (i - 8)));
    memcpy(out + prefix, dict, length);
    if (bytes)
        memcpy(out + prefix + length, elements, bytes);
    return prefix + length + bytes;
}

/* Parses a header, from memory that ends where it does. */
static enum plumb_code parse(const char *dict, struct npy_header *header, struct plumb_error *err)
{
    uint8_t bytes[1024];
    size_t size = make_npy(bytes, 1, dict, NULL, 0);
    uint8_t *exact = malloc(size);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    enum plumb_code code = npy_parse(exact, size, header, err);
    free(exact);
    return code;
}

static void descr_names_the_type(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        enum plumb_dtype dtype;
        bool swap;
    } cases[] = {
        {"|b1", PLUMB_BOOL, false}, {"|u1", PLUMB_U8, false},   {"<u2", PLUMB_U16, false},
        {">u2", PLUMB_U16, true},   {"<u4", PLUMB_U32, false},  {"<u8", PLUMB_U64, false},
        {"|i1", PLUMB_I8, false},   {">i1", PLUMB_I8, false},   {"<i2", PLUMB_I16, false},
        {"=i4", PLUMB_I32, false},  {">i8", PLUMB_I64, true},   {"<f2", PLUMB_F16, false},
        {"<f4", PLUMB_F32, false},  {">f4", PLUMB_F32, true},   {"f8", PLUMB_F64, false},
        {"<c8", PLUMB_C64, false},  {">c16", PLUMB_C128, true}, {"<c16", PLUMB_C128, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char dict[128];
        struct npy_header header;
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }\n",
                 cases[i].descr);
        assert_int_equal(parse(dict, &header, NULL), PLUMB_OK);
        assert_int_equal(header.dtype, cases[i].dtype);
        assert_int_equal(header.swap, cases[i].swap);
    }
}

static void header_may_be_written_in_many_ways(void **state)
{
    (void)state;
    static const char *const dicts[] = {
        "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }          \n",
        "{'shape': (3, 4), 'fortran_order': True, 'descr': '<f4'}",
        "{\"descr\":\"<f4\",\"fortran_order\":True,\"shape\":(3,4,)}",
        "  { 'fortran_order' : True , 'shape' : ( 3 , 4 ) , 'descr' : '<f4' , } \n",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (3L, 4L), }",
    };
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
        struct npy_header header;
        assert_int_equal(parse(dicts[i], &header, NULL), PLUMB_OK);
        assert_int_equal(header.dtype, PLUMB_F32);
        assert_true(header.fortran);
        assert_int_equal(header.ndim, 2);
        assert_int_equal(header.shape[0], 3);
        assert_int_equal(header.shape[1], 4);
        assert_int_equal(header.data_offset, 10 + strlen(dicts[i]));
    }
}

static void damage_has_a_position(void **state)
{
    (void)state;
    static const struct {
        const char *dict;
        uint64_t at;
    } cases[] = {
        {"", 10},
        {"x", 10},
        {"{", 11},
        {"{}", 12},
        {"{'descr'", 18},
        {"{'descr' '<f4'}", 19},
        {"{'descr': <f4}", 20},
        {"{'descr': '<f4}", 20},
        {"{'descr': '<f4' 'shape': ()}", 26},
        {"{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", 44},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", 60},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", 62},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", 63},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", 61},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 61},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", 79},
        {"{'descr': '<f4', 'fortran_order': False}", 50},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': ()}", 27},
        {"{'descr': '<f4', 'color': 1}", 27},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct npy_header header;
        struct plumb_error err;
        enum plumb_code code = parse(cases[i].dict, &header, &err);
        if (code != PLUMB_E_FORMAT || err.offset != cases[i].at)
            fail_msg("%s: code %d at %llu: %s", cases[i].dict, (int)code,
                     (unsigned long long)err.offset, err.message);
    }
}

static void other_types_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *descr, *named, *advice;
    } cases[] = {
        {"'|O'", "type |O:", "never loaded"},
        {"'<U5'", "type <U5:", "text"},
        {"'|S3'", "type |S3:", "text"},
        {"'<M8[ns]'", "type <M8[ns]:", "int64"},
        {"'<m8[s]'", "type <m8[s]:", "int64"},
        {"'|V2'", "type |V2:", ".safetensors"},
        {"'<V2'", "type <V2:", "float32"},
        {"'<f16'", "type <f16:", "64 bits"},
        {"''", "type :", "does not read"},
        {"[('a', '<f4'), ('b', [('c', '<i8')])]",
         "type [('a', '<f4'), ('b', [('c', '<i8')])]:", "structure"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char dict[256];
        struct npy_header header;
        struct plumb_error err;
        snprintf(dict, sizeof dict, "{'descr': %s, 'fortran_order': False, 'shape': (2,), }",
                 cases[i].descr);
        assert_int_equal(parse(dict, &header, &err), PLUMB_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, cases[i].named));
        assert_non_null(strstr(err.message, cases[i].advice));
        assert_int_equal(err.offset, 20);
    }
}

static void other_versions_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[256];
    size_t size =
        make_npy(bytes, 4, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "", 0);
    struct npy_header header;
    struct plumb_error err;
    assert_int_equal(npy_parse(bytes, size, &header, &err), PLUMB_E_UNSUPPORTED);
    assert_int_equal(err.offset, 6);
}

/* Lists bytes in memory as if they were a file. */
static enum plumb_code list_bytes(const uint8_t *bytes, size_t size, struct listing *listing,
                                  struct plumb_error *err)
{
    struct plumb_file file = {.data = bytes, .size = size, .file_size = size};
    listing->path = "folder/some.name.npy";
    return format_list(&format_npy, listing, &file, err);
}

static void every_cut_is_an_error(void **state)
{
    (void)state;
    static const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
    const float values[] = {1, 2, 3, 4};
    for (unsigned version = 1; version <= 3; version++) {
        uint8_t bytes[256];
        size_t size = make_npy(bytes, version, dict, values, sizeof values);
        for (size_t cut = 0; cut <= size; cut++) {
            uint8_t *exact = malloc(cut ? cut : 1);
            assert_non_null(exact);
            memcpy(exact, bytes, cut);
            struct arena arena = {0};
            struct listing listing = {.arena = &arena};
            struct plumb_error err;
            enum plumb_code code = list_bytes(exact, cut, &listing, &err);
            if (cut == size) {
                assert_int_equal(code, PLUMB_OK);
                assert_int_equal(listing.count, 1);
                assert_string_equal(listing.records[0].name, "some.name");
                assert_int_equal(listing.records[0].offset, size - sizeof values);
                assert_int_equal(listing.records[0].bytes, sizeof values);
            } else {
                assert_int_equal(code, PLUMB_E_FORMAT);
                assert_int_equal(listing.count, 0);
                assert_string_equal(err.file, "folder/some.name.npy");
            }
            arena_free(&arena);
            free(exact);
        }
    }
}

static void huge_promises_are_refused(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "(1152921504606846976,)",
        "(9223372036854775807,)",
        "(4294967296, 4294967296)",
        "(1073741824, 1073741824)",
        "(0, 9223372036854775807, 9223372036854775807)",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        uint8_t bytes[256];
        char dict[128];
        snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': %s}",
                 shapes[i]);
        size_t size = make_npy(bytes, 1, dict, "", 0);
        struct arena arena = {0};
        struct listing listing = {.arena = &arena};
        struct plumb_error err;
        assert_int_equal(list_bytes(bytes, size, &listing, &err), PLUMB_E_FORMAT);
        arena_free(&arena);
    }
}

/* Opens a file as a run and returns its only tensor as float64 numbers in C order. */
static void load_values(const char *path, struct plumb_tensor *tensor, double *values)
{
    struct plumb_run *run;
    struct plumb_payload payload;
    struct plumb_error err;
    assert_int_equal(plumb_run_open(&run, path, &err), PLUMB_OK);
    assert_string_equal(plumb_run_kind(run), "npy");
    assert_int_equal(plumb_run_count(run), 1);
    assert_int_equal(plumb_run_load(run, 0, &payload, &err), PLUMB_OK);
    *tensor = payload.tensor;
    plumb_tensor_to_f64(&payload.tensor, 0, (size_t)tensor->count, values);
    plumb_payload_release(&payload);
    plumb_run_free(run);
}

static void values_are_read(void **state)
{
    (void)state;
    static const float numbers[] = {1, 2, 3, 4, 5, 6};
    static const uint8_t big[] = {0x3f, 0x80, 0, 0, 0x40, 0, 0, 0};
    struct scratch scratch;
    struct plumb_tensor tensor;
    double values[8];
    uint8_t bytes[512];
    scratch_make(&scratch);

    size_t size = make_npy(bytes, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
                           numbers, sizeof numbers);
    load_values(scratch_write(&scratch, "c.npy", bytes, size), &tensor, values);
    assert_true(tensor.dense);
    for (int i = 0; i < 6; i++)
        assert_true(values[i] == i + 1);

    size = make_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", numbers,
                    sizeof numbers);
    load_values(scratch_write(&scratch, "f.npy", bytes, size), &tensor, values);
    static const double fortran[] = {1, 3, 5, 2, 4, 6};
    assert_false(tensor.dense);
    assert_memory_equal(values, fortran, sizeof fortran);

    size = make_npy(bytes, 3, "{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", big,
                    sizeof big);
    load_values(scratch_write(&scratch, "b.npy", bytes, size), &tensor, values);
    assert_true(tensor.swap);
    assert_true(values[0] == 1 && values[1] == 2);

    /* A scalar, with bytes behind it that belong to nobody. */
    size = make_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': ()}", numbers, 7);
    load_values(scratch_write(&scratch, "s.npy", bytes, size), &tensor, values);
    assert_int_equal(tensor.rank, 0);
    assert_int_equal(tensor.count, 1);
    assert_true(values[0] == 1);

    size = make_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 3)}", "", 0);
    load_values(scratch_write(&scratch, "e.npy", bytes, size), &tensor, values);
    assert_int_equal(tensor.count, 0);
    scratch_remove(&scratch);
}

/* A file is listed by its first 512 bytes, if these are all of the header. */
static void headers_may_be_long(void **state)
{
    (void)state;
    static const float numbers[] = {1, 2};
    struct scratch scratch;
    struct plumb_tensor tensor;
    double values[2];
    uint8_t bytes[1024];
    scratch_make(&scratch);
    for (unsigned version = 1; version <= 3; version++)
        for (int pad = 440; pad < 460; pad++) {
            char dict[600];
            snprintf(dict, sizeof dict,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}%*s", pad, "");
            size_t size = make_npy(bytes, version, dict, numbers, sizeof numbers);
            assert_int_equal(format_npy.listed_by(bytes, 512), size - sizeof numbers);
            load_values(scratch_write(&scratch, "long.npy", bytes, size), &tensor, values);
            assert_true(values[0] == 1 && values[1] == 2);
        }
    make_npy(bytes, 2, "{}", "", 0);
    bytes[10] = 1; /* a header of 64 KiB and more */
    assert_int_equal(format_npy.listed_by(bytes, 512), 0);
    assert_int_equal(format_npy.listed_by(bytes, 11), 0);
    scratch_remove(&scratch);
}

static void a_changed_file_is_noticed(void **state)
{
    (void)state;
    static const float numbers[] = {1, 2};
    struct scratch scratch;
    uint8_t bytes[256];
    struct plumb_run *run;
    struct plumb_payload payload;
    struct plumb_error err;
    scratch_make(&scratch);
    size_t size = make_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
                           numbers, sizeof numbers);
    const char *path = scratch_write(&scratch, "x.npy", bytes, size);
    assert_int_equal(plumb_run_open(&run, path, &err), PLUMB_OK);

    assert_int_equal(truncate(path, (off_t)size - 1), 0);
    assert_int_equal(plumb_run_load(run, 0, &payload, &err), PLUMB_E_IO);
    assert_non_null(strstr(err.message, "changed since it was listed"));
    assert_string_equal(err.file, path);

    assert_int_equal(truncate(path, (off_t)size + 1), 0);
    assert_int_equal(plumb_run_load(run, 0, &payload, &err), PLUMB_E_IO);
    assert_non_null(strstr(err.message, "changed since it was listed"));

    assert_int_equal(unlink(path), 0);
    assert_int_equal(plumb_run_load(run, 0, &payload, &err), PLUMB_E_IO);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descr_names_the_type),
        cmocka_unit_test(header_may_be_written_in_many_ways),
        cmocka_unit_test(damage_has_a_position),
        cmocka_unit_test(other_types_are_refused_by_name),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(every_cut_is_an_error),
        cmocka_unit_test(huge_promises_are_refused),
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(headers_may_be_long),
        cmocka_unit_test(a_changed_file_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
