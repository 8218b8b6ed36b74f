/* Faults that kernels really have, planted behind the cpu device: each must be called an error,
 * on its own operator and in its own direction, and on no other. Outputs are of order 1. */
#define _GNU_SOURCE
#include "plumb/precheck.h"
#include "task/precheck/faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

/* ---- What is checked ------------------------------------------------------------------------- */

struct sample {
    const char *name, *dtype;
    const char *inputs[3], *kwargs, *output;
    double limit; /* inputs are between -limit and limit */
};

static const struct sample samples[] = {
    {"Torch.matmul.0", "float32", {"[32,64]", "[64,24]"}, "", "[32,24]", 1},
    {"Functional.linear.0", "bfloat16", {"[32,64]", "[24,64]", "[24]"}, "", "[32,24]", 1},
    {"Functional.softmax.0",
     "float32",
     {"[24,24]"},
     "\"dim\":{\"type\":\"int\",\"value\":-1}",
     "[24,24]",
     1},
    {"Functional.layer_norm.0",
     "float32",
     {"[32,24]"},
     "\"normalized_shape\":[{\"type\":\"int\",\"value\":24}]",
     "[32,24]",
     1},
    {"Functional.gelu.0", "bfloat16", {"[32,24]"}, "", "[32,24]", 2},
    {"Torch.mul.0", "float32", {"[32,24]", "[32,24]"}, "", "[32,24]", 1},
    {"Functional.relu.0", "float32", {"[32,24]"}, "", "[32,24]", 1},
    {"Torch.triu.0", "bfloat16", {"[32,24]"}, "", "[32,24]", 1},
    {"Torch.neg.0", "float32", {"[32,24]"}, "", "[32,24]", 0},
    {"Torch.maximum.0", "float32", {"[32,24]", "[32,24]"}, "", "[32,24]", 0},
};

enum { SAMPLES = sizeof samples / sizeof *samples };

static void put_tensor(FILE *file, const struct sample *s, const char *shape, double limit)
{
    fprintf(file,
            "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.%s\",\"shape\":%s,\"Max\":%g,\"Min\":%g,"
            "\"requires_grad\":true}",
            s->dtype, shape, limit, -limit);
}

static void put_sample(FILE *file, const struct sample *s)
{
    fprintf(file, "\"%s.forward\":{\"input_args\":[", s->name);
    for (int k = 0; k < 3 && s->inputs[k]; k++) {
        fputs(k ? "," : "", file);
        put_tensor(file, s, s->inputs[k], s->limit);
    }
    fprintf(file, "],\"input_kwargs\":{%s},\"output\":[", s->kwargs);
    put_tensor(file, s, s->output, 1);
    fprintf(file, "]},\"%s.backward\":{\"input\":[", s->name);
    put_tensor(file, s, s->output, 1);
    fputs("],\"output\":[]}", file);
}

static void put_dump(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"task\":\"statistics\",\"level\":\"L1\",\"framework\":\"pytorch\","
          "\"dump_data_dir\":null,\"data\":{",
          file);
    for (int k = 0; k < SAMPLES; k++) {
        fputs(k ? "," : "", file);
        put_sample(file, &samples[k]);
    }
    fputs("}}", file);
    assert_int_equal(fclose(file), 0);
}

/* ---- Where faults are planted ---------------------------------------------------------------- */

struct fault {
    const char *text;
    void (*plant)(const struct target *target);
    const char *api; /* of `samples` */
    enum direction direction;
    bool documented_only; /* the other rules do not see it */
};

