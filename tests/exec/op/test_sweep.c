/* Every operator, every parameter, every kind and type of argument: nothing but a result or an
 * error may come of it. The sanitizer build of `make test` looks at every access on the way.
 * Each operator has a process of its own, so that one that dies is named and the others still
 * run. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fuzz/op_calls.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Types and shapes of the other arguments: an operator that refuses one set of them takes
 * another. */
static const struct {
    enum plumb_dtype dtype;
    unsigned shape;
} flavours[] = {{PLUMB_F32, 4}, {PLUMB_F32, 3}, {PLUMB_F32, 7},  {PLUMB_I64, 3},  {PLUMB_F64, 6},
                {PLUMB_F32, 9}, {PLUMB_F16, 4}, {PLUMB_BOOL, 4}, {PLUMB_BF16, 0}, {PLUMB_I32, 4}};
enum { FLAVOURS = sizeof flavours / sizeof *flavours };

/* Where the child is, for its parent to see. */
struct position {
    char parameter[CALLS_NAME];
    size_t leaf, flavour;
    size_t runs, parameters;
    double slowest;
    char slowest_where[3 * CALLS_NAME];
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sweep_param(struct calls *calls, const struct plumb_op *op,
                        const struct calls_param *params, size_t count, size_t which,
                        struct position *at)
{
    snprintf(at->parameter, sizeof at->parameter, "%s", params[which].name);
    for (at->leaf = 0; at->leaf < calls->n_args; at->leaf++) {
        at->flavour = (at->leaf + which) % FLAVOURS;
        struct plumb_arg given[CALLS_MAX_PARAMS];
        for (size_t k = 0; k < count; k++)
            given[k] = k == which ? calls->args[at->leaf]
                       : params[k].optional
                           ? (struct plumb_arg){.kind = PLUMB_ARG_OTHER}
                           : calls_usual(calls, &params[k], flavours[at->flavour].dtype,
                                         flavours[at->flavour].shape);
        double start = now();
        calls_run(op, params, given, count, at->leaf % 3 == 0);
        at->runs++;
        if (now() - start > at->slowest) {
            at->slowest = now() - start;
            snprintf(at->slowest_where, sizeof at->slowest_where, "%.60s, %.60s, argument %zu",
                     op->names, at->parameter, at->leaf);
        }
    }
    at->parameters++;
}

static void sweep_op(struct calls *calls, const struct plumb_op *op, struct position *at)
{
    for (const char *line = op->schema; line && *line;) {
        struct calls_param params[CALLS_MAX_PARAMS];
        size_t count;
        line = calls_params(line, params, &count);
        for (size_t k = 0; k < count; k++)
            sweep_param(calls, op, params, count, k, at);
    }
}

/* True when the child came to its end. */
static bool sweep_in_child(struct calls *calls, const struct plumb_op *op, struct position *at)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int number = 1; number < 32; number++)
            signal(number, SIG_DFL); /* cmocka's would go on in here */
        sweep_op(calls, op, at);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status == 0)
        return true;
    print_message("%s: ended with %s %d at %s, argument %zu, flavour %zu\n", op->names,
                  WIFSIGNALED(status) ? "signal" : "exit code",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), at->parameter,
                  at->leaf, at->flavour);
    return false;
}

static void test_sweep(void **state)
{
    (void)state;
    struct calls *calls = calloc(1, sizeof *calls);
    assert_non_null(calls);
    calls_make(calls);
    struct position *at =
        mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    size_t died = 0;
    const struct plumb_op *op;
    for (size_t i = 0; (op = plumb_op_at(i)); i++)
        died += !sweep_in_child(calls, op, at);
    print_message("%zu calls of %zu parameters; slowest: %.2f s, %s\n", at->runs, at->parameters,
                  at->slowest, at->slowest_where);
    assert_int_equal(died, 0);
    assert_true(at->parameters > 1000);
    munmap(at, sizeof *at);
    free(calls);
}

/* Several odd arguments at once, the same ones every time. */
static void random_calls(struct calls *calls, uint64_t first, uint64_t end, struct position *at)
{
    for (uint64_t k = first; k < end; k++) {
        uint8_t bytes[4 + 2 * CALLS_MAX_PARAMS];
        uint64_t random = (k + 1) * UINT64_C(0x9e3779b97f4a7c15);
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = (random ^ random >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + i;
            bytes[i] = (uint8_t)(random >> 56);
        }
        at->leaf = k;
        calls_from_bytes(calls, bytes, sizeof bytes);
        at->runs++;
    }
}

static void test_random(void **state)
{
    enum { ROUNDS = 100 };
    (void)state;
    struct calls *calls = calloc(1, sizeof *calls);
    assert_non_null(calls);
    calls_make(calls);
    const char *wanted = getenv("PLUMB_SWEEP_CALLS");
    const uint64_t number = wanted ? strtoull(wanted, NULL, 10) : 100000;
    struct position *at =
        mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    size_t died = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (int signal_number = 1; signal_number < 32; signal_number++)
                signal(signal_number, SIG_DFL);
            random_calls(calls, round * number / ROUNDS, (round + 1) * number / ROUNDS, at);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status)
            print_message("call %zu ended with status %x\n", at->leaf, (unsigned)status);
        died += status != 0;
    }
    print_message("%zu calls\n", at->runs);
    assert_int_equal(died, 0);
    munmap(at, sizeof *at);
    free(calls);
}

/* An argument that no form takes has every form read: an unknown word for a type, or any other slip
 * in a table, shows here. */
