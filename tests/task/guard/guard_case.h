/* What the tests of the online check share: a guard whose clock stands still, and one call. */
#ifndef GUARD_CASE_H
#define GUARD_CASE_H

#include "plumb/guard.h"
#include "scratch.h"

#include <time.h>

static inline int64_t fixed_now(void)
{
    return 1747648801; /* 2025-05-19 10:00:01 UTC */
}

static inline char *read_text(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static inline struct plumb_guard_config config_for(struct scratch *scratch, const char *name)
{
    struct plumb_guard_config config;
    plumb_guard_config_init(&config);
    config.path = scratch_path(scratch, name);
    config.now = fixed_now;
    return config;
}

static inline struct plumb_guard *open_guard(const struct plumb_guard_config *config)
{
    struct plumb_guard *guard = NULL;
    struct plumb_error err = {0};
    assert_int_equal(plumb_guard_open(&guard, config, &err), PLUMB_OK);
    return guard;
}

static inline struct plumb_arg tensor_arg(struct plumb_tensor *tensor, enum plumb_dtype dtype,
                                          unsigned rank, const int64_t *shape, const void *data)
{
    assert_int_equal(plumb_tensor_init(tensor, dtype, rank, shape, NULL), PLUMB_OK);
    tensor->data = data;
    return (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = tensor};
}

/* x + 1 where the kernel gave `out`. */
static inline struct plumb_guard_verdict judge_floats(struct plumb_guard_op *op, const float *out,
                                                      size_t n)
{
    static const float x[8] = {0};
    struct plumb_tensor tensors[3];
    const int64_t shape[] = {(int64_t)n};
    const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct plumb_arg input = tensor_arg(&tensors[0], PLUMB_F32, 1, shape, x);
    struct plumb_arg output = tensor_arg(&tensors[1], PLUMB_F32, 1, shape, out);
    struct plumb_arg reference = tensor_arg(&tensors[2], PLUMB_F32, 1, shape, ones);
    struct plumb_guard_case about = {.call = {.name = "add", .args = &input, .n_args = 1},
                                     .outputs = &output,
                                     .n_outputs = 1,
                                     .reference = &reference,
                                     .n_reference = 1,
                                     .where = "File \"a.py\", line 1, in f\nFile \"b.py\", line 2"};
    struct plumb_guard_verdict verdict;
    struct plumb_error err = {0};
    assert_int_equal(plumb_guard_judge(op, &about, &verdict, &err), PLUMB_OK);
    return verdict;
}

static inline int make(void **state)
{
    static struct scratch scratch;
    setenv("TZ", "UTC", 1);
    tzset();
    scratch_make(&scratch);
    *state = &scratch;
    return 0;
}

static inline int clean(void **state)
{
    scratch_remove(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)

#endif
