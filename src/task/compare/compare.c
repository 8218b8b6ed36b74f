/* Comparing two runs: their pairs, by values where both have them, and the rest. */
#define _GNU_SOURCE
#include "task/compare/compare.h"

#include "base/buf.h"
#include "metric/pack.h"
#include "task/compare/pages.h"
#include "task/compare/walk.h"
#include "verdict/decide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct plumb_record *compare_record(const struct comparison *comparison, size_t pair,
                                          int side)
{
    const struct plumb_pair *p = &comparison->matching.pairs[pair];
    size_t index = side == 0 ? p->target : p->golden;
    return index == PLUMB_NO_RECORD ? NULL : plumb_run_record(comparison->run[side], index);
}

const char *compare_name(const struct comparison *comparison, size_t pair)
{
    const struct plumb_record *target = compare_record(comparison, pair, 0);
    const struct plumb_record *golden = compare_record(comparison, pair, 1);
    /* Numbers of calls may differ between dumps, and those of the target are being looked for. */
    return golden && !(target && target->recorded) ? golden->name : target->name;
}

static enum plumb_code accept(void *context, size_t item, const struct plumb_payload *payloads,
                              struct plumb_error *err)
{
    const struct comparison *comparison = context;
    const struct plumb_tensor *target = &payloads[0].tensor, *golden = &payloads[1].tensor;
    char a[128], b[128];
    if (!plumb_shape_equivalent(target, golden)) {
        comparison->rows[item].obstacle = PLUMB_TROUBLE_SHAPE;
        return plumb_fail(err, PLUMB_E_ARG, "the shapes differ: target %s, golden %s",
                          plumb_shape_text(target, a, sizeof a),
                          plumb_shape_text(golden, b, sizeof b));
    }
    if (!compare_same_kind(target->dtype, golden->dtype)) {
        comparison->rows[item].obstacle = PLUMB_TROUBLE_TYPE;
        return plumb_fail(
            err, PLUMB_E_ARG, "the types are of different kinds: target %s, golden %s",
            plumb_dtype_info(target->dtype)->name, plumb_dtype_info(golden->dtype)->name);
    }
    return PLUMB_OK;
}

static void *part(const void *shared, const struct plumb_payload *payloads, uint64_t first,
                  uint64_t count)
{
    const struct plumb_tensor *target = &payloads[0].tensor, *golden = &payloads[1].tensor;
    struct plumb_metric_state *state =
        plumb_metric_new(shared, target->dtype, golden->dtype, target->count);
    if (state)
        plumb_metric_update(state, target, golden, first, count);
    return state;
}

static void merge(void *state, const void *other)
{
    plumb_metric_merge(state, other);
}

static void release(void *state)
{
    plumb_metric_free(state);
}

static void pack_shared(struct pack *pack, void *shared)
{
    metric_pack_spec(pack, shared);
}

static void *empty(const void *shared, const struct plumb_tensor tensors[2])
{
    return plumb_metric_new(shared, tensors[0].dtype, tensors[1].dtype, tensors[0].count);
}

static void pack_state(struct pack *pack, void *state)
{
    metric_pack_state(pack, state);
}

static bool fits(const struct plumb_tensor tensors[2])
{
    return plumb_shape_equivalent(&tensors[0], &tensors[1]) &&
           compare_same_kind(tensors[0].dtype, tensors[1].dtype);
}

const struct walk_kind walk_pairs = {.name = "pairs",
                                     .shared_size = sizeof(struct plumb_metric_spec),
                                     .part = part,
                                     .merge = merge,
                                     .release = release,
                                     .pack_shared = pack_shared,
                                     .empty = empty,
                                     .pack_state = pack_state,
                                     .fits = fits};

char *compare_histogram(const struct plumb_histogram *histogram)
{
    struct buf text = {0};
    buf_text(&text, "");
    for (int bin = 0; bin < PLUMB_HISTOGRAM_BINS; bin++) {
        unsigned long long n = histogram->bin[bin];
        const char *gap = text.size ? " " : "";
        if (!n)
            continue;
        if (bin == 0)
            buf_printf(&text, "0:%llu", n);
        else if (bin == PLUMB_HISTOGRAM_BINS - 1)
            buf_printf(&text, "%snot finite:%llu", gap, n);
        else
            buf_printf(&text, "%s2^%d:%llu", gap, bin - 97, n);
    }
    if (text.failed)
        buf_free(&text);
    return text.data;
}

