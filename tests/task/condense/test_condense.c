#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/condensed.h"
#include "metric/sketch.h"
#include "plumb/condense.h"
#include "plumb/write.h"
#include "scratch.h"
#include "task/condense/hold.h"
#include "task/condense/measure.h"
#include "task/condense/text.h"
#include "task/condense/writers.h"

#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void test_keep(void **state)
{
    (void)state;
    unsigned keep;
    struct plumb_error err;
    assert_int_equal(plumb_keep_parse(&keep, "minmax,mean,norm,crc32,hash,sketch", NULL), PLUMB_OK);
    assert_int_equal(keep, PLUMB_KEEP_ALL);
    assert_int_equal(plumb_keep_parse(&keep, "sketch", NULL), PLUMB_OK);
    assert_int_equal(keep, PLUMB_KEEP_SKETCH);
    static const char *const wrong[] = {"", "min", "mean,", ",mean", "mean,,norm", "meannorm"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(plumb_keep_parse(&keep, wrong[i], &err), PLUMB_E_ARG);
}

static bool sketch_is(const struct plumb_sketch *sketch, const double *numbers, size_t n)
{
    const struct sketch_frame frame = {.version = SKETCH_VERSION, .whole_tiles = true};
    const struct kernels kernels = kernels_current();
    struct plumb_sketch other;
    struct sketch_state *state = sketch_new(&frame);
    assert_non_null(state);
    sketch_add(state, &kernels, 0, numbers, n, false);
    assert_true(sketch_finish(state, &other));
    sketch_free(state);
    return memcmp(sketch, &other, sizeof other) == 0;
}

static void test_packed_and_complex(void **state)
{
    (void)state;
    struct measured out;
    struct plumb_tensor tensor;
    static const unsigned char nibbles[] = {0x21, 0xF3}; /* 1, 2, 3, -1 */
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_I4, 1, (const int64_t[]){4}, NULL), PLUMB_OK);
    tensor.data = nibbles;
    assert_int_equal(measure(&out, &tensor, PLUMB_KEEP_ALL, NULL, NULL), MEASURE_DONE);
    assert_true(out.stats.min == -1 && out.stats.max == 3 && out.stats.mean == 1.25);
    assert_true(sketch_is(&out.sketch, (const double[]){1, 2, 3, -1}, 4));

    static const float parts[] = {3, 4, 0, -1}; /* sizes 5 and 1 */
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_C64, 1, (const int64_t[]){2}, NULL),
                     PLUMB_OK);
    tensor.data = parts;
    assert_int_equal(measure(&out, &tensor, PLUMB_KEEP_ALL, NULL, NULL), MEASURE_DONE);
    assert_true(out.stats.min == 1 && out.stats.max == 5 && out.stats.mean == 3);
    assert_true(sketch_is(&out.sketch, (const double[]){3, 4, 0, -1}, 4));
}

static bool at_once(const void *context)
{
    (void)context;
    return true;
}

static void test_measuring_ends_when_asked(void **state)
{
    (void)state;
    struct measured out;
    struct plumb_tensor tensor;
    static const unsigned char bytes[3000];
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_U8, 1, (const int64_t[]){3000}, NULL),
                     PLUMB_OK);
    tensor.data = bytes;
    assert_int_equal(measure(&out, &tensor, PLUMB_KEEP_ALL, at_once, NULL), MEASURE_STOPPED);
}

/* -- The condensed form ------------------------------------------------------------------------ */

