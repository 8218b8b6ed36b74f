#define _GNU_SOURCE
#include "plumb/precision.h"
#include "task/precision/name.h"
#include "task/precision/number.h"
#include "task/precision/read.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "random.h"
#include "scratch.h"

static struct csv_cell cell(const char *text)
{
    return (struct csv_cell){text, strlen(text)};
}

static double number(const char *text)
{
    double value = 12345;
    assert_true(precision_number(text, strlen(text), &value));
    return value;
}

static void test_numbers(void **state)
{
    (void)state;
    double value;
    assert_true(number("0.1") == 0.1);
    assert_true(number(" -12.5e-3\t") == -12.5e-3);
    assert_true(number("9007199254740993") == 9007199254740992.0);
    assert_true(number("1e400") == INFINITY);
    assert_true(number("5e-324") == 5e-324);
    assert_true(number(".5") == 0.5 && number("5.") == 5 && number("+0") == 0);
    assert_true(signbit(number("-0.0")));
    assert_true(number("-Infinity") == -INFINITY && number("INF") == INFINITY);
    assert_true(isnan(number("NaN")) && isnan(number("-nan")));
    static const char *const bad[] = {"",    " ",   ".",   "e5", "1e",   "1e+",  "0x1p3",
                                      "1 2", "1,5", "--1", "in", "nano", "1.2.3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(precision_number(bad[i], strlen(bad[i]), &value));
    char long_text[1000];
    memset(long_text, '7', sizeof long_text);
    assert_false(precision_number(long_text, sizeof long_text, &value));
}

/* Random decimals of every length against the C library. */
static void test_numbers_exact(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 200000; i++) {
        char text[64];
        double x = (double)(random_bits(&random) >> 11) * 0x1p-53;
        int decimals = (int)(random_bits(&random) % 20);
        x *= pow(10, (double)(random_bits(&random) % 24) - 6);
        snprintf(text, sizeof text, i & 1 ? "%.*f" : "%.*e", decimals, x);
        assert_true(number(text) == strtod(text, NULL));
    }
}

/* 17 digits with leading zeros, then one scaling: beyond that pandas leaves the nearest double. */
static void test_numbers_of_pandas(void **state)
{
    (void)state;
    double value;
    assert_true(precision_number_pandas("0.12345678901234", 16, &value) &&
                value == 0.12345678901234);
    const char *longer = "1234.56789012345678";
    assert_true(precision_number_pandas(longer, strlen(longer), &value));
    assert_true(value == 12345678901234567.0 / 1e13);
    assert_true(precision_number_pandas("1e308", 5, &value) && value == 1e308);
    assert_false(precision_number_pandas("1e309", 5, &value));
    assert_false(precision_number_pandas("nan", 3, &value));
    assert_true(precision_number_pandas(" inf", 4, &value) && value == INFINITY);
    int64_t integer;
    assert_true(precision_integer(" -12 ", 5, &integer) && integer == -12);
    assert_false(precision_integer("1.0", 3, &integer));
    assert_false(precision_integer("-", 1, &integer));
    assert_false(precision_integer("12345678901234567890", 20, &integer));
}

static void test_fixed(void **state)
{
    (void)state;
    static const double special[] = {0.0,      -0.0,   0.5,    1,     -1,       65535.99999999999,
                                     65536,    1e15,   1e300,  1e-14, 5e-15,    1.5e-14,
                                     2.5e-14,  1e-300, 5e-324, 1e22,  999999.5, 0x1p-15,
                                     0x1p-100, 0x1p-75};
    char text[FIXED_BYTES], expected[FIXED_BYTES];
    uint64_t random = 2;
    for (size_t i = 0; i < 200000; i++) {
        double x;
        uint64_t bits = random_bits(&random);
        memcpy(&x, &bits, sizeof x);
        if (i % 2)
            x = (double)(bits >> 11) * pow(2, -(double)(bits % 120));
        if (i < sizeof special / sizeof *special)
            x = special[i];
        if (!isfinite(x))
            continue;
        snprintf(expected, sizeof expected, "%.14f", x);
        assert_int_equal(precision_fixed(x, text), strlen(expected));
        assert_string_equal(text, expected);
    }
    precision_fixed(-NAN, text);
    assert_string_equal(text, "nan");
    precision_fixed(-INFINITY, text);
    assert_string_equal(text, "-inf");
}