static void test_signatures(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"",     "Functional", "Tensor", "Torch",
                                           "Aten", "NPU",        "VF"};
    const struct plumb_kwarg odd = {.name = "nonsense", .value = {.kind = PLUMB_ARG_NONE}};
    const struct plumb_op *op;
    size_t read = 0;
    for (size_t i = 0; (op = plumb_op_at(i)); i++) {
        char name[CALLS_NAME];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(op->names, " "), op->names);
        for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
            struct plumb_call call = {
                .prefix = prefixes[p], .name = name, .kwargs = &odd, .n_kwargs = 1};
            struct plumb_result result;
            struct plumb_error err = {0};
            const enum plumb_code code = plumb_op_run(&call, PLUMB_OWN, &result, &err);
            plumb_result_destroy(&result);
            assert_int_not_equal(code, PLUMB_OK);
            if (strstr(err.message, "malformed"))
                fail_msg("%s", err.message);
            read += strstr(err.message, "nonsense") || strstr(err.message, "missing");
        }
    }
    assert_true(read > 500);
}

/* Arguments that were too much once, several of them together. Each is refused, and soon. */
static void test_found(void **state)
{
    (void)state;
#define NUMBER(value)                                                                              \
    {                                                                                              \
        .kind = PLUMB_ARG_INT, .integer = (value)                                                  \
    }
#define TENSOR(tensor_)                                                                            \
    {                                                                                              \
        .kind = PLUMB_ARG_TENSOR, .tensor = &(tensor_)                                             \
    }
#define LIST(items_)                                                                               \
    {                                                                                              \
        .kind = PLUMB_ARG_LIST, .items = (items_), .n_items = sizeof(items_) / sizeof *(items_)    \
    }
    const struct plumb_arg yes = {.kind = PLUMB_ARG_BOOL, .integer = 1};
    static const float floats[64];
    static const int64_t sizes[2] = {1, INT64_MAX};
    struct plumb_tensor x, states, rows, lengths, nothing, long_nothing, classes, chosen;
    const int64_t three[] = {2, 2, 2}, two[] = {2, 2}, one[] = {2};
    const int64_t vast[] = {1 << 20, 1 << 20, 0, 1}, wide[] = {0, INT64_C(1) << 40};
    assert_int_equal(plumb_tensor_init(&x, PLUMB_F32, 3, three, NULL), PLUMB_OK);
    assert_int_equal(plumb_tensor_init(&rows, PLUMB_F32, 2, two, NULL), PLUMB_OK);
    assert_int_equal(plumb_tensor_init(&lengths, PLUMB_I64, 1, one, NULL), PLUMB_OK);
    assert_int_equal(plumb_tensor_init(&nothing, PLUMB_F32, 4, vast, NULL), PLUMB_OK);
    assert_int_equal(plumb_tensor_init(&long_nothing, PLUMB_F32, 2, wide, NULL), PLUMB_OK);
    x.data = rows.data = nothing.data = long_nothing.data = floats;
    lengths.data = sizes;
    states = x;
    static const int64_t numbers[4] = {0, 1, 0, 1};
    assert_int_equal(plumb_tensor_init(&classes, PLUMB_I64, 2, two, NULL), PLUMB_OK);
    assert_int_equal(plumb_tensor_init(&chosen, PLUMB_I64, 1, one, NULL), PLUMB_OK);
    classes.data = chosen.data = numbers;
    const struct plumb_arg nll[] = {TENSOR(classes), TENSOR(chosen)};
    const struct plumb_arg weights[] = {TENSOR(rows), TENSOR(rows)};
    const struct plumb_arg times[] = {NUMBER(0), NUMBER(INT64_MAX)};
    const struct plumb_arg layers[] = {
        TENSOR(x), TENSOR(states), LIST(weights), yes, NUMBER(INT64_MAX), NUMBER(0), yes, yes, yes};
    const struct plumb_arg packed[] = {TENSOR(rows), TENSOR(lengths), TENSOR(states), LIST(weights),
                                       yes,          NUMBER(1),       NUMBER(0),      yes,
                                       yes};
    const struct plumb_arg repeat[] = {TENSOR(rows), LIST(times)}, svd[] = {TENSOR(nothing)};
    const struct plumb_arg sum[] = {TENSOR(long_nothing), NUMBER(0)};
    const struct plumb_call calls[] = {
        {.prefix = "VF", .name = "gru", .args = layers, .n_args = 9},
        {.prefix = "VF", .name = "gru", .args = packed, .n_args = 9},
        {.prefix = "Tensor", .name = "repeat", .args = repeat, .n_args = 2},
        {.prefix = "Torch", .name = "tile", .args = repeat, .n_args = 2},
        {.prefix = "Torch", .name = "linalg.svd", .args = svd, .n_args = 1},
        {.prefix = "Torch", .name = "sum", .args = sum, .n_args = 2},
    };
    const struct plumb_call loss = {
        .prefix = "Aten", .name = "nll_loss_forward", .args = nll, .n_args = 2};
    struct plumb_result losses; /* of integers, which may well have one */
    plumb_op_run(&loss, PLUMB_RAISED, &losses, NULL);
    plumb_result_destroy(&losses);
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
        for (int raised = 0; raised < 2; raised++) {
            struct plumb_result result;
            struct plumb_error err = {0};
            const enum plumb_code code =
                plumb_op_run(&calls[k], raised ? PLUMB_RAISED : PLUMB_OWN, &result, &err);
            plumb_result_destroy(&result);
            if (!code || strstr(err.message, "argument"))
                fail_msg("%s: %s", calls[k].name, code ? err.message : "not refused");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found),
                                       cmocka_unit_test(test_signatures),
                                       cmocka_unit_test(test_sweep), cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
