/* Rows of a graph dump of which a side was condensed. */
#define _GNU_SOURCE
#include "task/compare/graph_statistics.h"

#include "run/dtype.h"
#include "task/compare/measure.h"
#include "verdict/decide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN UINT64_MAX

/* What one side of a row is known by. The account points into the rest. */
struct known {
    struct recorded_account account;
    uint64_t count; /* of elements, or UNKNOWN */
    enum plumb_dtype dtype;

    struct measured measured; /* of a side that has its values; of one that was condensed: */
    struct plumb_value deviation;
    char text[PLUMB_STATISTICS][ENDS_BYTES]; /* of those that float64 does not hold */
    struct plumb_kept kept;
    char crc[12];          /* 8 hex digits */
    char hash[HASH_BYTES]; /* 32 */
    struct plumb_sketch sketch;
};

bool statistics_only(const struct air_side *side)
{
    if (side->tensor)
        return side->tensor->recorded != NULL;
    return side->path && !side->op && ge_is_condensed(side->path);
}

static bool is_checksum(const struct plumb_recorded *recorded)
{
    const struct plumb_kept *kept = plumb_recorded_kept(recorded);
    return kept && kept->crc32 && !kept->sketch && !plumb_recorded_has_statistics(recorded);
}

bool statistics_are_checksums(const struct air_side *side)
{
    if (side->tensor)
        return is_checksum(side->tensor->recorded);
    struct plumb_run *run;
    if (plumb_run_open(&run, side->path, NULL))
        return false;
    bool answer = plumb_run_count(run) && is_checksum(plumb_run_record(run, 0)->recorded);
    plumb_run_free(run);
    return answer;
}

/* A script that kept ranges only threw the shapes away. */
static bool is_known(const struct plumb_recorded *recorded)
{
    return strcmp(recorded->shape, "unknown") != 0;
}

static uint64_t count_of(const struct ge_tensor *tensor)
{
    uint64_t count = 1;
    for (unsigned i = 0; i < tensor->shape.rank; i++)
        count *= tensor->shape.dim[i];
    return is_known(tensor->recorded) ? count : UNKNOWN;
}

/* Texts belong to whom they were read from, and are not needed as a rule. */
static void take_number(struct plumb_value *out, const struct plumb_value *value)
{
    if (value->kind == PLUMB_VALUE_NUMBER)
        *out = (struct plumb_value){.kind = PLUMB_VALUE_NUMBER, .number = value->number};
}

static void take_recorded(struct known *out, const struct plumb_recorded *recorded)
{
    out->dtype = run_dtype(recorded->dtype);
    out->account = (struct recorded_account){
        .deviation = &out->deviation, .dtype = out->dtype, .exact = recorded->exact};
    for (unsigned i = 0; i < PLUMB_STATISTICS; i++) {
        const struct plumb_value value = plumb_recorded_statistic(recorded, i);
        take_number(&out->account.statistic[i], &value);
        if (!value.text || fabs(value.number) < 0x1p53 || strlen(value.text) >= ENDS_BYTES)
            continue;
        snprintf(out->text[i], ENDS_BYTES, "%s", value.text);
        out->account.statistic[i].text = out->text[i];
    }
    const struct plumb_kept *kept = plumb_recorded_kept(recorded);
    if (!kept)
        return;
    take_number(&out->deviation, &kept->deviation);
    out->account.kept = &out->kept;
    out->kept = *kept;
    memset(out->kept.finite, 0, sizeof out->kept.finite);
    for (int i = 0; i < PLUMB_STATISTICS; i++)
        take_number(&out->kept.finite[i], &kept->finite[i]);
    if (out->kept.crc32) {
        snprintf(out->crc, sizeof out->crc, "%s", out->kept.crc32);
        out->kept.crc32 = out->account.checksum = out->crc;
    }
    if (out->kept.hash) {
        snprintf(out->hash, sizeof out->hash, "%s", out->kept.hash);
        out->kept.hash = out->hash;
    }
    if (out->kept.sketch) {
        out->sketch = *out->kept.sketch;
        out->kept.sketch = &out->sketch;
    }
}