static void test_names(void **state)
{
    (void)state;
    struct output_name name;
    assert_true(precision_name(cell("Torch.linalg.inv.0.backward.output.1"), &name));
    assert_int_equal(name.direction, DIRECTION_BACKWARD);
    assert_int_equal(name.api.length, strlen("linalg.inv"));
    assert_memory_equal(name.api.text, "linalg.inv", name.api.length);
    assert_int_equal(name.full.length, strlen("Torch.linalg.inv.0"));
    assert_memory_equal(name.place.text, "backward.output.1", name.place.length);
    assert_true(precision_name(cell("Torch.mm.0.sideways.output.1"), &name));
    assert_int_equal(name.direction, DIRECTION_OTHER);
    assert_false(precision_name(cell("Torch.bad.forward.output.0"), &name));
    assert_false(precision_name(cell("Torch.a.b.c.0.forward.output.0"), &name));
    assert_false(precision_name(cell(""), &name));
    assert_false(precision_name(cell("........................"), &name));

    assert_true(details_is_formula(cell("=1+1")));
    assert_true(details_is_formula(cell("－x")));
    assert_true(details_is_formula(cell("a;@b")));
    assert_false(details_is_formula(cell("a;b=c-d")));
    assert_false(details_is_formula(cell("")));
}

/* ---- whole comparisons ------------------------------------------------------------------------*/

#define HEAD                                                                                       \
    "API name,DEVICE Dtype,Shape,Error ratio in small value range,Root-mean-square error (RMSE),"  \
    "Maximum relative error,Mean relative error,Error balance,Binary consistency error rate,"      \
    "inf/nan error rate,Relative error rate,Absolute error rate,Mean ULP error,Proportion of ULP " \
    "errors greater than the threshold,Dual-1000 metric,Status,Message\n"

struct run {
    struct scratch scratch;
    struct plumb_precision_result result;
    struct plumb_error err;
    enum plumb_code code;
    char *details, *rows; /* the two files */
};

static char *slurp(const char *path)
{
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t size = fread(text, 1, (1 << 20) - 1, stream);
    assert_true(size < (1 << 20) - 1);
    fclose(stream);
    return text;
}

static void start(struct run *run, const char *npu, const char *gpu, bool msprobe)
{
    *run = (struct run){0};
    scratch_make(&run->scratch);
    char *a = strdup(scratch_write(&run->scratch, "npu.csv", npu, strlen(npu)));
    char *b = strdup(scratch_write(&run->scratch, "gpu.csv", gpu, strlen(gpu)));
    run->code = plumb_precision_compare(&run->result,
                                        &(struct plumb_precision_options){
                                            .npu = a,
                                            .gpu = b,
                                            .folder = run->scratch.folder,
                                            .rules = msprobe ? "msprobe" : NULL,
                                        },
                                        &run->err);
    free(a);
    free(b);
    if (run->result.details_path) {
        run->details = slurp(run->result.details_path);
        run->rows = slurp(run->result.result_path);
    }
}

