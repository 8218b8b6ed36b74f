/* Which columns a comparison has: by its kind, and by the options. */
#include "task/compare/layout.h"

#include <stdlib.h>
#include <string.h>

static struct plumb_column *add(struct layout *layout, const char *title, enum source source,
                                unsigned detail)
{
    struct plumb_column *column = &layout->columns[layout->count];
    *column = (struct plumb_column){.title = title};
    layout->fields[layout->count++] = (struct field){source, detail};
    return column;
}

static void add_text(struct layout *layout, const char *title, enum source source, unsigned detail,
                     bool elastic)
{
    struct plumb_column *column = add(layout, title, source, detail);
    column->left = true;
    column->elastic = elastic;
}

static void add_metric(struct layout *layout, const char *title, const char *name,
                       enum plumb_style style)
{
    const struct plumb_metric_name *metric = plumb_metric_find(name);
    for (size_t i = 0; i < layout->metric_count; i++)
        if (layout->metrics[i] == metric)
            return; /* asked for twice */
    add(layout, title ? title : metric->title, FROM_METRIC, (unsigned)layout->metric_count)->style =
        metric->integer ? PLUMB_STYLE_TEXT : style;
    layout->metrics[layout->metric_count++] = metric;
    layout->groups |= metric->group;
}

static void xray_columns(struct layout *layout)
{
    add(layout, "Index", FROM_INDEX, 0);
    add(layout, "Status", FROM_STATUS, 0);
    add_text(layout, "Module (Bench/Target)", FROM_NAME, 0, true);
    add_metric(layout, NULL, "cosine", PLUMB_STYLE_NUMBER);
    add_metric(layout, NULL, "rmse", PLUMB_STYLE_NUMBER);
    add_metric(layout, NULL, "close_percent", PLUMB_STYLE_PERCENT);
    add_metric(layout, "Max Err (t)", "max_abs", PLUMB_STYLE_NUMBER);
    add_metric(layout, NULL, "greater", PLUMB_STYLE_NUMBER);
}

static void statistics_columns(struct layout *layout)
{
    static const char *const differences[] = {"Max diff", "Min diff", "Mean diff", "L2norm diff"};
    static const char *const relative[] = {"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
                                           "NormRelativeErr"};
    for (unsigned i = 0; i < PLUMB_STATISTICS; i++)
        add(layout, differences[i], FROM_DIFFERENCE, i)->style = PLUMB_STYLE_DIGITS;
    for (unsigned i = 0; i < PLUMB_STATISTICS; i++)
        add(layout, relative[i], FROM_RELATIVE, i);
}

static void estimate_columns(struct layout *layout)
{
    add(layout, "Distance (estimate)", FROM_ESTIMATE, ESTIMATE_DISTANCE);
    add(layout, "Standard Error", FROM_ESTIMATE, ESTIMATE_ERROR);
    add(layout, "Scale (estimate)", FROM_ESTIMATE, ESTIMATE_SCALE);
    add_text(layout, "Differs At", FROM_ESTIMATE, ESTIMATE_WHERE, true);
}

static void tensor_columns(struct layout *layout)
{
    add_metric(layout, NULL, "cosine", PLUMB_STYLE_NUMBER);
    add_metric(layout, NULL, "euclidean", PLUMB_STYLE_DIGITS);
    add_metric(layout, NULL, "max_abs", PLUMB_STYLE_DIGITS);
    add_metric(layout, NULL, "max_rel", PLUMB_STYLE_DIGITS);
    add_metric(layout, NULL, "rel_below_1e3", PLUMB_STYLE_NUMBER);
    add_metric(layout, NULL, "rel_below_5e3", PLUMB_STYLE_NUMBER);
}

