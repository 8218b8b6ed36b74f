/* Operators that were recorded one by one: unit tests made of them, and the results that two
 * devices gave in those tests, side by side. */
#ifndef PLUMB_UNITTEST_H
#define PLUMB_UNITTEST_H

#include "plumb/expected.h"
#include "plumb/table.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_unittest_options {
    bool cpu_init;               /* inputs are made on the CPU, then moved */
    bool random;                 /* recorded tensors are not used, even where they were kept */
    bool blacklist;              /* leave operators out: the built-in list, or that of the file */
    const char *blacklist_file;  /* names, one a line; NULL: the built-in list */
    const char *folder;          /* for the tests; NULL: pytests beside the dump */
    enum plumb_deciding verdict; /* of the tests, unless pytest is told; by rules they need PyTorch
                                    and pytest only, else plumb's Python package too */
};

struct plumb_unittest_result {
    char *folder; /* where the tests are */
    size_t tests, operators;
    size_t blacklisted; /* calls that were left out for being on the list */
    size_t unusable;    /* calls of which too little was recorded, left out too */
};

/* Reads a dump.json of operators ("00004-aten") and writes a folder: a pytest module an
 * operator, a test a call, and conftest.py. What an earlier call left there goes away; a folder
 * with anything else that pytest would run is refused. Nothing in the dump can become code:
 * names are cleaned, texts are quoted, and of types only known ones are made again. Free with
 * plumb_unittest_free, after a failure too. */
enum plumb_code plumb_unittest_write(struct plumb_unittest_result *out, const char *dump,
                                     const struct plumb_unittest_options *options,
                                     struct plumb_error *err);
void plumb_unittest_free(struct plumb_unittest_result *result);

struct plumb_unittest_diff {
    struct plumb_table *table;
    size_t passed, failed, skipped; /* rows of both files */
    size_t broken[2];               /* of the failed: the test failed on that device by itself, or
                                       its error is not finite */
    size_t other_inputs;            /* rows of both files whose tests ran on different inputs */
    bool without_inputs[2];         /* the file does not say what its tests ran on */
    size_t first_only, second_only; /* listed at the end of the table */
    char names[2][32];              /* what the columns call the two files: "xpu", "gpu" */
    bool judged[2];                 /* the file has opinions: columns Verdict and Why */
    size_t faults, unjudged;        /* of the rows of the first file, where it has them */
};

/* Joins two CSV files that such tests wrote, by name, in the order of the names. A row passes when
 * above no power of ten the first file has more elements than the second, but for `allowance` (a
 * share: 0.001) of the row's elements, and no element is far off. Powers below the error that the
 * type has by itself (float32: 1e-6, float16: 1e-3, bfloat16: 1e-2 of the output's range) do not
 * count. A row fails when a test failed on its own device, when an error is not finite, and when
 * the files disagree about operator, type or shape. Tests that ran on different inputs, by the
 * checksums in the files, are not judged; where a file has none, names alone decide. The columns
 * are named after the files, xpu.csv and gpu.csv, when their names are two different plain words,
 * else xpu and gpu. Opinions of either file are the last columns. Free with
 * plumb_unittest_diff_free, after a failure too. */
enum plumb_code plumb_unittest_compare(struct plumb_unittest_diff *out, const char *first,
                                       const char *second, double allowance,
                                       struct plumb_error *err);
void plumb_unittest_diff_free(struct plumb_unittest_diff *diff);

#ifdef __cplusplus
}
#endif
#endif
