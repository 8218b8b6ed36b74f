#define _GNU_SOURCE
/* Prints all metrics of pairs as JSON, for tests that know the right values:
 *
 *     pair_metrics RULE < lines of TARGET.npy, GOLDEN.npy and perhaps both dtypes
 *
 * separated by tabs. A dtype given says what the stored bits are (bfloat16 kept as uint16). */
#include "plumb/metric.h"
#include "plumb/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void number(const char *name, double value)
{
    printf(", \"%s\": \"%a\"", name, value);
}

static void print_metrics(const struct plumb_metrics *m)
{
    printf("{\"ok\": true");
    for (const struct plumb_metric_name *name = plumb_metric_names(); name->name; name++)
        number(name->name, name->value(m));
    number("precheck_rmse", m->precheck_rmse);
    number("precheck_balance", m->precheck_balance);
    number("precheck_max_rel", m->precheck_max_rel);
    number("precheck_mean_rel", m->precheck_mean_rel);
    number("small_error_rate", m->small_error_rate);
    number("inf_nan_error_rate", m->inf_nan_error_rate);
    number("rel_error_rate", m->rel_error_rate);
    number("abs_error_rate", m->abs_error_rate);
    number("acc_inf_nan_error_rate", m->acc_inf_nan_error_rate);
    number("acc_rel_error_rate", m->acc_rel_error_rate);
    number("acc_abs_error_rate", m->acc_abs_error_rate);
    puts("}");
}

static enum plumb_code load(const char *path, const char *dtype, struct plumb_run **run,
                            struct plumb_payload *payload, struct plumb_error *err)
{
    enum plumb_code code = plumb_run_open(run, path, err);
    if (!code)
        code = plumb_run_load(*run, 0, payload, err);
    if (!code && dtype)
        payload->tensor.dtype = plumb_dtype_from_name(dtype);
    return code;
}

static enum plumb_code pair(const struct plumb_metric_spec *spec, char *const *words, size_t count,
                            struct plumb_error *err)
{
    struct plumb_run *run[2] = {NULL, NULL};
    struct plumb_payload payload[2];
    struct plumb_metrics metrics;
    memset(payload, 0, sizeof payload);
    enum plumb_code code = PLUMB_OK;
    for (size_t side = 0; side < 2 && !code; side++)
        code =
            load(words[side], count == 4 ? words[2 + side] : NULL, &run[side], &payload[side], err);
    if (!code)
        code = plumb_metric_pair(spec, &payload[0].tensor, &payload[1].tensor, &metrics, err);
    if (!code)
        print_metrics(&metrics);
    for (size_t side = 0; side < 2; side++) {
        plumb_payload_release(&payload[side]);
        plumb_run_free(run[side]);
    }
    return code;
}

int main(int argc, char **argv)
{
    static const char *const rules[] = {"plain", "torchair", "general", "precheck"};
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    spec.groups = PLUMB_G_ALL | PLUMB_G_PRECHECK;
    spec.relative = PLUMB_REL_PLAIN;
    for (size_t i = 0; argc > 1 && i < sizeof rules / sizeof *rules; i++)
        if (strcmp(argv[1], rules[i]) == 0)
            spec.relative = (enum plumb_relative_rule)i;
    spec.equal_nan = spec.relative == PLUMB_REL_PLAIN;

    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        char *words[4], *save = NULL;
        size_t count = 0;
        for (char *word = strtok_r(line, "\t\n", &save); word && count < 4;
             word = strtok_r(NULL, "\t\n", &save))
            words[count++] = word;
        struct plumb_error err;
        char text[900];
        if (count >= 2 && pair(&spec, words, count, &err))
            printf("{\"ok\": false, \"error\": \"%s\"}\n",
                   plumb_error_text(&err, text, sizeof text));
    }
    return EXIT_SUCCESS;
}