static void describe(struct buf *text)
{
    struct plumb_tensor tensor;
    struct measured measured;
    static const double values[] = {1, -INFINITY, 0.1};
    struct plumb_record record = {
        .name = "odd \"name\"\n\xc3\xa4", .step = 2, .rank = 1, .requires_grad = 1};
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F64, 2, (const int64_t[]){3, 1}, NULL),
                     PLUMB_OK);
    tensor.data = values;
    assert_int_equal(measure(&measured, &tensor, PLUMB_KEEP_ALL, NULL, NULL), MEASURE_DONE);
    text_begin(text, "file\\.npz", "npz", 123);
    text_tensor(text, &record, &tensor, &measured, PLUMB_KEEP_ALL, true);
    record.name = "second";
    record.step = record.rank = record.requires_grad = -1;
    text_tensor(text, &record, &tensor, &measured, PLUMB_KEEP_NORM, false);
    text_end(text);
    assert_false(text->failed);
}

static enum plumb_code list(struct listing *listing, const char *text, size_t size,
                            struct plumb_error *err)
{
    struct plumb_file file = {.data = (const uint8_t *)text, .size = size, .file_size = size};
    return format_list(&format_condensed, listing, &file, err);
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    struct buf text = {0};
    struct arena arena = {0};
    struct listing listing = {.arena = &arena, .path = "x"};
    describe(&text);
    assert_true(format_condensed.probe((const uint8_t *)text.data, text.size));
    assert_int_equal(list(&listing, text.data, text.size, NULL), PLUMB_OK);
    assert_int_equal(listing.count, 2);
    const struct plumb_record *record = &listing.records[0];
    struct plumb_value statistic[PLUMB_STATISTICS];
    for (unsigned k = 0; k < PLUMB_STATISTICS; k++)
        statistic[k] = plumb_recorded_statistic(record->recorded, k);
    assert_string_equal(record->name, "odd \"name\"\n\xc3\xa4");
    assert_true(record->step == 2 && record->rank == 1 && record->requires_grad == 1);
    assert_true(record->absent && record->dtype == PLUMB_F64 && record->count == 3);
    assert_string_equal(record->recorded->shape, "[3, 1]");
    assert_string_equal(record->recorded->data_name, "file\\.npz");
    assert_true(statistic[PLUMB_STATISTIC_MAX].number == 1);
    assert_true(isinf(statistic[PLUMB_STATISTIC_MIN].number));
    assert_string_equal(statistic[PLUMB_STATISTIC_MIN].text, "-inf");
    assert_true(isnan(plumb_recorded_kept(record->recorded)->deviation.number));
    assert_int_equal(strlen(record->recorded->checksum), 8);
    const struct condensed_note *note = record->detail;
    assert_string_equal(note->format, "npz");
    const struct plumb_kept *kept = plumb_recorded_kept(record->recorded);
    assert_int_equal(kept->neg_inf, 1);
    assert_true(kept->finite[PLUMB_STATISTIC_MIN].number == 0.1);
    assert_true(kept->finite[PLUMB_STATISTIC_MEAN].number == 0.55);
    assert_true(sketch_is(kept->sketch, (const double[]){1, -INFINITY, 0.1}, 3));

    record = &listing.records[1];
    assert_null(record->recorded->checksum);
    assert_int_equal(record->recorded->statistic_kind[PLUMB_STATISTIC_MAX], PLUMB_VALUE_NONE);
    assert_int_equal(record->recorded->statistic_kind[PLUMB_STATISTIC_NORM], PLUMB_VALUE_NUMBER);
    arena_free(&arena);
    buf_free(&text);
}

static void test_every_cut_is_noticed(void **state)
{
    (void)state;
    struct buf text = {0};
    describe(&text);
    for (size_t size = 0; size + 1 < text.size; size++) { /* without its newline it is whole */
        struct arena arena = {0};
        struct listing listing = {.arena = &arena, .path = "x"};
        struct plumb_error err = {0};
        char *exact = malloc(size + 1); /* so that sanitizers see one byte too many */
        assert_non_null(exact);
        char *copy = exact + 1;
        memcpy(copy, text.data, size);
        assert_int_equal(list(&listing, copy, size, &err), PLUMB_E_FORMAT);
        assert_int_equal(listing.count, 0);
        assert_true(err.message[0]);
        free(exact);
        arena_free(&arena);
    }
    buf_free(&text);
}

