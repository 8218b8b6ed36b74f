#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/run.h"
#include "plumb/write.h"
#include "run/ref.h"
#include "run/walk.h"
#include "scratch.h"

/* A .npy file with one float32. */
static void put_npy(struct scratch *scratch, const char *name, float value)
{
    struct plumb_tensor tensor;
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F32, 0, NULL, NULL), PLUMB_OK);
    tensor.data = &value;
    scratch_write(scratch, name, "", 0); /* makes the folders */
    assert_int_equal(plumb_npy_write(scratch->path, &tensor, NULL), PLUMB_OK);
}

/* A .safetensors file with the float32 tensors a and b. */
static void put_pair(struct scratch *scratch, const char *name, float a, float b)
{
    struct plumb_writer *writer;
    struct plumb_tensor tensor;
    scratch_write(scratch, name, "", 0);
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F32, 0, NULL, NULL), PLUMB_OK);
    assert_int_equal(plumb_writer_open(&writer, scratch->path, NULL, NULL), PLUMB_OK);
    tensor.data = &a;
    assert_int_equal(plumb_writer_add(writer, "a", -1, &tensor, NULL), PLUMB_OK);
    tensor.data = &b;
    assert_int_equal(plumb_writer_add(writer, "b", -1, &tensor, NULL), PLUMB_OK);
    assert_int_equal(plumb_writer_close(writer, NULL), PLUMB_OK);
}

/* A container with one float32 tensor. */
static void put_one(struct scratch *scratch, const char *file, const char *name, int64_t step,
                    int64_t rank, float value)
{
    struct plumb_writer_options options = {.global_rank = rank, .local_rank = rank};
    struct plumb_writer *writer;
    struct plumb_tensor tensor;
    struct plumb_error err;
    scratch_write(scratch, file, "", 0);
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F32, 0, NULL, NULL), PLUMB_OK);
    tensor.data = &value;
    if (plumb_writer_open(&writer, scratch->path, &options, &err) ||
        plumb_writer_add(writer, name, step, &tensor, &err) || plumb_writer_close(writer, &err))
        fail_msg("%s", err.message);
}

static struct plumb_run *open_run(const char *path)
{
    struct plumb_run *run = NULL;
    struct plumb_error err;
    if (plumb_run_open(&run, path, &err) != PLUMB_OK)
        fail_msg("%s", err.message);
    return run;
}

/* The run's names are these, in this order. */
static void check_names(const struct plumb_run *run, const char *const *names, size_t count)
{
    assert_int_equal(plumb_run_count(run), count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(plumb_run_record(run, i)->name, names[i]);
    assert_null(plumb_run_record(run, count));
}

static double load_one(const struct plumb_run *run, size_t index)
{
    struct plumb_payload payload;
    struct plumb_error err;
    double value;
    if (plumb_run_load(run, index, &payload, &err) != PLUMB_OK)
        fail_msg("%s", err.message);
    plumb_tensor_to_f64(&payload.tensor, 0, 1, &value);
    plumb_payload_release(&payload);
    return value;
}

static void order_is_natural(void **state)
{
    (void)state;
    static const char *const sorted[] = {
        "1.npy",
        "2.npy",
        "10.npy",
        "a",
        "a/2/x",
        "a/10/x",
        "a.b",
        "a2",
        "a02.b",
        "a2.c",
        "a10",
        "a10b",
        "ab",
        "b",
        "b1",
        "b000000002",
        "b18446744073709551616",
        "b18446744073709551617",
    };
    size_t count = sizeof sorted / sizeof *sorted;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            int order = walk_compare(sorted[i], sorted[j]);
            if ((order > 0) - (order < 0) != (i > j) - (i < j))
                fail_msg("%s against %s: %d", sorted[i], sorted[j], order);
        }
}