/* False when out of memory. */
static bool take_payload(struct known *out, const struct plumb_tensor *tensor, unsigned measures)
{
    out->measured.wanted =
        MEASURE_STATISTICS | MEASURE_EXACT | MEASURE_CRC | MEASURE_KEPT | measures;
    if (!compare_measure_tensor(&out->measured, tensor))
        return false;
    out->count = tensor->count;
    out->dtype = tensor->dtype;
    out->account = compare_account(NULL, &out->measured);
    return true;
}

static enum plumb_code show(struct air_shown *shown, const char *dtype, const char *shape,
                            const struct plumb_value *values, struct plumb_error *err)
{
    if (dtype)
        shown->dtype = dtype;
    shown->shape = strdup(shape);
    if (!shown->shape)
        return plumb_no_memory(err);
    shown->counted = values[PLUMB_STATISTIC_MEAN].kind == PLUMB_VALUE_NUMBER;
    shown->max = values[PLUMB_STATISTIC_MAX].number;
    shown->min = values[PLUMB_STATISTIC_MIN].number;
    shown->mean = values[PLUMB_STATISTIC_MEAN].number;
    return PLUMB_OK;
}

/* The statistics of a condensed FX file. */
static enum plumb_code read_fx(const char *path, struct known *known, struct air_shown *shown,
                               struct plumb_error *err)
{
    struct plumb_run *run;
    enum plumb_code code = plumb_run_open(&run, path, err);
    if (code)
        return code;
    const struct plumb_record *record = plumb_run_record(run, 0);
    if (plumb_run_count(run) != 1)
        code = plumb_fail(err, PLUMB_E_FORMAT, "%zu tensors where an FX file has one",
                          plumb_run_count(run));
    else if (record->error)
        code = record->error->code;
    else if (!record->recorded)
        code = plumb_fail(err, PLUMB_E_FORMAT, "neither an FX file nor what was condensed of one");
    if (!code) {
        known->count = is_known(record->recorded) ? record->count : UNKNOWN;
        take_recorded(known, record->recorded);
        code = show(shown, plumb_dtype_info(record->dtype)->name, record->recorded->shape,
                    known->account.statistic, err);
    } else if (record && record->error) {
        *err = *record->error;
    }
    plumb_error_in_file(err, path);
    plumb_run_free(run);
    return code;
}

/* Of a side that has its values, or of one that was condensed. */
static enum plumb_code take_side(const struct air_side *side, const struct plumb_payload *payload,
                                 unsigned measures, struct known *known, struct air_shown *shown,
                                 struct plumb_error *err)
{
    char text[256];
    if (side->tensor && side->tensor->recorded) {
        known->count = count_of(side->tensor);
        take_recorded(known, side->tensor->recorded);
        return show(shown, side->tensor->recorded->dtype, side->tensor->recorded->shape,
                    known->account.statistic, err);
    }
    if (statistics_only(side))
        return read_fx(side->path, known, shown, err);
    if (!take_payload(known, &payload->tensor, measures))
        return plumb_no_memory(err);
    return show(shown, NULL, plumb_shape_text(&payload->tensor, text, sizeof text),
                known->account.statistic, err);
}

static void judge(const struct known known[2], const struct plumb_standard *standard,
                  struct air_result *result)
{
    enum plumb_kind kind = PLUMB_KIND_FLOAT;
    if (known[1].dtype != PLUMB_DTYPE_COUNT)
        kind = plumb_dtype_info(known[1].dtype)->kind;
    struct recorded_evidence evidence = {
        .side = {known[0].account, known[1].account},
        .count = known[1].count == UNKNOWN ? 0 : known[1].count,
        .integers = kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX,
    };
    struct recorded_judgement judgement;
    recorded_judge_statistics(standard, &evidence, &judgement);
    memcpy(result->differences, judgement.difference, sizeof result->differences);
    result->compared = !judgement.problem;
    result->verdict = judgement.verdict;
    result->distance = judgement.distance;
    result->max_rel = judgement.max_rel;
    result->problem = judgement.problem ? strdup(judgement.problem) : NULL;
    result->obstacle = PLUMB_TROUBLE_INCOMPARABLE;
}