static void test_other_versions_and_odd_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum plumb_code code;
        bool error; /* of the record */
    } cases[] = {
        {"{\"plumb_condensed\": 0}", PLUMB_E_UNSUPPORTED, false},
        {"{\"plumb_condensed\": 6}", PLUMB_E_UNSUPPORTED, false},
        {"{\"plumb_condensed\": 1}", PLUMB_E_FORMAT, false},
        {"{\"plumb_condensed\": 1, \"file\": \"x\", \"format\": \"npy\", \"tensors\": []}",
         PLUMB_E_FORMAT, false},
        {"{\"plumb_condensed\": 1, \"file\": \"x\", \"format\": \"npy\", \"tensors\": [{}]}",
         PLUMB_E_FORMAT, false},
        {"{\"plumb_condensed\": 1, \"tensors\": [{\"name\": \"x\", \"dtype\": \"int8\", \"shape\": "
         "[]}]}",
         PLUMB_E_FORMAT, false},
        {"{\"plumb_condensed\": 1, \"file\": \"x\", \"format\": \"npy\", \"tensors\": [{\"name\": "
         "\"x\", \"dtype\": \"int7\", \"shape\": []}]}",
         PLUMB_OK, true},
        {"{\"plumb_condensed\": 1, \"file\": \"x\", \"format\": \"npy\", \"tensors\": [{\"name\": "
         "\"x\", \"dtype\": \"int8\", \"shape\": [-1]}]}",
         PLUMB_OK, true},
        {"{\"plumb_condensed\": 1, \"file\": \"x\", \"format\": \"npy\", \"tensors\": [{\"name\": "
         "\"x\", \"dtype\": \"int8\", \"shape\": [7]}]}",
         PLUMB_OK, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = {0};
        struct listing listing = {.arena = &arena, .path = "x"};
        assert_int_equal(list(&listing, cases[i].text, strlen(cases[i].text), NULL), cases[i].code);
        if (!cases[i].code)
            assert_int_equal(listing.records[0].error != NULL, cases[i].error);
        arena_free(&arena);
    }
}

/* A tensor of this shape with this sketch. */
static enum plumb_code list_shaped(const char *shape, const char *sketch, bool *kept)
{
    char text[4096];
    struct arena arena = {0};
    struct listing listing = {.arena = &arena, .path = "x"};
    snprintf(text, sizeof text,
             "{\"plumb_condensed\": 3, \"file\": \"x\", \"format\": \"npy\", \"tensors\": "
             "[{\"name\": \"x\", \"sketch\": %s, \"dtype\": \"int8\", \"shape\": %s}]}",
             sketch, shape);
    enum plumb_code code = list(&listing, text, strlen(text), NULL);
    *kept = !code && !listing.records[0].error &&
            plumb_recorded_kept(listing.records[0].recorded)->sketch;
    arena_free(&arena);
    return code;
}

static enum plumb_code list_sketch(const char *sketch, bool *kept)
{
    return list_shaped("[7]", sketch, kept);
}

static void test_sketches(void **state)
{
    (void)state;
    /* Others are not ours to understand. */
    static const char *const skipped[] = {"[1.5, 2]", "{\"version\": 9, \"bits\": [{}]}", "null",
                                          "{}"};
    bool kept;
    for (size_t i = 0; i < sizeof skipped / sizeof *skipped; i++) {
        assert_int_equal(list_sketch(skipped[i], &kept), PLUMB_OK);
        assert_false(kept);
    }
    char sums[1369], text[1600];
    memset(sums, 'A', 1367);
    memcpy(sums + 1366, "==", 3);
    static const struct {
        const char *exponent;
        char at_5; /* 'v' makes 1.0 out of sum 0 */
        enum plumb_code code;
    } cases[] = {{"0", 'A', PLUMB_OK},
                 {"-1074", 'A', PLUMB_OK},
                 {"99999999999", 'A', PLUMB_E_FORMAT},
                 {"1.5", 'A', PLUMB_E_FORMAT},
                 {"0", '=', PLUMB_E_FORMAT},
                 {"0", 'f', PLUMB_E_FORMAT}}; /* above 1 */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sums[4] = cases[i].at_5;
        snprintf(text, sizeof text, "{\"version\": 1, \"exponent\": %s, \"sums\": \"%s\"}",
                 cases[i].exponent, sums);
        assert_int_equal(list_sketch(text, &kept), cases[i].code);
        assert_int_equal(kept, !cases[i].code);
    }
}