static const struct fault faults[] = {
    {"scale", fault_scale, "Torch.matmul.0", FORWARD, false},
    {"scale", fault_scale, "Torch.matmul.0", BACKWARD, false},
    {"scale", fault_scale, "Functional.linear.0", FORWARD, false},
    {"scale", fault_scale, "Functional.linear.0", BACKWARD, true},
    {"scale", fault_scale, "Functional.layer_norm.0", FORWARD, false},
    {"scale", fault_scale, "Functional.gelu.0", BACKWARD, false},
    {"scale", fault_scale, "Torch.mul.0", FORWARD, false},
    {"dropped tail", fault_dropped_tail, "Torch.matmul.0", FORWARD, false},
    {"dropped tail", fault_dropped_tail, "Torch.matmul.0", BACKWARD, false},
    {"dropped tail", fault_dropped_tail, "Functional.linear.0", FORWARD, false},
    {"dropped tail", fault_dropped_tail, "Functional.linear.0", BACKWARD, true},
    {"wrong tile", fault_wrong_tile, "Torch.matmul.0", FORWARD, false},
    {"wrong tile", fault_wrong_tile, "Functional.linear.0", BACKWARD, true},
    {"wrong tile", fault_wrong_tile, "Functional.gelu.0", FORWARD, false},
    {"wrong tile", fault_wrong_tile, "Torch.mul.0", BACKWARD, false},
    {"bfloat16 sums", fault_bf16_sums, "Torch.matmul.0", FORWARD, false},
    {"bfloat16 sums", fault_bf16_sums, "Torch.matmul.0", BACKWARD, false},
    {"bfloat16 sums", fault_bf16_sums, "Functional.linear.0", FORWARD, false},
    {"bfloat16 sums", fault_bf16_sums, "Functional.linear.0", BACKWARD, true},
    {"stale row", fault_stale_row, "Functional.layer_norm.0", FORWARD, false},
    {"stale row", fault_stale_row, "Functional.layer_norm.0", BACKWARD, false},
    {"stale row", fault_stale_row, "Functional.linear.0", FORWARD, false},
    {"stale row", fault_stale_row, "Functional.relu.0", BACKWARD, false},
    {"one NaN", fault_one_nan, "Torch.matmul.0", FORWARD, false},
    {"one NaN", fault_one_nan, "Torch.matmul.0", BACKWARD, true},
    {"one NaN", fault_one_nan, "Functional.linear.0", FORWARD, true},
    {"one NaN", fault_one_nan, "Functional.gelu.0", BACKWARD, true},
    {"sign of zero", fault_zero_sign, "Functional.relu.0", FORWARD, true},
    {"sign of zero", fault_zero_sign, "Torch.triu.0", FORWARD, true},
    {"sign of zero", fault_zero_sign, "Torch.neg.0", FORWARD, true},
    {"sign of zero", fault_zero_sign, "Torch.maximum.0", FORWARD, true},
    {"wrong axis", fault_wrong_axis, "Functional.softmax.0", FORWARD, false},
    {"wrong axis", fault_wrong_axis, "Functional.softmax.0", BACKWARD, false},
};

/* ---- The device ------------------------------------------------------------------------------ */

/* The cpu device with at most one fault. */
struct faulty {
    struct plumb_device *cpu;
    const struct fault *fault; /* NULL: none */
    struct plumb_tensor tensor;
    void *data; /* of the spoilt tensor, which outlives the call */
    int planted;
};

static bool is_call(const struct plumb_call *call, const char *api)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s.0", call->prefix, call->name);
    return strcmp(name, api) == 0;
}

static enum plumb_code faulty_run(struct plumb_device *device, const struct plumb_call *call,
                                  struct plumb_result *out, struct plumb_error *err)
{
    struct faulty *f = device->state;
    enum plumb_code code = f->cpu->run(f->cpu, call, out, err);
    if (code || !f->fault || !is_call(call, f->fault->api) ||
        (f->fault->direction == BACKWARD && !call->n_grads))
        return code;
    struct plumb_arg *arg = f->fault->direction == FORWARD ? &out->outputs[0] : &out->grads[0];
    const struct plumb_tensor *from = arg->tensor;
    assert_int_equal(from->rank, 2);
    double *x = fault_values(from);
    const struct target target = {.cpu = f->cpu,
                                  .call = call,
                                  .direction = f->fault->direction,
                                  .rows = from->shape[0],
                                  .columns = from->shape[1],
                                  .x = x};
    f->fault->plant(&target);
    free(f->data);
    f->data = malloc(plumb_tensor_bytes(from));
    assert_non_null(f->data);
    plumb_from_f64(from->dtype, x, (size_t)from->count, f->data);
    free(x);
    assert_int_equal(plumb_tensor_init(&f->tensor, from->dtype, 2, from->shape, NULL), PLUMB_OK);
    f->tensor.data = f->data;
    arg->tensor = &f->tensor;
    f->planted++;
    return PLUMB_OK;
}

/* ---- The check ------------------------------------------------------------------------------- */

/* The statuses of each sample, in order. */
struct verdicts {
    char status[SAMPLES][2][16];
};