static void finish(void *context, size_t item, const struct plumb_payload *payloads, void *state,
                   const struct plumb_error *err)
{
    (void)payloads;
    const struct comparison *comparison = context;
    const struct layout *layout = &comparison->layout;
    struct row *row = &comparison->rows[item];
    if (err) {
        char text[800];
        row->problem = strdup(plumb_error_text(err, text, sizeof text));
        return;
    }
    struct plumb_metrics metrics;
    plumb_metric_finish(state, &metrics);
    row->compared = true;
    row->integers = metrics.integers;
    row->distance = metrics.relative_euclidean;
    row->max_rel = metrics.max_rel;
    double *values = comparison->values + item * layout->metric_count;
    for (size_t i = 0; i < layout->metric_count; i++)
        values[i] = layout->metrics[i]->value(&metrics);
    if (metrics.count)
        plumb_standard_judge(comparison->standards.values, &metrics, &row->verdict);
    else
        verdict_empty(&row->verdict);
    row->crc[0] = metrics.target_crc;
    row->crc[1] = metrics.golden_crc;
    if (comparison->spec.groups & PLUMB_G_HISTOGRAM) {
        row->histogram[0] = compare_histogram(&metrics.abs_histogram);
        row->histogram[1] = compare_histogram(&metrics.rel_histogram);
        row->histogram[2] = compare_histogram(&metrics.ulp_histogram);
        for (int k = 0; k < 3; k++)
            if (!row->histogram[k])
                row->compared = false; /* without a problem: out of memory */
    }
}

static enum plumb_columns choose_columns(const struct comparison *comparison)
{
    if (comparison->options->columns != PLUMB_COLUMNS_AUTO)
        return comparison->options->columns;
    for (int side = 0; side < 2; side++) {
        const struct plumb_run *run = comparison->run[side];
        for (size_t i = 0; i < plumb_run_count(run); i++)
            if (plumb_run_record(run, i)->step < 0 || plumb_run_record(run, i)->recorded)
                return PLUMB_COLUMNS_TORCHAIR;
    }
    return PLUMB_COLUMNS_XRAY;
}

static bool has_ranks(const struct comparison *comparison)
{
    for (int side = 0; side < 2; side++) {
        const struct plumb_run *run = comparison->run[side];
        for (size_t i = 1; i < plumb_run_count(run) && !comparison->options->match.rank; i++)
            if (plumb_run_record(run, i)->recorded &&
                plumb_run_record(run, i)->rank != plumb_run_record(run, 0)->rank)
                return true;
    }
    return comparison->part;
}

/* Whether the rows have a column for the modules that calls were made in. */
static bool has_modules(const struct comparison *comparison)
{
    const struct plumb_compare_options *options = comparison->options;
    for (int side = 0; side < 2 && (options->wide || options->modules); side++)
        for (size_t i = 0; i < plumb_run_count(comparison->run[side]); i++)
            if (plumb_recorded_parent(plumb_run_record(comparison->run[side], i)->recorded))
                return true;
    return false;
}

/* Does one of the runs know tensors by their sketches? The other's are made of values, if it has
 * them. */
static bool has_sketches(const struct comparison *comparison)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < plumb_run_count(comparison->run[side]); i++) {
            const struct plumb_kept *kept =
                plumb_recorded_kept(plumb_run_record(comparison->run[side], i)->recorded);
            if (kept && kept->sketch)
                return true;
        }
    return false;
}

static enum layout_kind kind_of(const struct comparison *comparison)
{
    switch (comparison->mode) {
    case MODE_TENSORS:
        return LAYOUT_TENSORS;
    case MODE_CHECKSUMS:
        return LAYOUT_CHECKSUMS;
    default:
        return has_sketches(comparison) ? LAYOUT_SKETCHES : LAYOUT_STATISTICS;
    }
}

/* Whether anything was put together from parts. */
static bool has_layouts(const struct comparison *comparison)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < plumb_run_count(comparison->run[side]); i++)
            if (plumb_run_record(comparison->run[side], i)->layout)
                return true;
    return false;
}