/* Version 3: 608 bytes as base85 text, and 12 more for each block. */
static void test_narrow_sketches(void **state)
{
    (void)state;
    enum { SUMS = 608 / 4 * 5, BLOCK = 12 / 4 * 5 };
    static const struct {
        const char *shape, *exponents, *axes;
        size_t length;
        char first;
        enum plumb_code code;
        bool kept;
    } cases[] = {
        {"[7]", "[0, 0]", "[]", SUMS, '0', PLUMB_OK, true},
        {"[7]", "[-1074, 1024]", "[]", SUMS, 'z', PLUMB_OK, true},
        {"[7]", "[0, 0]", "[[0, 2, 4]]", SUMS + 2 * BLOCK, '0', PLUMB_OK, true},
        {"[7, 9]", "[0, 0]", "[[0, 2, 4], [1, 3, 3]]", SUMS + 5 * BLOCK, '0', PLUMB_OK, true},
        {"[7, 9]", "[0, 0]", "[[1, 3, 3], [0, 2, 4]]", SUMS + 5 * BLOCK, '0', PLUMB_OK, false},
        {"[7]", "[0, 0]", "[[0, 3, 4]]", SUMS + 3 * BLOCK, '0', PLUMB_OK, false},
        {"[7]", "[0, 0]", "[[1, 2, 4]]", SUMS + 2 * BLOCK, '0', PLUMB_OK, false},
        {"[]", "[0, 0]", "[[0, 2, 4]]", SUMS + 2 * BLOCK, '0', PLUMB_OK, false},
        {"[0]", "[0, 0]", "[[0, 2, 4]]", SUMS + 2 * BLOCK, '0', PLUMB_OK, false},
        {"[7]", "[0, 0]", "[]", SUMS, '"', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]", "[]", SUMS, '\\', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]", "[]", SUMS, ' ', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]", "[]", SUMS, '~', PLUMB_E_FORMAT, false}, /* above 2^32 */
        {"[7]", "[0, 0]", "[]", SUMS - 1, '0', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]", "[]", SUMS + 5, '0', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]", "[[0, 2, 4]]", SUMS, '0', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]", "[[0, 17, 1]]", SUMS + 17 * BLOCK, '0', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]", "[[0, 0, 4]]", SUMS, '0', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]", "[[0, 2, 0]]", SUMS + 2 * BLOCK, '0', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]", "[[-1, 2, 4]]", SUMS + 2 * BLOCK, '0', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]", "[[0, 2]]", SUMS + 2 * BLOCK, '0', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 0]",
         "[[0, 1, 7], [0, 1, 7], [0, 1, 7], [0, 1, 7], [0, 1, 7], [0, 1, 7], [0, 1, 7]]",
         SUMS + 7 * BLOCK, '0', PLUMB_E_FORMAT, false},
        {"[7]", "[0]", "[]", SUMS, '0', PLUMB_E_FORMAT, false},
        {"[7]", "[0, 9999]", "[]", SUMS, '0', PLUMB_E_FORMAT, false},
        {"[7]", "7", "[]", SUMS, '0', PLUMB_E_FORMAT, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sums[1200], text[1600];
        bool kept = false;
        memset(sums, '0', cases[i].length);
        sums[0] = cases[i].first;
        sums[cases[i].length] = '\0';
        snprintf(text, sizeof text,
                 "{\"version\": 3, \"exponents\": %s, \"axes\": %s, \"sums\": \"%s\"}",
                 cases[i].exponents, cases[i].axes, sums);
        assert_int_equal(list_shaped(cases[i].shape, text, &kept), cases[i].code);
        assert_int_equal(kept, cases[i].kept);
    }
}