static void torchair_columns(struct layout *layout, enum layout_kind kind)
{
    add_text(layout, "API Name", FROM_NAME, 0, true);
    add_text(layout, "Stack Info", FROM_STACK, 0, true);
    add_text(layout, "Data Name", FROM_NAMES, 0, true);
    switch (kind) {
    case LAYOUT_TENSORS:
        tensor_columns(layout);
        break;
    case LAYOUT_SKETCHES:
        statistics_columns(layout);
        estimate_columns(layout);
        break;
    case LAYOUT_STATISTICS:
        statistics_columns(layout);
        break;
    case LAYOUT_CHECKSUMS:
        add_text(layout, "NPU MD5", FROM_CHECKSUM, 0, false);
        add_text(layout, "BENCH MD5", FROM_CHECKSUM, 1, false);
        break;
    }
    if (kind == LAYOUT_TENSORS)
        add_text(layout, "Requires_grad Consistent", FROM_GRAD, 0, false);
}

void layout_add_places(struct layout *layout)
{
    static const struct plumb_column columns[] = {{.title = "Token"},
                                                  {.title = "In/Out", .left = true}};
    static const struct field fields[] = {{FROM_TOKEN, 0}, {FROM_PLACE, 0}};
    size_t at = 0;
    while (at < layout->count && layout->fields[at].source != FROM_NAMES)
        at++;
    at += at < layout->count;
    size_t behind = layout->count - at;
    memmove(&layout->columns[at + 2], &layout->columns[at], behind * sizeof *layout->columns);
    memmove(&layout->fields[at + 2], &layout->fields[at], behind * sizeof *layout->fields);
    memcpy(&layout->columns[at], columns, sizeof columns);
    memcpy(&layout->fields[at], fields, sizeof fields);
    layout->count += 2;
}

/* The two ratios say less than the largest error; what says most stays longest. */
static unsigned char spare_metric(const struct plumb_metric_name *metric)
{
    static const char *const worth[] = {"max_rel", "max_abs", "cosine"};
    enum { FIRST = 3 };
    for (size_t k = 0; k < sizeof worth / sizeof *worth; k++)
        if (strcmp(metric->name, worth[k]) == 0)
            return (unsigned char)(FIRST + k);
    return metric->group == PLUMB_G_RELATIVE ? PLUMB_SPARE : FIRST + 3;
}

static unsigned char spare_field(const struct layout *layout, const struct field *field,
                                 bool rules_decide)
{
    switch (field->source) {
    case FROM_STACK:
    case FROM_NAMES:
    case FROM_GRAD:
    case FROM_REACHED:
    case FROM_DIFFERENCE:
    case FROM_JUDGE:
        return PLUMB_SPARE;
    case FROM_WHY:
        return 1;
    case FROM_MODULE:
        return 2;
    case FROM_STATUS:
    case FROM_RESULT:
        return rules_decide ? 0 : 3;
    case FROM_REASON:
        return rules_decide ? 2 : 6;
    case FROM_METRIC:
        return spare_metric(layout->metrics[field->detail]);
    case FROM_RELATIVE:
        return field->detail == PLUMB_STATISTIC_NORM ? 3 : 4;
    case FROM_ESTIMATE:
        return field->detail == ESTIMATE_DISTANCE ? 5 : PLUMB_SPARE;
    case FROM_CHECKSUM:
    case FROM_INDEX:
        return 4;
    default:
        return 0;
    }
}

unsigned char *layout_spare(const struct layout *layout, enum plumb_deciding verdict)
{
    unsigned char *spare = calloc(layout->count + 1, sizeof *spare);
    for (size_t i = 0; spare && !layout->whole && i < layout->count; i++)
        spare[i] = spare_field(layout, &layout->fields[i], verdict != PLUMB_BY_EXPECTED);
    return spare;
}

static void verdict_columns(struct layout *layout, enum plumb_columns columns, bool reasons)
{
    if (columns == PLUMB_COLUMNS_TORCHAIR) {
        add_text(layout, "Result", FROM_RESULT, 0, false);
        add_text(layout, "Accuracy Reached or Not", FROM_REACHED, 0, false);
        add_text(layout, "Err_message", FROM_REASON, 0, true);
    } else if (reasons) {
        add_text(layout, "Reason", FROM_REASON, 0, true);
    }
}

