/* The results of two devices joined by test, and the verdict on each pair. */
#define _GNU_SOURCE
#include "plumb/unittest.h"
#include "task/unittest/outcome.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum column {
    NAME,
    OP,
    DTYPE,
    SHAPE,
    MIN,
    MAX,
    PASS,
    FIRST_ERROR,
    SECOND_ERROR,
    COUNTS,
    COLUMNS = COUNTS + 2 * OUTCOME_POWERS,
    OPINIONS = COLUMNS, /* two columns for each file that has them */
    ALL_COLUMNS = COLUMNS + 4
};

/* The name of the file without folder and ending, when it is a word that a title can begin with. */
static bool simple_stem(const char *path, char out[32])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strcspn(name, ".");
    if (!length || length >= 32)
        return false;
    memcpy(out, name, length);
    out[length] = '\0';
    return strspn(out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
           length;
}

static void name_sides(char names[2][32], const char *first, const char *second)
{
    if (simple_stem(first, names[0]) && simple_stem(second, names[1]) &&
        strcasecmp(names[0], names[1]) != 0)
        return;
    memcpy(names[0], "xpu", sizeof "xpu");
    memcpy(names[1], "gpu", sizeof "gpu");
}

static struct plumb_table *make_table(char names[2][32], const bool judged[2])
{
    struct plumb_column columns[ALL_COLUMNS] = {
        [NAME] = {.title = "name", .left = true},
        [OP] = {.title = "op_name", .left = true, .elastic = true},
        [DTYPE] = {.title = "dtype", .left = true},
        [SHAPE] = {.title = "shape", .left = true},
        [MIN] = {.title = "min-val", .style = PLUMB_STYLE_NUMBER},
        [MAX] = {.title = "max-val", .style = PLUMB_STYLE_NUMBER},
        [PASS] = {.title = "is_pass", .left = true},
    };
    char titles[COLUMNS][64], opinions[4][64];
    size_t n = COLUMNS;
    for (size_t k = 0; k < 2 * (1 + OUTCOME_POWERS); k++) {
        const char *what = k < 2 ? "max" : outcome_titles[OUTCOME_POWER + k / 2 - 1];
        snprintf(titles[k], sizeof titles[k], "%s_%s", names[k % 2], what);
        columns[FIRST_ERROR + k] =
            (struct plumb_column){.title = titles[k], .style = PLUMB_STYLE_DIGITS};
    }
    for (size_t k = 0; k < 4; k++) {
        if (!judged[k / 2])
            continue;
        snprintf(opinions[k], sizeof opinions[k], "%s_%s", names[k / 2], k % 2 ? "Why" : "Verdict");
        columns[n++] =
            (struct plumb_column){.title = opinions[k], .left = true, .elastic = k % 2 == 1};
    }
    return plumb_table_new(columns, n);
}

static bool put(struct plumb_table *table, size_t column, const char *text)
{
    double value;
    bool number = (column == MIN || column == MAX) && outcome_number(text, &value);
    if (number)
        plumb_table_real(table, column, value);
    return number || plumb_table_text(table, column, text);
}

/* A row with what one file says about the test; the numbers of a side go to its columns. */
static bool begin_row(struct plumb_table *table, const struct outcome_row *row, const char *verdict,
                      enum plumb_severity severity)
{
    bool fine = plumb_table_add_row(table, severity);
    for (size_t column = NAME; column <= MAX; column++)
        fine = fine && put(table, column, row->text[column]);
    return fine && plumb_table_text(table, PASS, verdict);
}

/* What one file says: numbers, and its opinion where it has one. */
static bool put_side(struct plumb_unittest_diff *out, const struct outcome_row *row, size_t side)
{
    if (!row->skipped) {
        plumb_table_real(out->table, FIRST_ERROR + side, row->error);
        for (size_t k = 0; k < OUTCOME_POWERS; k++)
            plumb_table_int(out->table, COUNTS + 2 * k + side, (int64_t)row->counts[k]);
    }
    const char *verdict = row->extra[OUTCOME_VERDICT], *why = row->extra[OUTCOME_WHY];
    if (!out->judged[side] || !verdict)
        return true;
    const size_t column = OPINIONS + (side && out->judged[0] ? 2 : 0);
    out->faults += !side && strcmp(verdict, "fault") == 0;
    out->unjudged += !side && strcmp(verdict, "not judged") == 0;
    return plumb_table_text(out->table, column, verdict) &&
           plumb_table_text(out->table, column + 1, why ? why : "");
}

/* The error that a type has by itself, relative to the size of the numbers: rounding, and what sums
 * make of it. Whole numbers have none. */
static double type_error(const char *dtype)
{
    static const struct {
        const char *name;
        double error;
    } types[] = {{"float32", 1e-6},   {"float16", 1e-3},       {"bfloat16", 1e-2},
                 {"float64", 1e-12},  {"complex64", 1e-6},     {"complex128", 1e-12},
                 {"complex32", 1e-3}, {"float8_e4m3fn", 1e-1}, {"float8_e5m2", 2e-1}};
    const char *dot = strrchr(dtype, '.');
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(dot ? dot + 1 : dtype, types[i].name) == 0)
            return types[i].error;
    return 0;
}

