/* The files that the search for differences leaves behind. */
#define _GNU_SOURCE
#include "task/ranks/diff.h"

#include "base/number.h"
#include "base/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FLUSH = 1 << 20 };

static const char *const statistic_names[DUMP_STATISTICS_COUNT] = {"max", "min", "mean", "l2norm"};

static void put_text(struct pretty *out, const char *key, const char *text)
{
    pretty_key(out, key);
    pretty_string(out, text);
}

/* A statistic as the file has it; NaN is a word in these tables. */
static void put_value(struct pretty *out, const struct dump_value *value)
{
    char text[NUMBER_BYTES];
    if (!value)
        pretty_string(out, "N/A");
    else if (value->kind == DUMP_NUMBER && isnan(value->number))
        pretty_string(out, "Nan");
    else if (value->kind == DUMP_NUMBER && isinf(value->number))
        pretty_word(out, value->number > 0 ? "Infinity" : "-Infinity");
    else if (value->kind == DUMP_NUMBER)
        pretty_word(out, dump_value_text(value, text));
    else if (value->kind == DUMP_WORD && !strcmp(value->text, "True"))
        pretty_word(out, "true");
    else if (value->kind == DUMP_WORD && !strcmp(value->text, "False"))
        pretty_word(out, "false");
    else
        pretty_string(out, value->text ? value->text : "None");
}

static void put_statistics(struct pretty *out, const char *side, const struct dump_row *row)
{
    char key[32];
    for (size_t i = 0; i < DUMP_STATISTICS_COUNT; i++) {
        snprintf(key, sizeof key, "%s %s", side, statistic_names[i]);
        pretty_key(out, key);
        put_value(out, row ? &row->statistic[i] : NULL);
    }
}

static void put_differences(struct pretty *out, const struct general_pair *pair)
{
    static const char *const keys[2 * DUMP_STATISTICS_COUNT] = {
        "Max diff",       "Min diff",       "Mean diff",       "L2norm diff",
        "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"};
    for (size_t i = 0; i < 2 * DUMP_STATISTICS_COUNT; i++) {
        const struct general_value *value = &pair->value[i];
        char text[NUMBER_BYTES + 1];
        if (value->kind != GENERAL_WORD) {
            size_t length = number_exact(value->number, !value->integer, text);
            if (value->kind == GENERAL_PERCENT)
                memcpy(text + length, "%", 2);
        }
        put_text(out, keys[i], value->kind == GENERAL_WORD ? value->word : text);
    }
}

/* The number of a P2POp's partner, or a word. */
static void put_peer(struct pretty *out, const char *key, const char *text)
{
    char *end = NULL;
    pretty_key(out, key);
    if (text && *text)
        strtoll(text, &end, 10);
    if (end && !*end)
        pretty_word(out, text);
    else
        pretty_string(out, text ? text : "None");
}

/* The row whose P2POp columns a pair shows on the golden side: its partner's, or the one that
 * stands at the same place of the file. */
static const struct dump_row *golden_p2p(const struct diff *diff, size_t pair)
{
    const struct general *general = &diff->general;
    if (diff->rules->p2p_by_place)
        return pair < general->golden.row_count ? &general->golden.rows[pair] : NULL;
    size_t golden = general->pairs[pair].golden;
    return golden == GENERAL_NONE ? NULL : &general->golden.rows[golden];
}

static void put_p2p(struct pretty *out, const struct diff *diff, size_t pair)
{
    const struct dump_row *target = &diff->general.target.rows[diff->general.pairs[pair].target];
    const struct dump_row *golden = golden_p2p(diff, pair);
    put_text(out, "NPU P2POp op", target->p2p_op ? target->p2p_op : "None");
    put_text(out, "Bench P2POp op", golden && golden->p2p_op ? golden->p2p_op : "None");
    put_peer(out, "NPU P2POp peer", target->p2p_peer);
    put_peer(out, "Bench P2POp peer", golden ? golden->p2p_peer : NULL);
}

static void put_head(struct pretty *out, const struct dump_row *target,
                     const struct dump_row *golden)
{
    put_text(out, "NPU Name", target->name);
    put_text(out, "Bench Name", golden ? golden->name : "N/A");
    put_text(out, "NPU Dtype", target->dtype);
    put_text(out, "Bench Dtype", golden ? golden->dtype : "N/A");
    put_text(out, "NPU Tensor Shape", target->shape);
    put_text(out, "Bench Tensor Shape", golden ? golden->shape : "N/A");
    put_text(out, "NPU Requires_grad", target->requires_grad ? target->requires_grad : "N/A");
    put_text(out, "Bench Requires_grad",
             golden && golden->requires_grad ? golden->requires_grad : "N/A");
}