static void end(struct run *run)
{
    free(run->details);
    free(run->rows);
    plumb_precision_free(&run->result);
    scratch_remove(&run->scratch);
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* Refused, with these words, and without leaving a file. */
static void refused(const char *npu, const char *gpu, const char *words, const char *file)
{
    struct run run;
    start(&run, npu, gpu, false);
    assert_int_not_equal(run.code, PLUMB_OK);
    has(run.err.message, words);
    has(run.err.file, file);
    assert_null(run.result.details_path);
    assert_int_equal(scratch_count(&run.scratch), 2);
    end(&run);
}

#define ROW(name, dtype, metrics, status) name "," dtype ",\"(4, 5)\"," metrics "," status ",\n"
#define GOOD ROW("Torch.exp.0.forward.output.0", "torch.float32", "0,0.1,0.1,0.1,0,,,,,,,", "pass")

static void test_documented(void **state)
{
    (void)state;
    struct run run;
    /* Own standard, fallback to the benchmark, level L2, no metrics, and nothing to say. */
    const char *npu = HEAD GOOD ROW("Torch.mul.0.forward.output.0", "torch.float32",
                                    ",,,,,,0,0.5,0,,,", "pass")
        ROW("Torch.mul.1.forward.output.0", "torch.float32", "0,0.1,0.1,0.1,0,,,,,,,", "pass")
            ROW("Torch.matmul.0.forward.output.0", "torch.float16", ",,,,,,,,,5,0.0009,", "pass")
                ROW("Torch.matmul.0.backward.output.0", "torch.float16", ",,,,,,,,,5,0.4,", "pass")
                    ROW("Torch.sum.0.forward.output.0", "torch.float32", "0,0.125,0.1,0.1,0,,,,,,,",
                        "pass") ROW("Torch.shape.0.forward.output.0", "torch.float32",
                                    ",,,,,,,,,,,", "error")
                        ROW("Torch.fine.0.forward.output.0", "torch.float32", ",,,,,,,,,,,", "pass")
                            ROW("Torch.argmax.0.forward.output.0", "torch.int64", ",,,,,0,,,,,,",
                                "pass") ROW("Torch.exp.0.backward.output.0", "torch.float32",
                                            "0,9,0.1,0.1,0,,,,,,,", "pass");
    const char *gpu = HEAD GOOD ROW("Torch.mul.0.forward.output.0", "torch.float32", ",,,,,,,,,,,",
                                    "SKIP") ROW("Torch.mul.1.forward.output.0", "torch.float32",
                                                "0,0.1,0.1,0.1,0,,,,,,,", "pass")
        ROW("Torch.matmul.0.forward.output.0", "torch.float16", ",,,,,,,,,5,0,", "pass")
            ROW("Torch.matmul.0.backward.output.0", "torch.float16", ",,,,,,,,,5,0.4,", "pass") ROW(
                "Torch.sum.0.forward.output.0", "torch.float32", "0,0.1,0.1,0.1,0,,,,,,,", "pass")
                ROW("Torch.shape.0.forward.output.0", "torch.float32", ",,,,,,,,,,,", "pass")
                    ROW("Torch.fine.0.forward.output.0", "torch.float32", ",,,,,,,,,,,", "pass")
                        ROW("Torch.argmax.0.forward.output.0", "torch.int64", ",,,,,0,,,,,,",
                            "pass") ROW("Torch.exp.0.backward.output.0", "torch.float32",
                                        "0,1,0.1,0.1,0,,,,,,,", "pass")
                            ROW("Torch.gpu.0.forward.output.0", "torch.float32",
                                "0,1,0.1,0.1,0,,,,,,,", "pass");
    start(&run, npu, gpu, false);
    assert_int_equal(run.code, PLUMB_OK);
    assert_true(strncmp(run.rows, "API name,Forward", 16) == 0); /* no byte order mark */
    assert_null(strchr(run.details, '\r'));
    has(run.rows, "\nTorch.exp.0,pass,error,");
    has(run.rows, "\nTorch.mul.0,error,,");
    has(run.rows, "\nTorch.mul.1,pass,,\n");
    has(run.rows, "\nTorch.matmul.0,pass,pass,"); /* the other device is no better */
    has(run.details,
        "0.4 is not below 0.001, and its ratio 1 is not below 1; the other device is no "
        "better, so this passes");
    has(run.rows, "\nTorch.sum.0,error,,");
    has(run.rows, "\nTorch.shape.0,error,,");
    has(run.rows, "\nTorch.fine.0,SKIP,,");
    has(run.rows, "\nTorch.argmax.0,pass,,\n");
    has(run.details, "no metrics for absolute threshold, so benchmark comparison decides");
    has(run.details, "ratio 1.25 is over 1.2 (L2)");
    has(run.details, "RMSE): ratio 9 is over 2 (L0)");
    assert_int_equal(run.result.outputs, 10);
    assert_int_equal(run.result.apis, 8);
    assert_int_equal(run.result.error, 4);
    assert_int_equal(run.result.pass, 3);
    assert_int_equal(run.result.skip, 1);
    assert_int_equal(run.result.only_gpu, 1);
    assert_string_equal(run.result.first_only_gpu, "Torch.gpu.0.forward.output.0");
    end(&run);
}

/* Small errors do not make up for another type. */
static void test_types(void **state)
{
    (void)state;
    struct run run;
#define TYPED(dtype, other)                                                                        \
    HEAD ROW("Torch.exp.0.forward.output.0", dtype, "0,0.1,0.1,0.1,0,,,,,,,", "pass")              \
        ROW("Torch.argmax.0.forward.output.0", other, ",,,,,0,,,,,,", "pass")
    const char *right = TYPED("torch.float32", "torch.int64");
    start(&run, TYPED("torch.float64", "torch.int32"), right, false);
    assert_int_equal(run.code, PLUMB_OK);
    assert_int_equal(run.result.warning, 2);
    has(run.details, "the types differ: torch.float64, the other device's torch.float32");
    has(run.details, "the types differ: torch.int32, the other device's torch.int64");
    end(&run);
    start(&run, right, right, false);
    assert_int_equal(run.result.pass, 2);
    end(&run);
    start(&run, TYPED("torch.float16", "torch.int32"), right, true); /* the origin does not mind */
    assert_int_equal(run.result.pass, 2);
    end(&run);
}

static void test_limits(void **state)
{
    (void)state;
    struct run run;
    /* A ratio of exactly the limit passes; the smallest denominator of float32 is 2^-14. */
    const char *npu = HEAD ROW("Torch.a.0.forward.output.0", "torch.float32", "2,2,10,2,2,,,,,,,",
                               "pass") ROW("Torch.b.0.forward.output.0", "torch.float32",
                                           "0,0.0001220703125,0,0,0,,,,,,,", "pass")
        ROW("Torch.c.0.forward.output.0", "torch.float32", "0,0.000122070313,0,0,0,,,,,,,", "pass")
            ROW("Torch.d.0.forward.output.0", "torch.float32", "nan,inf,-inf,0,nan,,,,,,,", "pass")
                ROW("Torch.e.0.forward.output.0", "torch.float32", "0,inf,0,0,0,,,,,,,", "pass")
                    ROW("Torch.f.0.forward.output.0", "torch.float32", "0,0,0,0,3,,,,,,,", "pass")
                        ROW("Torch.conv2d.0.forward.output.0", "torch.float32", ",,,,,,,,,,,0.999",
                            "pass") ROW("Torch.conv2d.1.forward.output.0", "torch.float32",
                                        ",,,,,,,,,,,0.9991", "pass")
                            ROW("Torch.relu.0.forward.output.0", "torch.float32", ",,,,,0.25,,,,,,",
                                "pass");
    const char *gpu = HEAD ROW("Torch.a.0.forward.output.0", "torch.float32", "1,1,1,1,1,,,,,,,",
                               "pass") ROW("Torch.b.0.forward.output.0", "torch.float32",
                                           "0,0,0,0,0,,,,,,,", "pass")
        ROW("Torch.c.0.forward.output.0", "torch.float32", "0,0,0,0,0,,,,,,,", "pass") ROW(
            "Torch.d.0.forward.output.0", "torch.float32", "nan,inf,-inf,0,1,,,,,,,", "pass")
            ROW("Torch.e.0.forward.output.0", "torch.float32", "0,-inf,0,0,0,,,,,,,", "pass")
                ROW("Torch.f.0.forward.output.0", "torch.float32", "0,0,0,0,1,,,,,,,", "pass")
                    ROW("Torch.conv2d.0.forward.output.0", "torch.float32", ",,,,,,,,,,,1", "pass")
                        ROW("Torch.conv2d.1.forward.output.0", "torch.float32", ",,,,,,,,,,,1",
                            "pass") ROW("Torch.relu.0.forward.output.0", "torch.float32",
                                        ",,,,,0.25,,,,,,", "pass");
    start(&run, npu, gpu, false);
    assert_int_equal(run.code, PLUMB_OK);
    has(run.rows, "Torch.a.0,pass");
    has(run.rows, "Torch.b.0,pass");
    has(run.rows, "Torch.c.0,error");
    has(run.rows, "Torch.d.0,pass"); /* the error balance does not count */
    has(run.rows, "Torch.e.0,error");
    has(run.rows, "Torch.f.0,pass");
    has(run.details, "3.00000000000000,error,,,");
    has(run.rows, "Torch.conv2d.0,error");
    has(run.rows, "Torch.conv2d.1,pass");
    has(run.rows, "Torch.relu.0,pass"); /* as the other device */
    end(&run);
}

/* A device is as good as itself, and not as good as one that is a little better. */
static void test_itself(void **state)
{
    (void)state;
    struct run run;
#define ROWS(share, ulp, rate, mean)                                                               \
    HEAD ROW("Torch.conv2d.0.forward.output.0", "torch.float32", ",,,,,,,,,,," share, "error")     \
        ROW("Torch.relu.0.forward.output.0", "torch.float32", ",,,,," rate ",,,,,,", "error")      \
            ROW("Torch.mul.0.forward.output.0", "torch.float32", ",,,,,,0,0," rate ",,,",          \
                "error") ROW("Torch.matmul.0.forward.output.0", "torch.bfloat16",                  \
                             ",,,,,,,,," mean "," ulp ",", "error")                                \
                ROW("Torch.mm.0.forward.output.0", "torch.float32", ",,,,,,,,,inf,nan,", "error")  \
                    ROW("Torch.shape.0.forward.output.0", "torch.float32", ",,,,,,,,,,,", "error")
    const char *bad = ROWS("0.2", "0.5", "0.25", "70");
    start(&run, bad, bad, false);
    assert_int_equal(run.code, PLUMB_OK);
    assert_int_equal(run.result.error, 1); /* another shape is no limit that was missed */
    assert_int_equal(run.result.pass, 5);
    end(&run);
    start(&run, bad, ROWS("0.21", "0.49", "0.24", "70"), false);
    assert_int_equal(run.result.error, 5);
    end(&run);
    start(&run, bad, ROWS("0.2", "0.5", "0.25", "69"), false);
    assert_int_equal(run.result.error, 2);
    end(&run);
}

static void test_refused(void **state)
{
    (void)state;
    refused("", HEAD GOOD, "empty", "npu.csv");
    refused(HEAD GOOD, "\xef\xbb\xbf", "empty", "gpu.csv");
    refused("API name,Status\nx,y\n", HEAD GOOD, "missing: DEVICE Dtype, Error ratio", "npu.csv");
    refused(HEAD GOOD GOOD, HEAD GOOD, "is there twice (line 3", "npu.csv");
    refused(HEAD GOOD, HEAD GOOD GOOD, "line 3: Torch.exp.0.forward.output.0 is there twice",
            "gpu.csv");
    refused(HEAD GOOD "=cmd" GOOD, HEAD GOOD, "line 3: \"=cmdTorch", "npu.csv");
    refused(HEAD GOOD, HEAD GOOD "@x;y" GOOD, "line 3: \"@x", "gpu.csv");
    refused(HEAD GOOD "Torch.a.0.forward.output.0,torch.float32,\"(4, 5)\",0.0", HEAD GOOD,
            "line 3: 4 cells, but the header has 17", "npu.csv");
    refused(HEAD GOOD "Torch.a.0.forward.output.0,torch.float32,\"(4, 5", HEAD GOOD,
            "line 3: a quote is not closed", "npu.csv");
    refused(HEAD GOOD, HEAD ",a,b,c,,,,,,,,,,,,,\n", "line 2: a row without an API name",
            "gpu.csv");
    refused(
        HEAD ROW("Torch.exp.0.forward.output.0", "torch.float32", "0,zero,0,0,0,,,,,,,", "pass"),
        HEAD GOOD, "is \"zero\", which is no number", "npu.csv");
    refused(HEAD GOOD,
            HEAD ROW("Torch.exp.0.forward.output.0", "torch.float32", "0,0x1,0,0,0,,,,,,,", "pass"),
            "is \"0x1\", which is no number", "gpu.csv");
}

/* Bytes that are no text, and cells of absurd length. */
static void test_hostile(void **state)
{
    (void)state;
    struct scratch scratch;
    struct plumb_precision_result result;
    struct plumb_error err;
    scratch_make(&scratch);
    char *gpu = strdup(scratch_write(&scratch, "gpu.csv", HEAD GOOD, strlen(HEAD GOOD)));
    char zero[] = HEAD GOOD;
    zero[sizeof zero - 10] = '\0';
    struct plumb_precision_options options = {.gpu = gpu, .folder = scratch.folder};
    options.npu = scratch_write(&scratch, "npu.csv", zero, sizeof zero - 1);
    assert_int_equal(plumb_precision_compare(&result, &options, &err), PLUMB_E_FORMAT);
    assert_int_equal(err.offset, sizeof zero - 10);

    size_t size = 3 << 20;
    char *huge = malloc(size);
    assert_non_null(huge);
    memset(huge, 'x', size);
    memcpy(huge, HEAD, strlen(HEAD));
    options.npu = scratch_write(&scratch, "npu.csv", huge, size);
    assert_int_equal(plumb_precision_compare(&result, &options, &err), PLUMB_E_FORMAT);
    has(err.message, "line 2: a cell of more than a megabyte");
    memset(huge, ',', size);
    options.npu = scratch_write(&scratch, "npu.csv", huge, size);
    assert_int_equal(plumb_precision_compare(&result, &options, &err), PLUMB_E_FORMAT);
    has(err.message, "columns");
    free(huge);
    options.npu = "/nonexistent/npu.csv";
    assert_int_equal(plumb_precision_compare(&result, &options, &err), PLUMB_E_IO);
    options.npu = gpu;
    options.folder = "/nonexistent";
    assert_int_equal(plumb_precision_compare(&result, &options, &err), PLUMB_E_IO);
    assert_int_equal(scratch_count(&scratch), 2);
    free(gpu);
    scratch_remove(&scratch);
}

/* A file cut at every byte: refused, or every row that is whole is there; never a crash. */
static void test_truncated(void **state)
{
    (void)state;
    static const char text[] = HEAD GOOD "Torch.b.0.forward.output.0,torch.float32,\"(4, "
                                         "\"\"5\"\")\",0,0.1,0.1,0.1,0,,,,,,,,pass,m\n";
    for (size_t size = 0; size < sizeof text - 1; size += size < strlen(HEAD) ? 13 : 1) {
        struct run run;
        char *cut = strndup(text, size);
        start(&run, cut, text, size % 2);
        if (run.code)
            assert_int_not_equal(run.err.message[0], '\0');
        free(cut);
        end(&run);
    }
}

/* Many calls in one second: each has files of its own, and none is touched again. */
static void test_never_clobbers(void **state)
{
    (void)state;
    struct run run;
    start(&run, HEAD GOOD, HEAD GOOD, false);
    char npu[512];
    snprintf(npu, sizeof npu, "%s/npu.csv", run.scratch.folder);
    for (int i = 0; i < 5; i++) {
        struct plumb_precision_result more;
        struct plumb_error err;
        assert_int_equal(plumb_precision_compare(&more,
                                                 &(struct plumb_precision_options){
                                                     .npu = npu,
                                                     .gpu = npu,
                                                     .folder = run.scratch.folder,
                                                 },
                                                 &err),
                         PLUMB_OK);
        assert_string_not_equal(more.details_path, run.result.details_path);
        assert_string_equal(strrchr(more.details_path, '_'), strrchr(more.result_path, '_'));
        plumb_precision_free(&more);
    }
    assert_int_equal(scratch_count(&run.scratch), 2 + 12);
    end(&run);
}

/* No room for the results: an error, and nothing is left of them. */
static void test_full_disk(void **state)
{
    (void)state;
    struct scratch scratch;
    struct plumb_precision_result result;
    struct plumb_error err;
    scratch_make(&scratch);
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    fputs(HEAD, stream);
    for (int i = 0; i < 500; i++)
        fprintf(stream,
                "Torch.exp.%d.forward.output.0,torch.float32,\"(4, 5)\",0,0,0,0,0,,,,,,,,pass,\n",
                i);
    fclose(stream);
    char *path = strdup(scratch_write(&scratch, "a.csv", text, size));
    free(text);
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 20000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum plumb_code code = plumb_precision_compare(
        &result,
        &(struct plumb_precision_options){.npu = path, .gpu = path, .folder = scratch.folder},
        &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(code, PLUMB_E_IO);
    has(err.message, "cannot write");
    has(err.file, "api_precision_compare_details");
    assert_null(result.details_path);
    assert_int_equal(scratch_count(&scratch), 1);
    free(path);
    scratch_remove(&scratch);
}

/* Under msProbe's rules a file of plumb, where blank cells are empty and every cell that can be is
 * filled, is not mistaken for one whose inputs were 8-bit floats. */
static void test_dialects_mix(void **state)
{
    (void)state;
    struct run run;
    const char *text =
        HEAD ROW("Torch.mul.0.forward.output.0", "torch.float32", "0,0.1,0.1,0.1,0,,0,0.5,0,,,",
                 "pass") ROW("Torch.mul.0.backward.output.0", "", ",,,,,,,,,,,", "SKIP");
    start(&run, text, text, true);
    assert_int_equal(run.code, PLUMB_OK);
    assert_true(strncmp(run.rows,
                        "\xef\xbb\xbf"
                        "API Name,",
                        12) == 0);
    has(run.details, "标杆比对法,\r\n");
    has(run.rows, "Torch.mul.0,pass,SKIP,");
    end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_numbers_exact),
        cmocka_unit_test(test_numbers_of_pandas),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_documented),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_itself),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_never_clobbers),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_dialects_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