static void a_folder_of_arrays(void **state)
{
    (void)state;
    static const char *const names[] = {"layer.2", "layer.10", "step/1/x", "step/2/x"};
    static const double values[] = {2, 10, 1, 4};
    struct scratch scratch;
    scratch_make(&scratch);
    put_npy(&scratch, "layer.10.npy", 10);
    put_npy(&scratch, "layer.2.npy", 2);
    put_npy(&scratch, "step/1/x.npy", 1);
    put_npy(&scratch, "step/2/x.data", 4); /* what it is, its content says */
    put_npy(&scratch, ".hidden.npy", 0);
    put_npy(&scratch, ".git/x.npy", 0);
    scratch_write(&scratch, "notes.txt", "hello", 5);
    scratch_write(&scratch, "step/empty", "", 0);

    struct plumb_run *run = open_run(scratch.folder);
    assert_string_equal(plumb_run_kind(run), "folder");
    assert_string_equal(plumb_run_path(run), scratch.folder);
    assert_int_equal(plumb_run_ignored(run), 2);
    check_names(run, names, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(load_one(run, i) == values[i]);
    assert_string_equal(plumb_run_record(run, 3)->path, scratch_path(&scratch, "step/2/x.data"));
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void one_container_lends_its_names(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "x"};
    struct scratch scratch;
    scratch_make(&scratch);
    put_pair(&scratch, "model.safetensors", 1, 2);
    put_npy(&scratch, "x.npy", 3);
    char with_slash[300];
    snprintf(with_slash, sizeof with_slash, "%s/", scratch.folder);
    struct plumb_run *run = open_run(with_slash);
    assert_string_equal(plumb_run_path(run), scratch.folder);
    check_names(run, names, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(load_one(run, i) == (double)i + 1);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void several_containers_are_told_apart(void **state)
{
    (void)state;
    static const char *const names[] = {"part.1.a", "part.1.b", "sub/part.2.a", "sub/part.2.b"};
    struct scratch scratch;
    scratch_make(&scratch);
    put_pair(&scratch, "part.1.safetensors", 1, 2);
    put_pair(&scratch, "sub/part.2.safetensors", 3, 4);
    struct plumb_run *run = open_run(scratch.folder);
    check_names(run, names, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(load_one(run, i) == (double)i + 1);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

/* A tensor called like the file it is alone in is not named twice. */
static void namesakes_are_named_once(void **state)
{
    (void)state;
    static const char *const names[] = {"sub/x", "y", "z.other"};
    struct scratch scratch;
    scratch_make(&scratch);
    put_one(&scratch, "sub/x.safetensors", "x", -1, -1, 1);
    put_one(&scratch, "y.safetensors", "y", -1, -1, 2);
    put_one(&scratch, "z.safetensors", "other", -1, -1, 3);
    struct plumb_run *run = open_run(scratch.folder);
    check_names(run, names, 3);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void check_place(const struct plumb_run *run, size_t index, int64_t step, int64_t rank)
{
    assert_int_equal(plumb_run_record(run, index)->step, step);
    assert_int_equal(plumb_run_record(run, index)->rank, rank);
}

static void module_dumps_have_ranks(void **state)
{
    (void)state;
    static const char *const names[] = {"conv", "conv", "globalrank-x_localrank-0.conv"};
    struct scratch scratch;
    scratch_make(&scratch);
    put_one(&scratch, "globalrank-2_localrank-0.h5", "conv", 1, -1, 1);
    put_one(&scratch, "globalrank-10_localrank-1.h5", "conv", 1, -1, 2);
    put_one(&scratch, "globalrank-x_localrank-0.h5", "conv", 1, -1, 3);
    struct plumb_run *run = open_run(scratch.folder);
    check_names(run, names, 3);
    check_place(run, 0, 1, 2);
    check_place(run, 1, 1, 10);
    check_place(run, 2, 1, -1);
    assert_true(load_one(run, 1) == 2);
    plumb_run_free(run);

    run = open_run(scratch_path(&scratch, "globalrank-10_localrank-1.h5"));
    assert_string_equal(plumb_run_kind(run), "hdf5");
    check_names(run, names, 1);
    check_place(run, 0, 1, 10);
    plumb_run_free(run);

    /* What the file says of itself counts more than its name. */
    put_one(&scratch, "globalrank-2_localrank-0.h5", "conv", 1, 7, 1);
    run = open_run(scratch.path);
    check_place(run, 0, 1, 7);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void ranks_in_several_folders_are_told_apart(void **state)
{
    (void)state;
    static const char *const names[] = {"a/b.conv", "c.conv"};
    struct scratch scratch;
    scratch_make(&scratch);
    put_one(&scratch, "a/b/globalrank-0_localrank-0.h5", "conv", 1, -1, 1);
    put_one(&scratch, "c/globalrank-0_localrank-0.h5", "conv", 1, -1, 2);
    struct plumb_run *run = open_run(scratch.folder);
    check_names(run, names, 2);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void damage_costs_one_record(void **state)
{
    (void)state;
    static const char *const names[] = {"cut", "empty.x", "fine", "strange"};
    struct scratch scratch;
    struct plumb_payload payload;
    struct plumb_error err;
    scratch_make(&scratch);
    put_npy(&scratch, "fine.npy", 7);
    put_npy(&scratch, "cut.npy", 7);
    assert_int_equal(truncate(scratch.path, 129), 0);
    scratch_write(&scratch, "empty.x.npy", "", 0);
    scratch_write(&scratch, "strange.safetensors", "not at all", 10);

    struct plumb_run *run = open_run(scratch.folder);
    check_names(run, names, 4);
    assert_int_equal(plumb_run_ignored(run), 0);
    for (size_t i = 0; i < 4; i++) {
        const struct plumb_record *record = plumb_run_record(run, i);
        if (i == 2) {
            assert_null(record->error);
            assert_true(load_one(run, i) == 7);
            continue;
        }
        assert_int_equal(record->error->code, PLUMB_E_FORMAT);
        assert_string_equal(record->error->file, record->path);
        assert_int_equal(plumb_run_load(run, i, &payload, &err), PLUMB_E_FORMAT);
        assert_string_equal(err.message, record->error->message);
    }
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void links_do_not_lead_out(void **state)
{
    (void)state;
    static const char *const names[] = {"dangling", "inside", "outside", "x"};
    struct scratch scratch, other;
    char target[512];
    scratch_make(&scratch);
    scratch_make(&other);
    put_npy(&other, "y.npy", 1);
    put_npy(&scratch, "x.npy", 2);
    assert_int_equal(symlink("x.npy", scratch_path(&scratch, "inside.npy")), 0);
    snprintf(target, sizeof target, "%s/y.npy", other.folder);
    assert_int_equal(symlink(target, scratch_path(&scratch, "outside.npy")), 0);
    assert_int_equal(symlink(other.folder, scratch_path(&scratch, "folder")), 0);
    assert_int_equal(symlink(".", scratch_path(&scratch, "loop")), 0);
    assert_int_equal(symlink("nowhere", scratch_path(&scratch, "dangling.npy")), 0);

    struct plumb_run *run = open_run(scratch.folder);
    check_names(run, names, 4);
    assert_int_equal(plumb_run_ignored(run), 2);
    assert_true(load_one(run, 1) == 2);
    for (size_t i = 0; i < 4; i += 2)
        assert_non_null(strstr(plumb_run_record(run, i)->error->message, "link"));
    plumb_run_free(run);
    scratch_remove(&other);
    scratch_remove(&scratch);
}

static void special_files_are_not_read(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    put_npy(&scratch, "x.npy", 2);
    assert_int_equal(mkfifo(scratch_path(&scratch, "pipe.npy"), 0600), 0);
    assert_int_equal(mkfifo(scratch_path(&scratch, "pipe"), 0600), 0);
    struct plumb_run *run = open_run(scratch.folder);
    assert_int_equal(plumb_run_count(run), 2);
    assert_non_null(strstr(plumb_run_record(run, 0)->error->message, "regular"));
    assert_int_equal(plumb_run_ignored(run), 1);
    plumb_run_free(run);

    struct plumb_error err;
    assert_int_equal(plumb_run_open(&run, scratch_path(&scratch, "pipe.npy"), &err), PLUMB_E_IO);
    scratch_remove(&scratch);
}

static void depth_is_limited(void **state)
{
    (void)state;
    struct scratch scratch;
    char name[512] = "";
    scratch_make(&scratch);
    for (int i = 0; i < 70; i++)
        snprintf(name + strlen(name), sizeof name - strlen(name), "d/");
    snprintf(name + strlen(name), sizeof name - strlen(name), "x.npy");
    put_npy(&scratch, name, 1);
    struct plumb_run *run = open_run(scratch.folder);
    assert_int_equal(plumb_run_count(run), 1);
    assert_non_null(strstr(plumb_run_record(run, 0)->error->message, "nested too deeply"));
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void nothing_to_read_is_explained(void **state)
{
    (void)state;
    struct scratch scratch;
    struct plumb_run *run = NULL;
    struct plumb_error err;
    scratch_make(&scratch);
    assert_int_equal(plumb_run_open(&run, scratch.folder, &err), PLUMB_E_FORMAT);
    assert_non_null(strstr(err.message, "empty"));
    assert_string_equal(err.file, scratch.folder);

    assert_int_equal(symlink("/", scratch_path(&scratch, "away")), 0);
    assert_int_equal(plumb_run_open(&run, scratch.folder, &err), PLUMB_E_FORMAT);
    assert_non_null(strstr(err.message, "links"));

    scratch_write(&scratch, "notes.txt", "hello", 5);
    assert_int_equal(plumb_run_open(&run, scratch.folder, &err), PLUMB_E_FORMAT);
    assert_non_null(strstr(err.message, "notes.txt"));
    assert_non_null(strstr(err.message, ".safetensors"));

    assert_int_equal(plumb_run_open(&run, scratch_path(&scratch, "notes.txt"), &err),
                     PLUMB_E_FORMAT);
    assert_non_null(strstr(err.message, ".safetensors"));
    assert_string_equal(err.file, scratch.path);

    scratch_write(&scratch, "x.npy", "", 0);
    assert_int_equal(plumb_run_open(&run, scratch.path, &err), PLUMB_E_FORMAT);
    assert_non_null(strstr(err.message, "empty"));

    assert_int_equal(plumb_run_open(&run, scratch_path(&scratch, "missing"), &err), PLUMB_E_IO);
    assert_string_equal(err.file, scratch.path);
    assert_null(run);
    plumb_run_free(NULL);
    scratch_remove(&scratch);
}

/* A mapped file that is cut after it was loaded reads as zeros, and the guard tells. */
static void a_shrinking_file_is_noticed(void **state)
{
    (void)state;
    enum { COUNT = 8192 };
    static float values[COUNT];
    const int64_t shape[] = {COUNT};
    struct scratch scratch;
    struct plumb_tensor tensor;
    struct plumb_payload payload;
    struct plumb_file_guard guard;
    double last;
    values[COUNT - 1] = 5;
    scratch_make(&scratch);
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F32, 1, shape, NULL), PLUMB_OK);
    tensor.data = values;
    const char *path = scratch_path(&scratch, "x.npy");
    assert_int_equal(plumb_npy_write(path, &tensor, NULL), PLUMB_OK);

    struct plumb_run *run = open_run(path);
    assert_int_equal(plumb_run_load(run, 0, &payload, NULL), PLUMB_OK);
    plumb_file_guard_enter(&guard, &payload.file);
    plumb_tensor_to_f64(&payload.tensor, COUNT - 1, 1, &last);
    assert_false(plumb_file_guard_leave(&guard));
    assert_true(last == 5);

    assert_int_equal(truncate(path, 4096), 0);
    plumb_file_guard_enter(&guard, &payload.file);
    plumb_tensor_to_f64(&payload.tensor, COUNT - 1, 1, &last);
    assert_true(plumb_file_guard_leave(&guard));
    plumb_payload_release(&payload);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

/* Files by reference stay listed; the text that named them first may be gone by the second time. */
static void loads_by_names_that_come_and_go(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    put_pair(&scratch, "pair.safetensors", 3, 4);
    struct plumb_run *run = open_run(scratch.path);
    struct run_files *files = run_files_new(NULL);
    char *names[2];
    assert_non_null(files);
    for (size_t i = 0; i < 2; i++) {
        struct run_ref ref;
        struct plumb_payload payload;
        assert_true(run_ref_of(run, i, &ref));
        char *name = names[i] = strdup(ref.path);
        assert_non_null(name);
        ref.path = name;
        assert_int_equal(run_files_load(files, &ref, &payload, NULL), PLUMB_OK);
        double value = 0;
        plumb_tensor_to_f64(&payload.tensor, 0, 1, &value);
        assert_true(value == 3 + (double)i);
        plumb_payload_release(&payload);
        memset(name, '?', strlen(name));
    }
    free(names[0]);
    free(names[1]);
    run_files_free(files);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, because cmocka takes SIGBUS away from whoever had it before a test began. */
        cmocka_unit_test(a_shrinking_file_is_noticed),
        cmocka_unit_test(order_is_natural),
        cmocka_unit_test(a_folder_of_arrays),
        cmocka_unit_test(one_container_lends_its_names),
        cmocka_unit_test(several_containers_are_told_apart),
        cmocka_unit_test(namesakes_are_named_once),
        cmocka_unit_test(module_dumps_have_ranks),
        cmocka_unit_test(ranks_in_several_folders_are_told_apart),
        cmocka_unit_test(damage_costs_one_record),
        cmocka_unit_test(links_do_not_lead_out),
        cmocka_unit_test(special_files_are_not_read),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(nothing_to_read_is_explained),
        cmocka_unit_test(loads_by_names_that_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
