/* Out of memory, at every single allocation: an error or success, never a crash, never a leak.
 *
 * The linker sends every allocation of plumb through the functions below (--wrap). Each scenario
 * runs once to count its allocations, then once for each with that one failing, then once for each
 * with all from there on failing. Allocations inside shared libraries are not plumb's and never
 * fail. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/compare.h"
#include "plumb/condense.h"
#include "plumb/write.h"
#include "scratch.h"

#include <errno.h>

/* -- Allocations that fail on demand ----------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);

enum { TABLE = 1 << 16 };

static struct {
    bool on, persistent;
    size_t calls, fail_at;
    size_t live;
    void *pointers[TABLE]; /* what is allocated; a hash set without deletion marks */
} faults;

static bool fails(void)
{
    size_t call = faults.on ? faults.calls++ : 0;
    bool now = faults.on && (faults.persistent ? call >= faults.fail_at : call == faults.fail_at);
    if (now)
        errno = ENOMEM;
    return now;
}

static size_t slot_of(const void *memory)
{
    size_t at = (size_t)((uintptr_t)memory / 16 * 0x9e3779b97f4a7c15u >> 48);
    while (faults.pointers[at] && faults.pointers[at] != memory)
        at = (at + 1) % TABLE;
    return at;
}

static void *remember(void *memory)
{
    if (faults.on && memory) {
        faults.pointers[slot_of(memory)] = memory;
        faults.live++;
    }
    return memory;
}