static void read_verdicts(const char *path, struct verdicts *out)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *line = NULL;
    size_t size = 0;
    assert_true(getline(&line, &size, file) > 0);
    for (int k = 0; k < SAMPLES; k++) {
        char name[64];
        assert_true(getline(&line, &size, file) > 0);
        assert_int_equal(sscanf(line, "%63[^,],%15[^,],%15[^,\r\n]", name, out->status[k][FORWARD],
                                out->status[k][BACKWARD]),
                         3);
        assert_string_equal(name, samples[k].name);
    }
    free(line);
    fclose(file);
}

static void run_check(const struct fault *fault, const char *rules, struct verdicts *out)
{
    struct scratch scratch;
    scratch_make(&scratch);
    char dump[1024];
    snprintf(dump, sizeof dump, "%s", scratch_path(&scratch, "dump.json"));
    put_dump(dump);

    struct faulty faulty = {.fault = fault};
    assert_int_equal(plumb_device_open("cpu", &faulty.cpu, NULL), PLUMB_OK);
    struct plumb_device device = {
        .api_version = PLUMB_DEVICE_API, .name = "faulty", .state = &faulty, .run = faulty_run};
    struct plumb_device *const devices[] = {&device};
    const struct plumb_precheck_options options = {.dump = dump,
                                                   .folder = scratch.folder,
                                                   .rules = rules,
                                                   .seed = 1234,
                                                   .devices = devices,
                                                   .n_devices = 1,
                                                   .threads = 1};
    struct plumb_precheck_summary summary;
    struct plumb_error err = {0};
    if (plumb_precheck_run(&options, &summary, &err))
        fail_msg("%s", err.message);
    assert_true((fault != NULL) == (faulty.planted > 0));
    assert_int_equal(summary.apis[PLUMB_PRECHECK_SKIP], 0);
    read_verdicts(summary.result, out);
    plumb_device_close(faulty.cpu);
    free(faulty.data);
    scratch_remove(&scratch);
}

static void expect(const struct fault *fault, const char *rules)
{
    static const char *const direction_name[] = {"forward", "backward"};
    struct verdicts verdicts;
    run_check(fault, rules, &verdicts);
    for (int k = 0; k < SAMPLES; k++)
        for (int d = FORWARD; d <= BACKWARD; d++) {
            bool planted =
                fault && d == (int)fault->direction && strcmp(samples[k].name, fault->api) == 0;
            bool error = strcmp(verdicts.status[k][d], "error") == 0;
            if (planted != error)
                fail_msg("%s in %s %s: %s %s is %s", fault ? fault->text : "nothing",
                         fault ? fault->api : "", fault ? direction_name[fault->direction] : "",
                         samples[k].name, direction_name[d], verdicts.status[k][d]);
        }
}

static void test_unknown_generator(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    char dump[1024];
    snprintf(dump, sizeof dump, "%s", scratch_path(&scratch, "dump.json"));
    put_dump(dump);
    struct plumb_device *cpu;
    assert_int_equal(plumb_device_open("cpu", &cpu, NULL), PLUMB_OK);
    /* No such rules, and rules without a generator of their own. */
    static const char *const names[] = {"dice", "documented"};
    for (size_t k = 0; k < 2; k++) {
        const struct plumb_precheck_options options = {.dump = dump,
                                                       .folder = scratch.folder,
                                                       .rng = names[k],
                                                       .devices = &cpu,
                                                       .n_devices = 1};
        struct plumb_precheck_summary summary;
        struct plumb_error err = {0};
        assert_int_equal(plumb_precheck_run(&options, &summary, &err), PLUMB_E_ARG);
        assert_non_null(strstr(err.message, names[k]));
    }
    plumb_device_close(cpu);
    scratch_remove(&scratch);
}

static void test_no_fault(void **state)
{
    (void)state;
    expect(NULL, "documented");
    expect(NULL, "msprobe");
}

static void test_documented(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        expect(&faults[k], "documented");
}

/* There zeros have no sign, a NaN is one bad value among all, and of several outputs the last
 * that does not pass decides: a warning hides an error before it. */
static void test_msprobe(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        if (!faults[k].documented_only)
            expect(&faults[k], "msprobe");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_fault),
        cmocka_unit_test(test_documented),
        cmocka_unit_test(test_msprobe),
        cmocka_unit_test(test_unknown_generator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
