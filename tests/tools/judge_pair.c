#define _GNU_SOURCE
/* Prints the details row of pairs of outputs as JSON, for tests that know the right cells:
 *
 *     judge_pair < lines of RULES, API, FP8, BENCH and DEVICE, separated by tabs
 *
 * RULES is documented, msprobe, dropout for the status of that rule alone, or fp8_ulp for the
 * error of one 8-bit float; FP8 is 1 when an input was an 8-bit float. A side is none, bool:1,
 * int:5, float:1.5, str:ab, list:, or FILE.npy@DTYPE, where the type says what the stored bits
 * are (bfloat16 kept as uint16). */
#include "msprobe/profile.h"
#include "plumb/run.h"
#include "verdict/precheck.h"
#include "verdict/precheck_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct side {
    struct plumb_run *run;
    struct plumb_payload payload;
    struct plumb_arg arg;
};

static const char *after(const char *word, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(word, prefix, length) == 0 ? word + length : NULL;
}

static enum plumb_code load(struct side *side, char *word, struct plumb_error *err)
{
    char *at = strrchr(word, '@');
    if (!at)
        return plumb_fail(err, PLUMB_E_ARG, "%s has no @DTYPE", word);
    *at = '\0';
    enum plumb_code code = plumb_run_open(&side->run, word, err);
    if (!code)
        code = plumb_run_load(side->run, 0, &side->payload, err);
    if (!code) {
        side->payload.tensor.dtype = plumb_dtype_from_name(at + 1);
        side->arg = (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = &side->payload.tensor};
    }
    return code;
}

static enum plumb_code side_from(struct side *side, char *word, struct plumb_error *err)
{
    const char *value;
    memset(side, 0, sizeof *side);
    if (strcmp(word, "none") == 0)
        side->arg.kind = PLUMB_ARG_NONE;
    else if (strcmp(word, "list:") == 0)
        side->arg.kind = PLUMB_ARG_LIST;
    else if ((value = after(word, "bool:")))
        side->arg = (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = *value == '1'};
    else if ((value = after(word, "int:")))
        side->arg = (struct plumb_arg){.kind = PLUMB_ARG_INT, .integer = strtoll(value, NULL, 10)};
    else if ((value = after(word, "float:")))
        side->arg = (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = strtod(value, NULL)};
    else if ((value = after(word, "str:")))
        side->arg = (struct plumb_arg){.kind = PLUMB_ARG_TEXT, .text = value};
    else
        return load(side, word, err);
    return PLUMB_OK;
}

static void print_row(const struct details_row *row)
{
    printf("{\"cells\": [\"%s\", \"%s\", \"%s\"", row->bench_dtype, row->device_dtype, row->shape);
    for (int i = 0; i < CELL_COUNT; i++)
        printf(", \"%s\"", row->cell[i]);
    printf("], \"status\": \"%s\", \"message\": \"%s\"}\n", check_status_text(row->status),
           row->message);
}

static enum plumb_code judge(const char *rules, const char *api, bool fp8, char *const *words,
                             struct plumb_error *err)
{
    struct judge_options options = {.rules = strcmp(rules, "msprobe") == 0 ? &msprobe_standards
                                                                           : &standards_documented,
                                    .precision = 14,
                                    .quantized = standard_quantized};
    struct side side[2];
    struct details_row row = {.name = ""};
    struct arena arena = {0};
    memset(side, 0, sizeof side);
    enum plumb_code code = PLUMB_OK;
    for (int i = 0; i < 2 && !code; i++)
        code = side_from(&side[i], words[i], err);
    if (!code && strcmp(rules, "dropout") == 0)
        printf("{\"status\": \"%s\"}\n",
               check_status_text(judge_dropout(options.rules, &side[0].arg, &side[1].arg)));
    else if (!code && strcmp(rules, "fp8_ulp") == 0)
        printf("{\"ulp\": \"%a\"}\n", judge_fp8_ulp(side[1].arg.number, side[0].arg.number));
    else if (!code)
        code = judge_output(&options, api, fp8, &side[0].arg, &side[1].arg, &arena, &row);
    if (!code && row.message)
        print_row(&row);
    for (int i = 0; i < 2; i++) {
        plumb_payload_release(&side[i].payload);
        plumb_run_free(side[i].run);
    }
    arena_free(&arena);
    return code;
}

int main(void)
{
    char line[8192];
    while (fgets(line, sizeof line, stdin)) {
        char *words[5], *save = NULL;
        size_t count = 0;
        for (char *word = strtok_r(line, "\t\n", &save); word && count < 5;
             word = strtok_r(NULL, "\t\n", &save))
            words[count++] = word;
        struct plumb_error err = {0};
        char text[900];
        if (count == 5 && judge(words[0], words[1], words[2][0] == '1', words + 3, &err)) {
            fprintf(stderr, "judge_pair: %s\n", plumb_error_text(&err, text, sizeof text));
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