static void put_row(struct pretty *out, const struct diff *diff, const struct diff_api *api,
                    size_t number)
{
    const struct general_pair *pair = &diff->general.pairs[number];
    const struct dump_row *target = &diff->general.target.rows[pair->target];
    const struct dump_row *golden =
        pair->golden == GENERAL_NONE ? NULL : &diff->general.golden.rows[pair->golden];
    const char *result = golden ? "" : "N/A";

    pretty_item(out);
    pretty_open(out, '{');
    put_head(out, target, golden);
    if (diff->checksums) {
        char mine[GENERAL_CRC_BYTES], theirs[GENERAL_CRC_BYTES];
        const char *left = general_checksum(target, mine);
        const char *right = golden ? general_checksum(golden, theirs) : "N/A";
        put_text(out, "NPU MD5", left);
        put_text(out, "BENCH MD5", right);
        result = !golden ? "N/A" : strcmp(left, right) == 0 ? "pass" : "Different";
    } else {
        put_differences(out, pair);
        put_statistics(out, "NPU", target);
        put_statistics(out, "Bench", golden);
    }
    const char *grads[2] = {target->requires_grad ? target->requires_grad : "N/A",
                            golden && golden->requires_grad ? golden->requires_grad : "N/A"};
    pretty_key(out, "Requires_grad Consistent");
    pretty_word(out, strcmp(grads[0], grads[1]) == 0 ? "true" : "false");
    put_text(out, "Result", result);
    put_text(out, "Err_message", golden ? "" : "the golden side has no such row");
    if (diff->stacks) {
        pretty_key(out, "NPU_Stack_Info");
        if (number == api->from)
            analyze_put_stack(out, &diff->general.target, api->api, "\"N/A\"");
        else
            pretty_string(out, "N/A");
    }
    put_text(out, "state", diff_state(target));
    put_text(out, "api_origin_name", api->api->name);
    put_p2p(out, diff, number);
    pretty_close(out, '}');
}

static void put_api(struct pretty *out, const struct diff *diff, const struct diff_api *api)
{
    char words[256];
    size_t from = 0;
    pretty_key(out, api->api->name);
    pretty_open(out, '{');
    pretty_key(out, "is_same");
    pretty_word(out, diff_find(diff, api, &from, words, sizeof words) ? "false" : "true");
    pretty_key(out, "op_items");
    pretty_open(out, '[');
    for (size_t i = api->from; i < api->to; i++)
        put_row(out, diff, api, i);
    pretty_close(out, ']');
    pretty_close(out, '}');
}

/* FOLDER/compare_result[_RANK]_TIME.json, a name that nobody has. */
static enum plumb_code choose_name(char **path, const char *folder, const char *rank,
                                   struct plumb_error *err)
{
    char stamp[32];
    struct tm local;
    time_t now = time(NULL);
    if (!localtime_r(&now, &local) || !strftime(stamp, sizeof stamp, "%Y%m%d%H%M%S", &local))
        return plumb_fail(err, PLUMB_E_IO, "the clock gives no local time");
    for (unsigned i = 0; i < 10000; i++) {
        char suffix[16] = "";
        if (i)
            snprintf(suffix, sizeof suffix, "_%u", i);
        if (asprintf(path, "%s/compare_result%s%s_%s%s.json", folder, *rank ? "_" : "", rank, stamp,
                     suffix) < 0) {
            *path = NULL;
            return plumb_no_memory(err);
        }
        if (access(*path, F_OK) != 0)
            return PLUMB_OK;
        free(*path);
        *path = NULL;
    }
    return plumb_fail(err, PLUMB_E_IO, "too many result files of this second");
}

enum plumb_code diff_write(const struct diff *diff, const char *folder, const char *rank,
                           char **path, struct plumb_error *err)
{
    struct pretty out = {.indent = 1};
    struct output file = {0};
    struct diff_api api = {0};
    enum plumb_code code = choose_name(path, folder, rank, err);
    if (!code)
        code = output_open(&file, *path, err);
    if (code) {
        free(*path);
        *path = NULL;
        return code;
    }
    pretty_open(&out, '{');
    while (!code && diff_next(diff, &api)) {
        put_api(&out, diff, &api);
        if (out.text.failed)
            break;
        if (out.text.size > FLUSH) {
            code = output_bytes(&file, out.text.data, out.text.size, err);
            out.text.size = 0;
        }
    }
    pretty_close(&out, '}');
    buf_text(&out.text, "\n");
    if (!code && out.text.failed)
        code = plumb_no_memory(err);
    if (!code)
        code = output_bytes(&file, out.text.data, out.text.size, err);
    if (code)
        output_discard(&file);
    else
        code = output_commit(&file, false, err);
    if (code) {
        free(*path);
        *path = NULL;
    }
    buf_free(&out.text);
    return code;
}

static void put_side(struct pretty *out, const struct diff *diff, const struct diff_api *api,
                     const char *state)
{
    pretty_key(out, state);
    pretty_open(out, '{');
    for (size_t i = api->from; i < api->to; i++) {
        const struct dump_row *row = &diff->general.target.rows[diff->general.pairs[i].target];
        char checksum[GENERAL_CRC_BYTES];
        if (strcmp(diff_state(row), state) != 0)
            continue;
        pretty_key(out, row->name);
        pretty_open(out, '{');
        if (diff->checksums)
            put_text(out, "NPU MD5", general_checksum(row, checksum));
        else
            put_statistics(out, "NPU", row);
        put_peer(out, "NPU P2POp peer", row->p2p_peer);
        pretty_close(out, '}');
    }
    pretty_close(out, '}');
}

void diff_put_node(struct pretty *out, const struct diff *diff, const struct diff_api *api)
{
    pretty_item(out);
    pretty_open(out, '{');
    put_text(out, "op_name", api->api->name);
    pretty_key(out, "data_info");
    pretty_open(out, '{');
    put_side(out, diff, api, "input");
    put_side(out, diff, api, "output");
    pretty_close(out, '}');
    pretty_key(out, "stack_info");
    analyze_put_stack(out, &diff->general.target, api->api, "null");
    pretty_close(out, '}');
}