/* What the set does not know was allocated by a library, or before. */
static void forget(const void *memory)
{
    size_t hole = memory ? slot_of(memory) : 0;
    if (!memory || !faults.pointers[hole])
        return;
    faults.live--;
    faults.pointers[hole] = NULL;
    for (size_t at = (hole + 1) % TABLE; faults.pointers[at]; at = (at + 1) % TABLE) {
        void *moved = faults.pointers[at];
        faults.pointers[at] = NULL;
        faults.pointers[slot_of(moved)] = moved;
    }
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : remember(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : remember(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    if (fails())
        return NULL;
    forget(old);
    return remember(__real_realloc(old, size));
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : remember(__real_strdup(text));
}

void __wrap_free(void *memory)
{
    forget(memory);
    __real_free(memory);
}

/* Did one fail since the attempt began? */
static bool any_failed(void)
{
    return faults.calls > faults.fail_at;
}

/* -- Running a scenario ------------------------------------------------------------------------ */

typedef enum plumb_code scenario(const void *context, struct plumb_error *err);

static enum plumb_code attempt(scenario *run, const void *context, size_t fail_at, bool persistent,
                               struct plumb_error *err)
{
    faults.calls = faults.live = 0;
    faults.fail_at = fail_at;
    faults.persistent = persistent;
    faults.on = true;
    *err = (struct plumb_error){.message = "unset"};
    enum plumb_code code = run(context, err);
    faults.on = false;
    return code;
}

static void check(const char *name, scenario *run, const void *context)
{
    struct plumb_error err;
    enum plumb_code code = attempt(run, context, SIZE_MAX, false, &err);
    if (code)
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(faults.live, 0);
    size_t count = faults.calls, survived = 0;
    assert_true(count > 0);
    for (int persistent = 0; persistent < 2; persistent++)
        for (size_t k = 0; k < count; k++) {
            code = attempt(run, context, k, persistent, &err);
            if (faults.live)
                fail_msg("%s: %zu blocks leak when allocation %zu of %zu%s fails", name,
                         faults.live, k, count, persistent ? " and all after it" : "");
            bool told = code == PLUMB_E_NOMEM || strstr(err.message, strerror(ENOMEM));
            if (code != PLUMB_OK && (!told || !strcmp(err.message, "unset")))
                fail_msg("%s: code %d (%s) when allocation %zu of %zu fails", name, code,
                         err.message, k, count);
            survived += code == PLUMB_OK;
        }
    printf("# %s: %zu allocations, went on without %zu of %zu\n", name, count, survived, 2 * count);
}

/* -- Scenarios --------------------------------------------------------------------------------- */

static enum plumb_code load_all(const struct plumb_run *run, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; !code && i < plumb_run_count(run); i++) {
        struct plumb_payload payload;
        if (plumb_run_record(run, i)->error)
            continue;
        code = plumb_run_load(run, i, &payload, err);
        if (!code)
            plumb_payload_release(&payload);
    }
    return code;
}

/* Opens, loads and sums up a run. */
static enum plumb_code read_run(const void *context, struct plumb_error *err)
{
    struct plumb_run *run = NULL;
    struct plumb_table *table = NULL;
    size_t unreadable;
    enum plumb_code code = plumb_run_open(&run, context, err);
    if (code) {
        assert_null(run);
        return code;
    }
    code = load_all(run, err);
    if (!code)
        code = plumb_summary(&table, &unreadable, run,
                             &(struct plumb_summary_options){.wide = true, .threads = 1}, err);
    if (!code)
        assert_true(unreadable > 0 || !any_failed());
    plumb_table_free(table);
    plumb_run_free(run);
    return code;
}

/* Compares a run with itself. Pairs that could not be compared must not have passed. */
static enum plumb_code compare_run(const void *context, struct plumb_error *err)
{
    struct plumb_run *run = NULL;
    struct plumb_comparison comparison;
    struct plumb_compare_options options = {
        .metrics = "all", .wide = true, .reasons = true, .threads = 1};
    enum plumb_code code = plumb_run_open(&run, context, err);
    if (code)
        return code;
    code = plumb_compare(&comparison, run, run, &options, err);
    if (!code) {
        assert_int_equal(comparison.compared + comparison.unreadable, plumb_run_count(run));
        assert_int_equal(plumb_table_rows(comparison.table), plumb_run_count(run));
        assert_int_equal(comparison.unmatched, 0);
        assert_true(comparison.unreadable > 0 || !any_failed());
        assert_non_null(comparison.closing);
        plumb_comparison_free(&comparison);
    } else {
        assert_true(!comparison.table && !comparison.closing);
    }
    plumb_run_free(run);
    return code;
}

static struct plumb_table *make_table(void)
{
    static const struct plumb_column columns[] = {{"Name", PLUMB_STYLE_TEXT, true, true},
                                                  {"Value", PLUMB_STYLE_NUMBER, false, false},
                                                  {"Count", PLUMB_STYLE_TEXT, false, false}};
    struct plumb_table *table = plumb_table_new(columns, 3);
    for (int i = 0; table && i < 100; i++) {
        bool ok = plumb_table_add_row(table, i % 3 ? PLUMB_NORMAL : PLUMB_FAILED) &&
                  plumb_table_text(table, 0, i % 2 ? "a name, \"quoted\"" : "module.layer.weight");
        if (!ok) {
            plumb_table_free(table);
            return NULL;
        }
        plumb_table_real(table, 1, i / 7.0);
        plumb_table_int(table, 2, i);
    }
    return table;
}

static enum plumb_code no_memory(struct plumb_error *err)
{
    return plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
}

static enum plumb_code print_table(const void *context, struct plumb_error *err)
{
    const enum plumb_table_format *format = context;
    const struct plumb_table_look look = {.width = 40, .colour = true};
    struct plumb_table *table = make_table();
    if (!table)
        return no_memory(err);
    FILE *stream = fopen("/dev/null", "w");
    assert_non_null(stream);
    enum plumb_code code = plumb_table_sort(table, "-Value", err);
    if (!code)
        code = plumb_table_print(table, *format, &look, stream, err);
    fclose(stream);
    plumb_table_free(table);
    return code;
}

static enum plumb_code save_table(const void *context, struct plumb_error *err)
{
    enum plumb_table_format format;
    struct plumb_table *table = make_table();
    if (!table)
        return no_memory(err);
    assert_true(plumb_table_format_of(context, &format));
    unlink(context);
    enum plumb_code code = plumb_table_save(table, context, format, NULL, err);
    plumb_table_free(table);
    return code;
}

struct two_runs {
    struct plumb_run *target, *golden;
    struct plumb_pair_options options;
};

static enum plumb_code match_runs(const void *context, struct plumb_error *err)
{
    const struct two_runs *runs = context;
    struct plumb_matching matching = {0};
    enum plumb_code code = plumb_match(&matching, runs->target, runs->golden, &runs->options, err);
    if (!code) {
        size_t records = plumb_run_count(runs->target) + plumb_run_count(runs->golden);
        assert_int_equal(matching.count + matching.matched, records);
        plumb_matching_free(&matching);
    }
    return code;
}

/* What was condensed beside the values of the same tensors: statistics, checksum and sketch. */
static enum plumb_code compare_condensed(const void *context, struct plumb_error *err)
{
    const struct scratch *scratch = context;
    struct plumb_run *runs[2] = {NULL, NULL};
    struct plumb_comparison comparison;
    struct plumb_compare_options options = {.reasons = true, .threads = 1};
    static const char *const folders[] = {"small", "full"};
    enum plumb_code code = PLUMB_OK;
    for (int i = 0; i < 2 && !code; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", scratch->folder, folders[i]);
        code = plumb_run_open(&runs[i], path, err);
    }
    if (!code)
        code = plumb_compare(&comparison, runs[0], runs[1], &options, err);
    if (!code) {
        assert_int_equal(comparison.failed + comparison.suspicious + comparison.unjudged, 0);
        assert_true(comparison.passed == 1 || comparison.unreadable + comparison.unmatched > 0);
        assert_true(comparison.passed == 0 || !any_failed());
        plumb_comparison_free(&comparison);
    }
    plumb_run_free(runs[0]);
    plumb_run_free(runs[1]);
    return code;
}

static enum plumb_code load_standard(const void *context, struct plumb_error *err)
{
    struct plumb_standard *standard = NULL;
    enum plumb_code code = plumb_standard_load(&standard, context, err);
    if (!code)
        code = plumb_standard_override(standard, "max_abs=0.5", err);
    plumb_standard_free(standard);
    return code;
}

static void tensor_of(struct plumb_tensor *tensor, const float *values, int64_t count)
{
    assert_int_equal(plumb_tensor_init(tensor, PLUMB_F32, 1, &count, NULL), PLUMB_OK);
    tensor->data = values;
}

static const float ramp[64] = {1, 2, 3, -4, 5.5f};

static enum plumb_code write_npy(const void *context, struct plumb_error *err)
{
    struct plumb_tensor tensor;
    tensor_of(&tensor, ramp, 64);
    return plumb_npy_write(context, &tensor, err);
}

static enum plumb_code write_container(const void *context, struct plumb_error *err)
{
    struct plumb_writer *writer = NULL;
    struct plumb_tensor tensor;
    enum plumb_code code = plumb_writer_open(&writer, context, NULL, err);
    if (code)
        return code;
    static const char *const names[] = {"model.layers.0.weight", "model.layers.0.bias", "lm_head"};
    for (int i = 0; i < 3; i++) {
        tensor_of(&tensor, ramp, 10 + i);
        code = plumb_writer_add(writer, names[i], -1, &tensor, err);
        if (code) {
            plumb_writer_abort(writer);
            return code;
        }
    }
    return plumb_writer_close(writer, err);
}

/* -- Tests ------------------------------------------------------------------------------------- */

static const char *data_path(const char *name, char *path, size_t size)
{
    const char *data = getenv("PLUMB_TEST_DATA");
    snprintf(path, size, "%s/%s", data ? data : "tests/data", name);
    return path;
}

static void test_files(void **state)
{
    (void)state;
    static const char *const names[] = {"npz/mixed.npz", "npz/deflated.npz", "pt/checkpoint.pt",
                                        "pt/views.pt",   "pt/optimizer.pt",  "pt/deflated.pt"};
    char path[4096];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        data_path(names[i], path, sizeof path);
        check(names[i], read_run, path);
        check(names[i], compare_run, path);
    }
}

