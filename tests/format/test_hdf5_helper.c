/* What happens when the helper, or libhdf5 in it, misbehaves: a script takes its place. */
#define _GNU_SOURCE
#include "h5_open.h"
#include "plumb/write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/plumb-test-XXXXXX";
static char script[64], target[64];
static char *real_helper; /* as told by the environment, or NULL */

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(script, sizeof script, "%s/helper", folder);
    snprintf(target, sizeof target, "%s/out.h5", folder);
    if (getenv("PLUMB_H5"))
        real_helper = strdup(getenv("PLUMB_H5"));
    setenv("PLUMB_H5", script, 1);
    setenv("PLUMB_H5_TIMEOUT", "20", 1);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(script);
    unlink(target);
    free(real_helper);
    return rmdir(folder); /* fails when a temporary file was left behind */
}

static void pretend(const char *body)
{
    unlink(script);
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", body);
    assert_int_equal(fchmod(fileno(file), 0700), 0);
    fclose(file);
}

static enum plumb_code list(struct plumb_error *err)
{
    char path[4096];
    struct h5_open open;
    *err = (struct plumb_error){0};
    enum plumb_code code = h5_open_path(&open, h5_fixture("tiny.h5", path, sizeof path), err);
    assert_int_equal(open.listing.count, 0);
    h5_open_close(&open);
    /* No child is left behind. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    return code;
}

static void check_list(const char *body, enum plumb_code code, const char *part)
{
    struct plumb_error err;
    pretend(body);
    assert_int_equal(list(&err), code);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
    assert_non_null(strstr(err.file, "tiny.h5"));
}

static void crash_is_an_error_of_the_file(void **state)
{
    (void)state;
    check_list("kill -SEGV $$", PLUMB_E_FORMAT, "crashed on this file (signal 11)");
    check_list("printf half; kill -ABRT $$", PLUMB_E_FORMAT, "crashed on this file (signal 6)");
}

static void own_words_of_the_helper_are_passed_on(void **state)
{
    (void)state;
    check_list("echo it is broken >&2; echo second line >&2; exit 1", PLUMB_E_FORMAT,
               "it is broken");
    check_list("printf 'a\\033[31mred' >&2; exit 2", PLUMB_E_UNSUPPORTED, "a?[31mred");
    check_list("exit 1", PLUMB_E_FORMAT, "without a word");
    check_list("exit 77", PLUMB_E_IO, "exit code 77");
}

static void nonsense_is_an_error(void **state)
{
    (void)state;
    check_list("exit 0", PLUMB_E_FORMAT, "nonsense");
    check_list("echo hello", PLUMB_E_FORMAT, "nonsense");
    check_list("printf plbH5L01; head -c 16 /dev/zero", PLUMB_E_FORMAT, "nonsense");
    check_list("printf plbH5L01; head -c 4000 /dev/zero | tr '\\0' '\\377'", PLUMB_E_FORMAT,
               "nonsense");
    check_list("yes 'noise on stderr' | head -100000 >&2; exit 1", PLUMB_E_FORMAT,
               "noise on stderr");
}

static void endless_talk_is_cut_off(void **state)
{
    (void)state;
    check_list("exec cat /dev/zero", PLUMB_E_FORMAT, "more in this file");
}

static void a_hang_ends_at_the_deadline(void **state)
{
    (void)state;
    static const char *const hangs[] = {"exec sleep 1000", "exec >&- 2>&-; exec sleep 1000",
                                        "printf plbH5L01; exec sleep 1000"};
    setenv("PLUMB_H5_TIMEOUT", "0.3", 1);
    for (size_t i = 0; i < sizeof hangs / sizeof hangs[0]; i++) {
        time_t before = time(NULL);
        check_list(hangs[i], PLUMB_E_FORMAT, "hangs on this file");
        assert_true(time(NULL) - before < 300);
    }
    setenv("PLUMB_H5_TIMEOUT", "20", 1);
}

static void missing_helper_is_named(void **state)
{
    (void)state;
    struct plumb_error err;
    unlink(script);
    assert_int_equal(list(&err), PLUMB_E_IO);
    assert_non_null(strstr(err.message, script));
}

/* The answer to `read` must have the size that `list` promised. */
static void wrong_amount_of_data_is_an_error(void **state)
{
    (void)state;
    if (real_helper)
        setenv("PLUMB_H5", real_helper, 1);
    else
        unsetenv("PLUMB_H5");
    char path[4096];
    struct h5_open open;
    struct plumb_payload payload;
    struct plumb_error err = {0};
    assert_int_equal(h5_open_path(&open, h5_fixture("layouts.h5", path, sizeof path), NULL), 0);
    const struct plumb_record *record = h5_find(&open, "compact");
    assert_non_null(record);
    setenv("PLUMB_H5", script, 1);
    pretend("printf 0123");
    assert_int_equal(h5_load(&open, record, &payload, &err), PLUMB_E_FORMAT);
    assert_non_null(strstr(err.message, "4 bytes instead of 16"));
    pretend("printf 01234567890123456");
    assert_int_equal(h5_load(&open, record, &payload, &err), PLUMB_E_FORMAT);
    pretend("kill -SEGV $$");
    assert_int_equal(h5_load(&open, record, &payload, &err), PLUMB_E_FORMAT);
    assert_non_null(strstr(err.message, "crashed"));
    h5_open_close(&open);
}

/* Neither SIGPIPE nor a file: only an error. */
static void dying_writer_is_an_error(void **state)
{
    (void)state;
    static float data[1 << 20];
    struct plumb_tensor tensor;
    const int64_t shape[] = {1 << 20};
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F32, 1, shape, NULL), PLUMB_OK);
    tensor.data = data;

    static const char *const ends[] = {"exit 0", "head -c 100000 >/dev/null; kill -SEGV $$",
                                       "head -c 100000 >/dev/null; echo disk full >&2; exit 3"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct plumb_writer *writer;
        struct plumb_error err = {0};
        pretend(ends[i]);
        assert_int_equal(plumb_writer_open(&writer, target, NULL, &err), PLUMB_OK);
        assert_int_not_equal(plumb_writer_add(writer, "x", 1, &tensor, &err), PLUMB_OK);
        if (i == 2)
            assert_string_equal(err.message, "disk full");
        assert_int_not_equal(plumb_writer_close(writer, &err), PLUMB_OK);
        assert_int_not_equal(access(target, F_OK), 0);
    }
    struct plumb_writer *writer;
    pretend("exec sleep 1000");
    assert_int_equal(plumb_writer_open(&writer, target, NULL, NULL), PLUMB_OK);
    plumb_writer_abort(writer);
    unlink(script);
    assert_int_equal(plumb_writer_open(&writer, target, NULL, NULL), PLUMB_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crash_is_an_error_of_the_file),
        cmocka_unit_test(own_words_of_the_helper_are_passed_on),
        cmocka_unit_test(nonsense_is_an_error),
        cmocka_unit_test(endless_talk_is_cut_off),
        cmocka_unit_test(a_hang_ends_at_the_deadline),
        cmocka_unit_test(missing_helper_is_named),
        cmocka_unit_test(wrong_amount_of_data_is_an_error),
        cmocka_unit_test(dying_writer_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