static enum plumb_code make_layout(struct comparison *comparison, struct plumb_error *err)
{
    const enum plumb_code code =
        layout_init(&comparison->layout, choose_columns(comparison), kind_of(comparison),
                    has_ranks(comparison), has_modules(comparison), comparison->options, err);
    if (!code && has_layouts(comparison))
        layout_add_shards(&comparison->layout);
    return code;
}

/* A page has room for modules and reasons, whatever is printed. Columns of metrics stay where they
 * are: what was measured is found again. */
static enum plumb_code table_of_page(struct plumb_comparison *out,
                                     const struct comparison *comparison, struct plumb_error *err)
{
    struct plumb_compare_options options = *comparison->options;
    struct comparison full = *comparison;
    if (!options.report)
        return PLUMB_OK;
    options.modules = options.reasons = true;
    full.options = &options;
    const enum plumb_code code = make_layout(&full, err);
    return code ? code : compare_table(&out->full, &full, err);
}

/* Standard, columns and what both need computed. */
static enum plumb_code prepare(struct comparison *comparison, struct plumb_error *err)
{
    const struct plumb_compare_options *options = comparison->options;
    enum plumb_columns columns = choose_columns(comparison);
    enum plumb_code code = compare_opinions_ready(comparison, err);
    if (code)
        return code;
    if (options->verdict != PLUMB_BY_RULES && columns == PLUMB_COLUMNS_XRAY)
        return plumb_fail(err, PLUMB_E_ARG,
                          "the xray columns have no place for second opinions; take the torchair "
                          "columns for them");
    const char *standard = options->standard;
    if (!standard)
        standard = columns == PLUMB_COLUMNS_XRAY ? "xray" : "torchair";
    code = compare_load_standards(&comparison->standards, standard, options->settings,
                                  options->settings_count, err);
    comparison->mode =
        compare_choose_mode(run_stock(comparison->run[0]), run_stock(comparison->run[1]));
    if (!code)
        code = make_layout(comparison, err);
    if (code)
        return code;
    plumb_metric_spec_init(&comparison->spec);
    comparison->spec.groups |= comparison->layout.groups;
    plumb_standard_spec(comparison->standards.values, &comparison->spec);
    if (plumb_standard_jump(comparison->standards.values) > 0)
        comparison->spec.groups |= PLUMB_G_RELATIVE;

    size_t pairs = comparison->matching.count;
    comparison->rows = arena_array(&comparison->arena, pairs + 1, sizeof *comparison->rows);
    comparison->values =
        arena_array(&comparison->arena, pairs * comparison->layout.metric_count + 1,
                    sizeof *comparison->values);
    if (!comparison->rows || !comparison->values)
        return plumb_no_memory(err);
    return PLUMB_OK;
}

static enum plumb_code compare_pairs(struct comparison *comparison, struct plumb_error *err)
{
    const struct plumb_compare_options *options = comparison->options;
    const struct plumb_matching *matching = &comparison->matching;
    struct walk_item *items = calloc(matching->count + 1, sizeof *items);
    if (!items)
        return plumb_no_memory(err);
    for (size_t i = 0; i < matching->count; i++) {
        const struct plumb_pair *pair = &matching->pairs[i];
        if (comparison->rows[i].basis == BY_TENSOR)
            items[i] = (struct walk_item){
                .side = {{comparison->run[0], pair->target}, {comparison->run[1], pair->golden}},
                .sides = 2};
    }
    struct walk walk = {.kind = &walk_pairs,
                        .shared = &comparison->spec,
                        .items = items,
                        .count = matching->count,
                        .threads = options->threads,
                        .crew = options->crew,
                        .progress = options->progress,
                        .progress_context = options->progress_context,
                        .context = comparison,
                        .accept = accept,
                        .finish = finish};
    enum plumb_code code = walk_run(&walk, err);
    free(items);
    return code;
}

enum plumb_code plumb_compare(struct plumb_comparison *out, const struct plumb_run *target,
                              const struct plumb_run *golden,
                              const struct plumb_compare_options *options, struct plumb_error *err)
{
    struct closing_facts facts = {0};
    const enum plumb_code code = compare_part(out, &facts, target, golden, options, NULL, err);
    closing_facts_free(&facts);
    return code;
}

