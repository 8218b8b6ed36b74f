/* What two runs, and each pair of their records, can be compared by. */
#define _GNU_SOURCE
#include "run/dtype.h"
#include "run/stock.h"
#include "task/compare/compare.h"
#include "verdict/decide.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum compare_mode compare_choose_mode(struct stock t, struct stock g)
{
    /* A few tensors kept beside the statistics of all do not make a dump of tensors. */
    if (t.payloads * 2 >= t.tensors && g.payloads * 2 >= g.tensors)
        return MODE_TENSORS;
    if (t.checksums && g.checksums)
        return MODE_CHECKSUMS;
    bool checksums = (t.checksums || t.payloads) && (g.checksums || g.payloads);
    if ((t.statistics || t.payloads) && (g.statistics || g.payloads))
        return MODE_STATISTICS;
    return checksums ? MODE_CHECKSUMS : MODE_STATISTICS;
}

/* Types that hold the same kind of number may be compared: 'f', 'i', 'b', 'c'; '?' is unknown. */
static char kind_of_dtype(enum plumb_dtype dtype)
{
    static const char letters[] = {[PLUMB_KIND_BOOL] = 'b',
                                   [PLUMB_KIND_UINT] = 'i',
                                   [PLUMB_KIND_INT] = 'i',
                                   [PLUMB_KIND_FLOAT] = 'f',
                                   [PLUMB_KIND_COMPLEX] = 'c'};
    return dtype == PLUMB_DTYPE_COUNT ? '?' : letters[plumb_dtype_info(dtype)->kind];
}

bool compare_same_kind(enum plumb_dtype a, enum plumb_dtype b)
{
    return kind_of_dtype(a) == kind_of_dtype(b);
}

char compare_kind(const struct plumb_record *record)
{
    enum plumb_dtype dtype = record->dtype;
    if (record->recorded && !record->recorded->dtype)
        return '?';
    if (record->recorded)
        dtype = run_dtype(record->recorded->dtype);
    return kind_of_dtype(dtype);
}

const char *compare_dtype(const struct plumb_record *record)
{
    if (record->recorded)
        return record->recorded->dtype;
    return record->error ? NULL : plumb_dtype_info(record->dtype)->name;
}

const char *compare_shape(const struct plumb_record *record, char *text, size_t size)
{
    struct plumb_tensor tensor;
    if (record->recorded)
        return record->recorded->shape;
    if (record->error ||
        plumb_tensor_init(&tensor, record->dtype, record->ndim, record->shape, NULL))
        return NULL;
    return plumb_shape_text(&tensor, text, size);
}

/* Types that hold the same kind of number may be compared. */
static bool same_kind(const struct plumb_record *target, const struct plumb_record *golden)
{
    const char *a = compare_dtype(target), *b = compare_dtype(golden);
    if (a && b && strcmp(a, b) == 0)
        return true;
    char t = compare_kind(target), g = compare_kind(golden);
    return t == g && t != '?';
}

/* Scripts that reduced a dump to ranges kept no shapes; even a scalar has one element. */
static bool is_shapeless(const struct plumb_record *record)
{
    return record->absent && !record->ndim && !record->count;
}

static bool same_shape(const struct plumb_record *a, const struct plumb_record *b)
{
    unsigned i = 0, k = 0;
    for (;;) {
        while (i < a->ndim && a->shape[i] == 1)
            i++;
        while (k < b->ndim && b->shape[k] == 1)
            k++;
        if (i == a->ndim || k == b->ndim)
            return i == a->ndim && k == b->ndim;
        if (a->shape[i++] != b->shape[k++])
            return false;
    }
}