/* The next dimension of "[4, 1, 6]" that is not 1, or "" at the end. */
static const char *next_size(const char **shape, size_t *length)
{
    do {
        *shape += strcspn(*shape, "0123456789");
        *length = strspn(*shape, "0123456789");
        *shape += *length;
    } while (*length == 1 && (*shape)[-1] == '1');
    return *shape - *length;
}

static bool same_sizes(const char *a, const char *b)
{
    size_t lengths[2];
    do {
        const char *x = next_size(&a, &lengths[0]), *y = next_size(&b, &lengths[1]);
        if (lengths[0] != lengths[1] || memcmp(x, y, lengths[0]) != 0)
            return false;
    } while (lengths[0]);
    return true;
}

/* Statistics of another kind of number, or of another shape, are not those of the same tensor. */
static enum plumb_code check_likeness(const struct air_row *row, struct air_result *result,
                                      struct plumb_error *err)
{
    const struct air_shown *shown = result->shown;
    const char *shapes[2] = {shown[0].shape, shown[1].shape};
    bool known = strcmp(shapes[0], "unknown") != 0 && strcmp(shapes[1], "unknown") != 0;
    bool converts = row->golden.op && row->golden.op == row->target.op;
    if (known && !same_sizes(shapes[0], shapes[1])) {
        result->obstacle = PLUMB_TROUBLE_SHAPE;
        return plumb_fail(err, PLUMB_E_ARG, "the shapes differ: target %s, golden %s", shapes[0],
                          shapes[1]);
    }
    if (converts || !shown[0].dtype || !shown[1].dtype)
        return PLUMB_OK;
    enum plumb_dtype types[2] = {run_dtype(shown[0].dtype), run_dtype(shown[1].dtype)};
    if (types[0] == PLUMB_DTYPE_COUNT || types[1] == PLUMB_DTYPE_COUNT ||
        compare_same_kind(types[0], types[1]))
        return PLUMB_OK;
    result->obstacle = PLUMB_TROUBLE_TYPE;
    return plumb_fail(err, PLUMB_E_ARG, "the types are of different kinds: target %s, golden %s",
                      shown[0].dtype, shown[1].dtype);
}

/* What the other side makes worth measuring. */
static unsigned measures_for(const struct known *other)
{
    return other->account.kept ? compare_measures_kept(other->account.kept) : 0;
}

static enum plumb_code compare_sides(const struct measurement *measurement, size_t row,
                                     const struct plumb_payload *payloads, struct known known[2],
                                     struct plumb_error *err)
{
    const struct air_row *what = &measurement->rows[row];
    const struct air_side *sides[2] = {&what->target, &what->golden};
    struct air_result *result = &measurement->results[row];
    enum plumb_code code = PLUMB_OK;
    int first = statistics_only(sides[0]) ? 0 : 1; /* says whether the other needs a sketch */
    for (int n = 0, i = first; n < 2 && !code; n++, i = !i)
        code = take_side(sides[i], &payloads[i], measures_for(&known[!i]), &known[i],
                         &result->shown[i], err);
    if (!code)
        code = check_likeness(what, result, err);
    if (code)
        return code;
    if (known[0].count != known[1].count && known[0].count != UNKNOWN &&
        known[1].count != UNKNOWN) {
        result->obstacle = PLUMB_TROUBLE_SHAPE;
        return plumb_fail(err, PLUMB_E_ARG, "the shapes differ: target %s, golden %s",
                          result->shown[0].shape, result->shown[1].shape);
    }
    result->by_statistics = true;
    if (!known[0].count && !known[1].count) {
        result->compared = true;
        verdict_empty(&result->verdict);
        return PLUMB_OK;
    }
    for (int i = 0; i < 2; i++) {
        const char *checksum = known[i].account.checksum;
        snprintf(result->checksum[i], sizeof result->checksum[i], "%s", checksum ? checksum : "");
    }
    judge(known, measurement->standards->recorded, result);
    return PLUMB_OK;
}

enum plumb_code statistics_compare(const struct measurement *measurement, size_t row,
                                   const struct plumb_payload *payloads, struct plumb_error *err)
{
    struct known known[2] = {0};
    enum plumb_code code = compare_sides(measurement, row, payloads, known, err);
    free(known[0].measured.sketch);
    free(known[1].measured.sketch);
    return code;
}