static void test_hdf5(void **state)
{
    (void)state;
    char path[4096];
    check("hdf5/tiny.h5", read_run, data_path("hdf5/tiny.h5", path, sizeof path));
    check("hdf5/tiny.h5", compare_run, path);
    check("hdf5/module.h5", read_run, data_path("hdf5/module.h5", path, sizeof path));
}

static void test_written(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    check("write npy", write_npy, scratch_path(&scratch, "x.npy"));
    check("x.npy", read_run, scratch.path);
    check("x.npy", compare_run, scratch.path);
    check("write safetensors", write_container, scratch_path(&scratch, "y.safetensors"));
    check("y.safetensors", read_run, scratch.path);
    check("y.safetensors", compare_run, scratch.path);
    assert_int_equal(scratch_count(&scratch), 2); /* no unfinished files are left behind */
    check("folder", read_run, scratch.folder);
    check("folder", compare_run, scratch.folder);
    scratch_remove(&scratch);
}

static void test_condensed(void **state)
{
    (void)state;
    struct scratch scratch;
    struct plumb_tensor tensor;
    struct plumb_condensed done;
    static const float zeros[1000];
    tensor_of(&tensor, zeros, 1000);
    scratch_make(&scratch);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mkdir(scratch_path(&scratch, i ? "small" : "full"), 0777), 0);
        scratch_path(&scratch, i ? "small/x.npy" : "full/x.npy");
        assert_int_equal(plumb_npy_write(scratch.path, &tensor, NULL), PLUMB_OK);
    }
    struct plumb_condense_options options = {.settle = 0.01, .threads = 1};
    scratch_path(&scratch, "small");
    assert_int_equal(plumb_condense(&done, scratch.path, &options, NULL), PLUMB_OK);
    assert_int_equal(done.files, 1);
    check("condensed", read_run, scratch_path(&scratch, "full"));
    check("condensed against values", compare_condensed, &scratch);
    scratch_remove(&scratch);
}