static void refuse(struct row *row, enum plumb_trouble obstacle, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void refuse(struct row *row, enum plumb_trouble obstacle, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    row->basis = BY_NOTHING;
    row->obstacle = obstacle;
    if (vasprintf(&row->problem, format, args) < 0)
        row->problem = NULL;
    va_end(args);
}

static const char *what_is(const struct plumb_record *record)
{
    if (record_is_tensor(record))
        return "a tensor";
    const char *type = record->recorded->type;
    return type && *type ? type : record->recorded->dtype;
}

/* What dump.json says may already settle it: a row that it lost, a shape that cannot be. True when
 * it does. */
static bool refuse_by_record(struct row *row, const struct plumb_record *target,
                             const struct plumb_record *golden)
{
    for (int side = 0; side < 2; side++) {
        const struct plumb_record *record = side ? golden : target;
        char text[800];
        if (!record->error || !record->absent)
            continue;
        refuse(row, PLUMB_TROUBLE_UNREADABLE, "%s",
               plumb_error_text(record->error, text, sizeof text));
        return true;
    }
    if (record_is_tensor(target) != record_is_tensor(golden)) {
        refuse(row, PLUMB_TROUBLE_TYPE, "the target is %s, the golden value is %s", what_is(target),
               what_is(golden));
        return true;
    }
    if (!record_is_tensor(target) || (!target->recorded && !golden->recorded))
        return false;
    bool known = (target->recorded || !target->error) && (golden->recorded || !golden->error);
    if (known && !same_kind(target, golden)) {
        char t = compare_kind(target), g = compare_kind(golden);
        if (t == '?' || g == '?')
            refuse(row, PLUMB_TROUBLE_TYPE, "plumb does not know the type %s: target %s, golden %s",
                   compare_dtype(t == '?' ? target : golden), compare_dtype(target),
                   compare_dtype(golden));
        else
            refuse(row, PLUMB_TROUBLE_TYPE,
                   "the types are of different kinds: target %s, golden %s", compare_dtype(target),
                   compare_dtype(golden));
        return true;
    }
    bool values = record_has_payload(target) && record_has_payload(golden);
    if (!known || (values && (!target->recorded || !golden->recorded)))
        return false; /* what the files hold will be seen when they are read */
    if (is_shapeless(target) || is_shapeless(golden) || same_shape(target, golden))
        return false;
    char t[1400], g[1400]; /* 64 dimensions of 20 digits */
    refuse(row, PLUMB_TROUBLE_SHAPE, "the shapes differ: target %s, golden %s",
           compare_shape(target, t, sizeof t), compare_shape(golden, g, sizeof g));
    return true;
}

/* Values say more than anything that was recorded about them, whatever the mode of the table. */
static enum basis choose_basis(enum compare_mode mode, const struct plumb_record *target,
                               const struct plumb_record *golden)
{
    bool t = record_has_payload(target), g = record_has_payload(golden);
    bool statistics = (t || record_has_statistics(target)) && (g || record_has_statistics(golden));
    bool checksums = (t || record_has_checksum(target)) && (g || record_has_checksum(golden));
    if (t && g)
        return BY_TENSOR;
    if (checksums && (mode == MODE_CHECKSUMS || !statistics))
        return BY_CHECKSUM;
    return statistics ? BY_STATISTICS : BY_NOTHING;
}

static const char *missing(const struct plumb_record *target, const struct plumb_record *golden)
{
    bool t =
        record_has_payload(target) || record_has_statistics(target) || record_has_checksum(target);
    bool g =
        record_has_payload(golden) || record_has_statistics(golden) || record_has_checksum(golden);
    if (!t && !g)
        return "neither side has data, statistics or a checksum of it";
    if (t && g)
        return "one side has only statistics, the other only a checksum";
    return t ? "the golden run has neither data, nor statistics, nor a checksum of it"
             : "the target run has neither data, nor statistics, nor a checksum of it";
}

static bool is_unwritten(const struct plumb_record *record)
{
    return record->recorded && record->recorded->uninitialised;
}

void compare_plan(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->matching.count; i++) {
        if (comparison->matching.pairs[i].how == PLUMB_UNMATCHED)
            continue;
        struct row *row = &comparison->rows[i];
        row->obstacle = PLUMB_TROUBLE_UNREADABLE; /* of all that goes wrong, the usual */
        const struct plumb_record *target = compare_record(comparison, i, 0);
        const struct plumb_record *golden = compare_record(comparison, i, 1);
        if (is_unwritten(target) || is_unwritten(golden)) {
            row->compared = row->uninitialised = true;
            verdict_unwritten(&row->verdict);
            continue;
        }
        if (refuse_by_record(row, target, golden))
            continue;
        if (!record_is_tensor(target)) {
            row->basis = BY_VALUE;
            continue;
        }
        row->basis = choose_basis(comparison->mode, target, golden);
        if (row->basis != BY_NOTHING)
            continue;
        if (!target->count && !golden->count && !target->error && !golden->error) {
            row->compared = true;
            verdict_empty(&row->verdict);
        } else {
            refuse(row, PLUMB_TROUBLE_INCOMPARABLE, "%s", missing(target, golden));
        }
    }
}