/* Version 4: 468 bytes as base85 text, and 5 more for each block that the shape has. */
static void test_sketches_by_shape(void **state)
{
    (void)state;
    enum { SUMS = 468 / 4 * 5 };
    static const struct {
        const char *shape, *first; /* text of both exponents */
        size_t length;
        enum plumb_code code;
        bool kept;
    } cases[] = {
        {"[7]", "00000", SUMS, PLUMB_OK, true},
        {"[]", "00000", SUMS, PLUMB_OK, true},
        {"[0]", "00000", SUMS, PLUMB_OK, true},
        {"[-1]", "00000", SUMS, PLUMB_OK, false},
        {"[128]", "00000", SUMS + 15, PLUMB_OK, true}, /* two blocks, ten bytes, and two more */
        {"[128]", "00000", SUMS, PLUMB_OK, false},
        {"[1024]", "00000", SUMS + 100, PLUMB_OK, true},
        {"[64, 1024]", "00000", SUMS + 200, PLUMB_OK, true},
        {"[64, 1024]", "00000", SUMS + 100, PLUMB_OK, false},
        {"[7]", "00000", SUMS - 1, PLUMB_OK, false},
        {"[7]", "00000", SUMS + 5, PLUMB_OK, false},
        {"[7]", "0000~", SUMS, PLUMB_OK, false},
        {"[7]", "zzzzz", SUMS, PLUMB_OK, false}, /* exponents that no sum has */
        {"[7]", "000\\\\", SUMS, PLUMB_E_FORMAT, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sums[1200], text[1600];
        bool kept = false;
        memset(sums, '0', cases[i].length);
        memcpy(sums, cases[i].first, 5);
        sums[cases[i].length] = '\0';
        snprintf(text, sizeof text, "{\"version\":4,\"sums\":\"%s\"}", sums);
        assert_int_equal(list_shaped(cases[i].shape, text, &kept), cases[i].code);
        assert_int_equal(kept, cases[i].kept);
    }
    bool kept;
    assert_int_equal(list_sketch("{\"version\":4}", &kept), PLUMB_E_FORMAT);
    assert_int_equal(list_sketch("{\"version\":4,\"sums\":3}", &kept), PLUMB_E_FORMAT);
}

/* Blocks along axes must be those of the shape. */
static void test_axes(void **state)
{
    (void)state;
    char sums[1369], text[2400];
    memset(sums, 'A', 1367);
    memcpy(sums + 1366, "==", 3);
    static const struct {
        const char *shape, *axes;
        enum plumb_code code;
        bool kept;
    } cases[] = {
        {"[7]", "[]", PLUMB_OK, true},
        {"[7]", "[{\"axis\": 0, \"block\": 4, \"sums\": \"%s\"}]", PLUMB_OK, true},
        {"[7]", "[{\"axis\": 0, \"block\": 3, \"sums\": \"%s\"}]", PLUMB_OK, false},
        {"[7]", "[{\"axis\": 1, \"block\": 4, \"sums\": \"%s\"}]", PLUMB_OK, false},
        {"[]", "[{\"axis\": 0, \"block\": 4, \"sums\": \"%s\"}]", PLUMB_OK, false},
        {"[0]", "[{\"axis\": 0, \"block\": 4, \"sums\": \"%s\"}]", PLUMB_OK, false},
        {"[7]", "[{\"axis\": 0, \"block\": 0, \"sums\": \"%s\"}]", PLUMB_E_FORMAT, false},
        {"[7]", "[{\"axis\": -1, \"block\": 4, \"sums\": \"%s\"}]", PLUMB_E_FORMAT, false},
        {"[7]", "[{\"axis\": 99, \"block\": 4, \"sums\": \"%s\"}]", PLUMB_E_FORMAT, false},
        {"[7]", "[{\"axis\": 0, \"block\": 4, \"sums\": \"AA%s\"}]", PLUMB_E_FORMAT, false},
        {"[7]", "[{\"axis\": 0, \"block\": 4, \"sums\": \"\"}]", PLUMB_OK, false},
        {"[7]", "{}", PLUMB_E_FORMAT, false},
    };
    static const char two[] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="; /* blocks */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char axes[200];
        bool kept;
        const char *gap = strstr(cases[i].axes, "%s");
        if (gap)
            snprintf(axes, sizeof axes, "%.*s%s%s", (int)(gap - cases[i].axes), cases[i].axes, two,
                     gap + 2);
        else
            snprintf(axes, sizeof axes, "%s", cases[i].axes);
        snprintf(text, sizeof text,
                 "{\"version\": 2, \"exponent\": 0, \"sums\": \"%s\", \"axes\": %s}", sums, axes);
        assert_int_equal(list_shaped(cases[i].shape, text, &kept), cases[i].code);
        assert_int_equal(kept, cases[i].kept);
    }
}