static void test_tables(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum plumb_table_format format;
    } formats[] = {{"box", PLUMB_TABLE_BOX},
                   {"csv", PLUMB_TABLE_CSV},
                   {"json", PLUMB_TABLE_JSON},
                   {"markdown", PLUMB_TABLE_MARKDOWN}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        check(formats[i].name, print_table, &formats[i].format);
    struct scratch scratch;
    scratch_make(&scratch);
    check("save csv", save_table, scratch_path(&scratch, "t.csv"));
    assert_int_equal(scratch_count(&scratch), 0); /* nothing half-written is left */
    scratch_remove(&scratch);
}

static void put_names(struct scratch *scratch, const char *file, const char *const *names)
{
    struct plumb_writer *writer;
    struct plumb_tensor tensor;
    tensor_of(&tensor, ramp, 4);
    assert_int_equal(plumb_writer_open(&writer, scratch_path(scratch, file), NULL, NULL), PLUMB_OK);
    for (; *names; names++)
        assert_int_equal(plumb_writer_add(writer, *names, -1, &tensor, NULL), PLUMB_OK);
    assert_int_equal(plumb_writer_close(writer, NULL), PLUMB_OK);
}

static void test_match(void **state)
{
    (void)state;
    static const char *const target[] = {"a.0.weight", "a.1.weight", "module.b.bias",
                                         "mapped.one", "only.here",  "c.Linear.0.forward_output.0",
                                         NULL};
    static const char *const golden[] = {"a.0.weight", "model.a.1.weight",
                                         "b.bias",     "other.name",
                                         "only.there", "c.LinearX.0.forward_output.0",
                                         NULL};
    static const char map[] = "# pairs\nmapped.one: other.name\n\"a.0.weight\",a.0.weight\n";
    struct scratch scratch;
    scratch_make(&scratch);
    struct two_runs runs = {0};
    put_names(&scratch, "t.safetensors", target);
    assert_int_equal(plumb_run_open(&runs.target, scratch.path, NULL), PLUMB_OK);
    put_names(&scratch, "g.safetensors", golden);
    assert_int_equal(plumb_run_open(&runs.golden, scratch.path, NULL), PLUMB_OK);
    runs.options.map_file = scratch_write(&scratch, "map.txt", map, sizeof map - 1);
    check("match", match_runs, &runs);
    plumb_run_free(runs.target);
    plumb_run_free(runs.golden);
    scratch_remove(&scratch);
}

static void test_standard(void **state)
{
    (void)state;
    static const char text[] = "# ours\nset rtol 1e-2\nrequire cosine >= 0.9\n"
                               "require max_abs < 1\nexpect max_rel < 0.1\nexpect jump <= 10\n";
    struct scratch scratch;
    scratch_make(&scratch);
    check("standard", load_standard, scratch_write(&scratch, "my.std", text, sizeof text - 1));
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),     cmocka_unit_test(test_hdf5),
        cmocka_unit_test(test_written),   cmocka_unit_test(test_tables),
        cmocka_unit_test(test_match),     cmocka_unit_test(test_standard),
        cmocka_unit_test(test_condensed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