/* The largest size that the row says the output has; 1 when it does not say. */
static double range_of(const struct outcome_row *row)
{
    double range = 0, value;
    bool known = false;
    for (size_t column = OUTCOME_MIN; column <= OUTCOME_MAX; column++)
        if (outcome_number(row->text[column], &value) && isfinite(value)) {
            range = fmax(range, fabs(value));
            known = true;
        }
    return known ? range : 1;
}

/* Neither device may be seen as right, whatever the counts say. */
static bool is_broken(const struct outcome_row *row)
{
    return strcmp(row->text[OUTCOME_PASS], "pass") != 0 || !isfinite(row->error);
}

static bool passes(const struct outcome_row *first, const struct outcome_row *second,
                   double allowance)
{
    const double times = 20;
    static const double powers[OUTCOME_POWERS] = {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7};
    for (size_t column = OUTCOME_OP; column <= OUTCOME_SHAPE; column++)
        if (strcmp(first->text[column], second->text[column]) != 0)
            return false;
    if (is_broken(first) || is_broken(second))
        return false;
    double own = type_error(first->text[OUTCOME_DTYPE]) * range_of(first);
    double more = allowance * outcome_elements(first->text[OUTCOME_SHAPE]);
    for (size_t k = 0; k < OUTCOME_POWERS; k++)
        if (powers[k] >= own && first->counts[k] > second->counts[k] + more)
            return false;
    /* The allowance is for elements that are a little off, not for wild ones. */
    return first->error <= fmax(times * fmax(own, second->error), times * 1e-6);
}

/* Did the two run on other inputs? Then their errors have nothing to say about each other. Kept
 * tensors are the same for every seed: it counts where the checksum is missing. */
static bool differ_in_inputs(const struct outcome_row *first, const struct outcome_row *second)
{
    bool checksums = first->extra[OUTCOME_INPUTS] && second->extra[OUTCOME_INPUTS];
    enum outcome_extra by = checksums ? OUTCOME_INPUTS : OUTCOME_SEED;
    const char *a = first->extra[by], *b = second->extra[by];
    return a && b && strcmp(a, b) != 0;
}

static bool add_pair(struct plumb_unittest_diff *out, const struct outcome_row *first,
                     const struct outcome_row *second, double allowance)
{
    bool skipped = first->skipped || second->skipped;
    bool others = !skipped && differ_in_inputs(first, second);
    bool pass = !skipped && !others && passes(first, second, allowance);
    bool fail = !skipped && !others && !pass;
    out->skipped += skipped;
    out->other_inputs += others;
    out->passed += pass;
    out->failed += fail;
    out->broken[0] += fail && is_broken(first);
    out->broken[1] += fail && is_broken(second);
    if (!begin_row(out->table, first,
                   skipped  ? "skip"
                   : others ? "other inputs"
                   : pass   ? "pass"
                            : "fail",
                   pass   ? PLUMB_NORMAL
                   : fail ? PLUMB_FAILED
                          : PLUMB_SUSPICIOUS))
        return false;
    return put_side(out, first, 0) && put_side(out, second, 1);
}

static bool add_lonely(struct plumb_unittest_diff *out, const struct outcome_file *file,
                       size_t side)
{
    char verdict[64];
    snprintf(verdict, sizeof verdict, "only in %s", out->names[side]);
    for (size_t i = 0; i < file->count; i++) {
        if (file->rows[i].met)
            continue;
        if (!begin_row(out->table, &file->rows[i], verdict, PLUMB_SUSPICIOUS))
            return false;
        if (!put_side(out, &file->rows[i], side))
            return false;
        ++*(side ? &out->second_only : &out->first_only);
    }
    return true;
}

static bool join(struct plumb_unittest_diff *out, struct outcome_file *first,
                 struct outcome_file *second, double allowance)
{
    for (size_t i = 0; i < first->count; i++) {
        struct outcome_row *row = &first->rows[i];
        const char *name = row->text[OUTCOME_NAME];
        const uint64_t *place = map_get(&second->names, name, strlen(name));
        if (!place)
            continue;
        row->met = second->rows[*place].met = true;
        if (!add_pair(out, row, &second->rows[*place], allowance))
            return false;
    }
    return add_lonely(out, first, 0) && add_lonely(out, second, 1);
}

enum plumb_code plumb_unittest_compare(struct plumb_unittest_diff *out, const char *first,
                                       const char *second, double allowance,
                                       struct plumb_error *err)
{
    *out = (struct plumb_unittest_diff){0};
    struct outcome_file a = {0}, b = {0};
    enum plumb_code code = outcome_read(&a, first, err);
    if (!code)
        code = outcome_read(&b, second, err);
    if (!code && !a.count && !b.count)
        code = plumb_fail(err, PLUMB_E_ARG, "neither %s nor %s has a row", first, second);
    if (!code) {
        name_sides(out->names, first, second);
        out->without_inputs[0] = !a.has_inputs;
        out->without_inputs[1] = !b.has_inputs;
        out->judged[0] = a.judged;
        out->judged[1] = b.judged;
        out->table = make_table(out->names, out->judged);
        if (!out->table || !join(out, &a, &b, allowance))
            code = plumb_no_memory(err);
    }
    outcome_close(&a);
    outcome_close(&b);
    return code;
}

void plumb_unittest_diff_free(struct plumb_unittest_diff *diff)
{
    plumb_table_free(diff->table);
    *diff = (struct plumb_unittest_diff){0};
}