/* -- Holding ----------------------------------------------------------------------------------- */

/* A process of this user that is just starting another program does not let anybody look. */
static enum writers settled_writers(const struct stat *file)
{
    enum writers answer = writers_of(file);
    for (int k = 0; answer == WRITERS_UNKNOWN && k < 100; k++) {
        usleep(20000);
        answer = writers_of(file);
    }
    return answer;
}

static void test_hold(void **state)
{
    (void)state;
    struct scratch scratch;
    struct hold hold;
    scratch_make(&scratch);
    const char *path = scratch_write(&scratch, "x", "1234", 4);
    assert_int_equal(hold_take(&hold, path, NULL), HOLD_FREE);
    assert_true(hold_is_intact(&hold));
    hold_release(&hold);

    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(hold_take(&hold, path, NULL), HOLD_BUSY);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(writers_of(&st), WRITERS_SOME);
    close(fd);
    assert_int_equal(settled_writers(&st), WRITERS_NONE);

    /* Who opens it for writing waits for us, and we are told. */
    assert_int_equal(hold_take(&hold, path, NULL), HOLD_FREE);
    if (hold.leased) {
        pid_t child = fork();
        if (child == 0)
            _exit(open(path, O_WRONLY) < 0);
        for (int i = 0; i < 10000 && !hold_is_wanted(&hold); i++)
            usleep(10000);
        assert_true(hold_is_wanted(&hold));
        assert_false(hold_is_intact(&hold));
        hold_release(&hold);
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    } else {
        hold_release(&hold);
    }

    /* Another file of the same name is not what was held. */
    assert_int_equal(hold_take(&hold, path, NULL), HOLD_FREE);
    assert_int_equal(unlink(path), 0);
    assert_false(hold_is_intact(&hold));
    scratch_write(&scratch, "x", "1234", 4);
    assert_false(hold_is_intact(&hold));
    hold_release(&hold);

    assert_int_equal(hold_take(&hold, scratch_path(&scratch, "none"), NULL), HOLD_GONE);
    assert_int_equal(symlink("x", scratch_path(&scratch, "link")), 0);
    assert_int_equal(hold_take(&hold, scratch_path(&scratch, "link"), NULL), HOLD_GONE);
    scratch_remove(&scratch);
}

static void test_a_mapping_writes_too(void **state)
{
    (void)state;
    struct scratch scratch;
    struct stat st;
    scratch_make(&scratch);
    const char *path = scratch_write(&scratch, "x", "1234", 4);
    int fd = open(path, O_RDWR);
    void *map = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    close(fd);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(writers_of(&st), WRITERS_SOME);
    munmap(map, 4);
    assert_int_equal(settled_writers(&st), WRITERS_NONE);
    scratch_remove(&scratch);
}