static void opinion_columns(struct layout *layout, bool whole)
{
    add_text(layout, "Verdict", FROM_WORD, 0, false);
    add_text(layout, "Why", FROM_WHY, 0, true);
    if (whole)
        add_text(layout, "Judged by", FROM_JUDGE, 0, false);
}

static void all_metrics(struct layout *layout)
{
    if ((layout->groups & PLUMB_G_ALL) == PLUMB_G_ALL)
        return; /* asked for twice */
    for (const struct plumb_metric_name *metric = plumb_metric_names(); metric->name; metric++)
        add_metric(layout, NULL, metric->name, PLUMB_STYLE_DIGITS);
    add_text(layout, "Target CRC-32", FROM_CRC, 0, false);
    add_text(layout, "Golden CRC-32", FROM_CRC, 1, false);
    add_text(layout, "Absolute Histogram", FROM_HISTOGRAM, 0, true);
    add_text(layout, "Relative Histogram", FROM_HISTOGRAM, 1, true);
    add_text(layout, "ULP Histogram", FROM_HISTOGRAM, 2, true);
    layout->groups |= PLUMB_G_ALL;
}

static enum plumb_code listed_metrics(struct layout *layout, const char *list,
                                      struct plumb_error *err)
{
    while (*list) {
        size_t length = strcspn(list, ",");
        char name[64];
        if (length == 3 && strncmp(list, "all", 3) == 0) {
            all_metrics(layout);
        } else if (length) {
            size_t kept = length < sizeof name ? length : sizeof name - 1;
            memcpy(name, list, kept);
            name[kept] = '\0';
            if (!plumb_metric_find(name))
                return plumb_fail(err, PLUMB_E_ARG,
                                  "there is no metric '%s'; 'plumb help metrics' lists them all",
                                  name);
            add_metric(layout, NULL, name, PLUMB_STYLE_DIGITS);
        }
        list += length + (list[length] == ',');
    }
    return PLUMB_OK;
}

static void wide_columns(struct layout *layout)
{
    add_metric(layout, NULL, "min_abs", PLUMB_STYLE_DIGITS);
    add(layout, "Step", FROM_STEP, 0);
    add(layout, "Rank", FROM_RANK, 0);
    add_text(layout, "Dtype (Target/Golden)", FROM_DTYPES, 0, false);
    add_text(layout, "Shape (Target/Golden)", FROM_SHAPES, 0, false);
    add_text(layout, "Matched", FROM_MATCH, 0, false);
    add_text(layout, "Target Path", FROM_PATH, 0, true);
    add_text(layout, "Golden Path", FROM_PATH, 1, true);
}

enum plumb_code layout_init(struct layout *layout, enum plumb_columns columns,
                            enum layout_kind kind, bool ranks, bool modules,
                            const struct plumb_compare_options *options, struct plumb_error *err)
{
    *layout = (struct layout){.groups = PLUMB_G_ERROR, .whole = options->wide || options->metrics};
    if (columns == PLUMB_COLUMNS_XRAY)
        xray_columns(layout);
    else
        torchair_columns(layout, kind);
    enum plumb_code code =
        options->metrics ? listed_metrics(layout, options->metrics, err) : PLUMB_OK;
    if (code)
        return code;
    if (options->wide)
        wide_columns(layout);
    verdict_columns(layout, columns, options->reasons || options->wide);
    if (ranks && !options->wide)
        add(layout, "Rank", FROM_RANK, 0);
    if (modules)
        add_text(layout, "Module", FROM_MODULE, 0, true);
    if (options->verdict != PLUMB_BY_RULES)
        opinion_columns(layout, options->reasons || options->wide);
    return PLUMB_OK;
}