static bool name_nearest(struct comparison *comparison)
{
    const struct part *part = comparison->part;
    const size_t count = comparison->matching.count;
    comparison->nearest = arena_array(&comparison->arena, count + 1, sizeof *comparison->nearest);
    for (size_t i = 0; comparison->nearest && i < count; i++)
        comparison->nearest[i] = part->nearest(
            part->context, compare_record(comparison, i, part->rows == PART_GOLDEN_ONLY)->name);
    return comparison->nearest;
}

/* Keeps the rows of a part. False when out of memory. */
static bool choose_rows(struct comparison *comparison)
{
    struct part *part = comparison->part;
    struct plumb_matching *matching = &comparison->matching;
    part->decided = matching->decided;
    if (part->rows == PART_PAIRS) {
        bool fine = true;
        for (size_t i = matching->matched; i < matching->count && fine; i++) {
            const int side = matching->pairs[i].target == PLUMB_NO_RECORD;
            fine = part->alone(part->context, side, compare_record(comparison, i, side));
        }
        matching->count = matching->matched;
        return fine;
    }
    size_t kept = 0;
    for (size_t i = matching->matched; i < matching->count; i++)
        if ((matching->pairs[i].target == PLUMB_NO_RECORD) == (part->rows == PART_GOLDEN_ONLY))
            matching->pairs[kept++] = matching->pairs[i];
    matching->count = kept;
    matching->matched = 0;
    return name_nearest(comparison);
}

enum plumb_code compare_part(struct plumb_comparison *out, struct closing_facts *facts,
                             const struct plumb_run *target, const struct plumb_run *golden,
                             const struct plumb_compare_options *options, struct part *part,
                             struct plumb_error *err)
{
    struct comparison comparison = {.run = {target, golden}, .options = options, .part = part};
    *facts = (struct closing_facts){0};
    *out = (struct plumb_comparison){0};
    enum plumb_code code = plumb_match(&comparison.matching, target, golden, &options->match, err);
    if (!code && part && !choose_rows(&comparison))
        code = plumb_no_memory(err);
    if (!code)
        code = prepare(&comparison, err);
    if (!code) {
        compare_plan(&comparison);
        code = compare_pairs(&comparison, err);
    }
    if (!code)
        code = compare_recorded(&comparison, err);
    if (!code)
        compare_shards(&comparison);
    if (!code)
        code = compare_jumps(&comparison, err);
    if (!code)
        code = compare_opinions(&comparison, err);
    if (!code)
        code = compare_table(&out->table, &comparison, err);
    if (!code)
        code = table_of_page(out, &comparison, err);
    if (!code)
        code = compare_closing(out, facts, &comparison, err);
    if (!code)
        code = compare_pages(out, &comparison, err);
    out->mapping = comparison.matching.mapping;
    comparison.matching.mapping = NULL;
    if (code)
        plumb_comparison_free(out);

    for (size_t i = 0; comparison.rows && i < comparison.matching.count; i++) {
        free(comparison.rows[i].problem);
        free(comparison.rows[i].parts);
        free(comparison.rows[i].checksum[0]);
        free(comparison.rows[i].checksum[1]);
        free(comparison.rows[i].estimate);
        for (int k = 0; k < 3; k++)
            free(comparison.rows[i].histogram[k]);
    }
    free(comparison.opinions);
    calls_free(&comparison.calls);
    arena_free(&comparison.arena);
    compare_free_standards(&comparison.standards);
    plumb_matching_free(&comparison.matching);
    return code;
}

void plumb_comparison_free(struct plumb_comparison *comparison)
{
    plumb_table_free(comparison->table);
    plumb_table_free(comparison->full);
    free(comparison->closing);
    free(comparison->mapping);
    free(comparison->advice);
    free(comparison->counts);
    free(comparison->outcomes);
    free(comparison->spare);
    free(comparison->pages);
    for (int kind = 0; kind < PLUMB_TROUBLES; kind++)
        free(comparison->troubles[kind].text);
    *comparison = (struct plumb_comparison){0};
}