/* -- All of it, through the library ------------------------------------------------------------ */

static void write_floats(struct scratch *scratch, const char *name, const float *values, int64_t n)
{
    struct plumb_tensor tensor;
    enum { ENOUGH = 1000 }; /* for condensing to save something; what follows is zero */
    float all[ENOUGH] = {0};
    memcpy(all, values, (size_t)n * sizeof *values);
    n = n < ENOUGH && !strstr(name, "_min_max") ? ENOUGH : n;
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F32, 1, &n, NULL), PLUMB_OK);
    tensor.data = all;
    assert_int_equal(plumb_npy_write(scratch_path(scratch, name), &tensor, NULL), PLUMB_OK);
}

static void test_names_stay(void **state)
{
    (void)state;
    struct scratch scratch;
    struct plumb_run *run;
    struct plumb_condensed done;
    static const float values[] = {1, 2, 4};
    scratch_make(&scratch);
    assert_int_equal(mkdir(scratch_path(&scratch, "a"), 0777), 0);
    write_floats(&scratch, "a/10.npy", values, 3);
    write_floats(&scratch, "a/2.npy", values, 2);
    write_floats(&scratch, "b_min_max.npy", values, 2);
    struct plumb_condense_options options = {.settle = 0.01, .threads = 2};
    assert_int_equal(plumb_condense(&done, scratch.folder, &options, NULL), PLUMB_OK);
    assert_int_equal(done.files, 2);
    assert_int_equal(done.failed + done.waiting, 0);
    assert_int_equal(plumb_run_open(&run, scratch.folder, NULL), PLUMB_OK);
    static const char *const names[] = {"a/2", "a/10", "b"};
    static const double largest[] = {2, 4, 2};
    assert_int_equal(plumb_run_count(run), 3);
    for (size_t i = 0; i < 3; i++) {
        const struct plumb_record *record = plumb_run_record(run, i);
        struct plumb_payload payload;
        assert_string_equal(record->name, names[i]);
        assert_true(record->recorded->statistic_number[PLUMB_STATISTIC_MAX] == largest[i]);
        assert_int_not_equal(plumb_run_load(run, i, &payload, NULL), PLUMB_OK);
    }
    plumb_run_free(run);

    /* The original, where both are there. */
    write_floats(&scratch, "a/2.npy", values, 3);
    assert_int_equal(plumb_run_open(&run, scratch.folder, NULL), PLUMB_OK);
    assert_int_equal(plumb_run_count(run), 3);
    assert_false(plumb_run_record(run, 0)->absent);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void test_bad_folders(void **state)
{
    (void)state;
    struct scratch scratch;
    struct plumb_condensed done;
    struct plumb_error err;
    struct plumb_condense_options options = {.settle = 0.01};
    scratch_make(&scratch);
    scratch_write(&scratch, "file", "x", 1);
    assert_int_equal(plumb_condense(&done, scratch.path, &options, &err), PLUMB_E_IO);
    assert_int_equal(plumb_condense(&done, scratch_path(&scratch, "none"), &options, &err),
                     PLUMB_E_IO);
    assert_int_equal(plumb_condense(&done, scratch.folder, &options, &err), PLUMB_OK);
    assert_int_equal(done.other, 1);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_packed_and_complex),
        cmocka_unit_test(test_measuring_ends_when_asked),
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_sketches),
        cmocka_unit_test(test_narrow_sketches),
        cmocka_unit_test(test_sketches_by_shape),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_every_cut_is_noticed),
        cmocka_unit_test(test_other_versions_and_odd_tensors),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_a_mapping_writes_too),
        cmocka_unit_test(test_names_stay),
        cmocka_unit_test(test_bad_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
