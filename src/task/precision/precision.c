/* api_precision_compare: two details files, row by row. */
#include "plumb/precision.h"

#include "base/mapped.h"
#include "task/precision/api.h"
#include "task/precision/name.h"
#include "task/precision/read.h"
#include "task/precision/write.h"
#include "verdict/ladder_rules.h"
#include "verdict/profiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct comparison {
    const struct standard_set *set;
    const struct precision_profile *profile; /* its base */
    struct details_file npu, gpu;
    struct plumb_file_guard npu_guard, gpu_guard;
    struct precision_writer writer;
    struct api_list apis;
    struct route *routes;
    size_t n_routes, routes_capacity;
    struct map route_of; /* "api>dtype", "api<dtype" of a gradient */
    struct arena arena;
    struct buf key, message;
    struct plumb_precision_result *result;
};

static void keep_name(char out[128], struct csv_cell name)
{
    size_t length = name.length < 127 ? name.length : 127;
    memcpy(out, name.text, length);
    out[length] = '\0';
}

/* The way an API of this type is judged, looked up once. */
static enum plumb_code find_route(struct comparison *all, const struct output_name *name,
                                  struct csv_cell dtype, const struct route **route,
                                  struct plumb_error *err)
{
    const struct csv_cell api = name->api;
    const bool gradient = name->direction == DIRECTION_BACKWARD;
    all->key.size = 0;
    buf_append(&all->key, api.text, api.length);
    buf_append(&all->key, gradient ? "<" : ">", 1);
    buf_append(&all->key, dtype.text, dtype.length);
    if (all->key.failed)
        return plumb_no_memory(err);
    uint64_t *place = map_get(&all->route_of, all->key.data, all->key.size);
    if (place) {
        *route = &all->routes[*place];
        return PLUMB_OK;
    }
    if (all->n_routes == all->routes_capacity) {
        size_t capacity = all->routes_capacity ? all->routes_capacity * 2 : 64;
        struct route *routes = realloc(all->routes, capacity * sizeof *routes);
        if (!routes)
            return plumb_no_memory(err);
        all->routes = routes;
        all->routes_capacity = capacity;
    }
    char *key = arena_copy(&all->arena, all->key.data, all->key.size);
    if (!key || !(place = map_put(&all->route_of, key, all->key.size, NULL)))
        return plumb_no_memory(err);
    *place = all->n_routes;
    all->key.data[api.length] = '\0'; /* two texts now */
    all->routes[all->n_routes] =
        precision_route(all->set, all->key.data, all->key.data + api.length + 1, gradient);
    *route = &all->routes[all->n_routes++];
    return PLUMB_OK;
}

/* A row that is in no API: it gets a result row of its own. */
static enum plumb_code skip_row(struct comparison *all, struct csv_cell name, struct judged *judged,
                                const struct opinions *opinions, struct plumb_error *err)
{
    judged->verdict = VERDICT_SKIP;
    judged->standard = -1;
    if (all->message.failed)
        return plumb_no_memory(err);
    precision_write_details(&all->writer, name, judged, opinions);
    return api_list_skip(&all->apis, name, &all->message, err);
}

/* A name that ends the comparison; line is of the NPU file. */
static enum plumb_code stop(const struct details_file *file, struct csv_cell name, uint64_t line,
                            const char *what, struct plumb_error *err)
{
    plumb_fail(err, PLUMB_E_FORMAT, "\"%.*s\" %s (line %llu of the NPU file)",
               (int)(name.length < 120 ? name.length : 120), name.length ? name.text : "", what,
               (unsigned long long)line);
    plumb_error_in_file(err, file->path);
    return PLUMB_E_FORMAT;
}

/* A cell that is no number is an error of the file, unless its column has a type. */
static enum plumb_code check_numbers(const struct details_file *file,
                                     const struct details_cells *row, const struct value *values,
                                     struct csv_cell name, struct plumb_error *err)
{
    for (enum precision_column column = FIRST_METRIC; column <= LAST_METRIC; column++) {
        struct csv_cell cell = row->cell[column];
        if (values[column].kind != VALUE_TEXT)
            continue;
        char where[32] = "";
        if (row->line)
            snprintf(where, sizeof where, "line %llu: ", (unsigned long long)row->line);
        plumb_fail(err, PLUMB_E_FORMAT, "%s%.*s: %s is \"%.*s\", which is no number", where,
                   (int)(name.length < 120 ? name.length : 120), name.text,
                   precision_column_title(column), (int)(cell.length < 60 ? cell.length : 60),
                   cell.text);
        plumb_error_in_file(err, file->path);
        return PLUMB_E_FORMAT;
    }
    return PLUMB_OK;
}

static enum plumb_code judge_row(struct comparison *all, const struct details_cells *a,
                                 const struct details_cells *b, const struct route *route,
                                 struct judged *judged, struct plumb_error *err)
{
    struct metrics metrics = {
        .cells = a->cell,
        .other_cells = b->cell,
        .own_dialect = all->npu.author == all->npu.profile,
        .no_dtype = details_is_missing(&all->npu, a->cell[COLUMN_DTYPE]),
    };
    for (enum precision_column column = FIRST_METRIC; column <= LAST_METRIC; column++) {
        metrics.a[column] = details_value(&all->npu, a, column);
        metrics.b[column] = details_value(&all->gpu, b, column);
    }
    enum plumb_code code = PLUMB_OK;
    struct csv_cell name = a->cell[COLUMN_NAME];
    if (!all->profile->typed_columns)
        code = check_numbers(&all->npu, a, metrics.a, name, err);
    if (!code && !all->profile->typed_columns)
        code = check_numbers(&all->gpu, b, metrics.b, name, err);
    if (!code)
        precision_judge(&metrics, route, judged);
    return code;
}

/* What acc_check's second opinion said of both, where that is asked for. */
static enum plumb_code join_opinions(struct comparison *all, const struct details_cells *a,
                                     const struct details_cells *b, struct opinions *opinions,
                                     struct plumb_error *err)
{
    struct csv_cell bad;
    if (!all->writer.opinions)
        return PLUMB_OK;
    if (!opinions_read(a->opinion, b->opinion, opinions, &bad)) {
        struct csv_cell name = a->cell[COLUMN_NAME];
        plumb_fail(err, PLUMB_E_FORMAT, "%.*s: \"%.*s\" is no verdict",
                   (int)(name.length < 120 ? name.length : 120), name.text,
                   (int)(bad.length < 60 ? bad.length : 60), bad.text);
        plumb_error_in_file(err, bad.text == a->opinion[OPINION_VERDICT].text ? all->npu.path
                                                                              : all->gpu.path);
        return PLUMB_E_FORMAT;
    }
    if (!opinions->given)
        return PLUMB_OK;
    all->result->words[opinions->word]++;
    all->result->shared += opinions->shared;
    keep_name(all->result->judges[0], opinions->cells[OPINION_JUDGE]);
    keep_name(all->result->judges[1], opinions->other_cells[OPINION_JUDGE]);
    return PLUMB_OK;
}

static enum plumb_code compare_row(struct comparison *all, const struct details_cells *a,
                                   struct plumb_error *err)
{
    struct csv_cell text = a->cell[COLUMN_NAME];
    struct judged judged = {.standard = -1, .message = &all->message};
    struct opinions opinions = {0};
    struct output_name name;
    all->message.size = 0;
    if (details_is_missing(&all->npu, text) || details_is_formula(text))
        return stop(&all->npu, text, a->line, "cannot be the name of an output", err);
    struct details_cells b;
    struct row_mark *mark;
    enum plumb_code code = details_find(&all->gpu, text, &b, &mark, err);
    if (code)
        return code;
    bool twice = mark && mark->found;
    if (mark)
        mark->found = true;
    /* Where another direction may pass, it shows an API without any status. */
    if (!precision_name(text, &name) ||
        (name.direction == DIRECTION_OTHER && !all->profile->any_direction)) {
        buf_text(&all->message, "not the name of an API's output (TYPE.API.N.DIRECTION.output.I)");
        return skip_row(all, text, &judged, &opinions, err);
    }
    if (!mark) {
        if (!all->result->only_npu++)
            keep_name(all->result->first_only_npu, text);
        return PLUMB_OK;
    }
    if (mark->again)
        return stop(&all->gpu, text, a->line, "is there more than once", err);
    if (twice && !all->profile->typed_columns)
        return stop(&all->npu, text, a->line, "is there twice", err);
    const struct route *route = NULL;
    code = find_route(all, &name, a->cell[COLUMN_DTYPE], &route, err);
    if (!code)
        code = judge_row(all, a, &b, route, &judged, err);
    if (!code)
        code = join_opinions(all, a, &b, &opinions, err);
    if (code)
        return code;
    all->result->outputs++;
    if (judged.failed)
        return skip_row(all, text, &judged, &opinions, err);
    if (all->message.failed)
        return plumb_no_memory(err);
    precision_write_details(&all->writer, text, &judged, &opinions);
    const bool unsupported =
        all->profile->unsupported && all->profile->unsupported(a->cell[COLUMN_DTYPE]);
    return api_list_add(&all->apis, &name, judged.verdict, unsupported, &all->message, &opinions,
                        err);
}

static enum plumb_code compare_rows(struct comparison *all, struct plumb_error *err)
{
    for (;;) {
        bool more;
        struct details_cells row;
        enum plumb_code code = details_next(&all->npu, &row, &more, err);
        if (!code && more)
            code = compare_row(all, &row, err);
        if (code || !more)
            return code;
    }
}

/* What the GPU file has and the NPU file has not. */
static enum plumb_code count_only_gpu(struct comparison *all, struct plumb_error *err)
{
    struct details_file *gpu = &all->gpu;
    for (size_t i = 0; i < gpu->rows; i++) {
        if (gpu->marks[i].found)
            continue;
        if (all->result->only_gpu++)
            continue;
        bool more;
        struct details_cells row;
        gpu->csv.at = gpu->csv.start + gpu->marks[i].start;
        enum plumb_code code = details_next(gpu, &row, &more, err);
        if (code)
            return code;
        keep_name(all->result->first_only_gpu, row.cell[COLUMN_NAME]);
    }
    return PLUMB_OK;
}

static enum plumb_code left_guards(struct comparison *all, enum plumb_code code,
                                   struct plumb_error *err)
{
    const struct details_file *cut = NULL;
    if (plumb_file_guard_leave(&all->gpu_guard))
        cut = &all->gpu;
    if (plumb_file_guard_leave(&all->npu_guard))
        cut = &all->npu;
    if (!cut)
        return code;
    mapped_fail_shrank(err);
    plumb_error_in_file(err, cut->path);
    return PLUMB_E_IO;
}

/* Everything but opening the two files, which are open and guarded. A stop that keeps
 * what came before leaves its error in *stopped and is no failure here. */
static enum plumb_code compare_files(struct comparison *all,
                                     const struct plumb_precision_options *options,
                                     enum plumb_code *stopped, struct plumb_error *err)
{
    enum plumb_code code =
        precision_writer_open(&all->writer, options->folder, all->set->profile->files,
                              options->verdict != PLUMB_BY_RULES, err);
    if (code)
        return code;
    code = compare_rows(all, err);
    if (code == PLUMB_E_FORMAT && all->profile->stop_keeps) {
        *stopped = code;
        code = PLUMB_OK;
    }
    if (!code && !*stopped)
        api_list_finish(&all->apis);
    return code;
}

/* Second opinions have to be in both files. */
static enum plumb_code check_opinions(const struct comparison *all, struct plumb_error *err)
{
    const struct precheck_profile *profile = all->set->profile;
    if (profile->compare->outputs_only)
        return plumb_fail(err, PLUMB_E_ARG,
                          "tables under the rules of %s have no columns for other verdicts",
                          profile->name);
    const struct details_file *const files[] = {&all->npu, &all->gpu};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (int column = 0; column < OPINION_COLUMNS; column++)
            if (files[i]->opinion_place[column] < 0) {
                plumb_fail(err, PLUMB_E_ARG,
                           "it has no column %s; plumb acc_check --verdict both (or expected) "
                           "writes it on that device",
                           opinion_titles[column]);
                plumb_error_in_file(err, files[i]->path);
                return PLUMB_E_ARG;
            }
    return PLUMB_OK;
}

static void count_apis(const struct api_list *apis, struct plumb_precision_result *result)
{
    result->apis = apis->written;
    result->pass = apis->counts[VERDICT_PASS];
    result->warning = apis->counts[VERDICT_WARNING];
    result->error = apis->counts[VERDICT_ERROR];
    result->skip = apis->counts[VERDICT_SKIP] + apis->counts[VERDICT_NONE];
}

enum plumb_code plumb_precision_compare(struct plumb_precision_result *result,
                                        const struct plumb_precision_options *options,
                                        struct plumb_error *err)
{
    *result = (struct plumb_precision_result){0};
    if (!options->npu || !options->gpu || !options->folder)
        return plumb_fail(err, PLUMB_E_ARG, "two files and a folder are needed");
    struct comparison all = {.result = result};
    enum plumb_code code = rules_load(precheck_profiles, options->rules, &all.arena, &all.set, err);
    if (code) {
        arena_free(&all.arena);
        return code;
    }
    const struct precheck_profile *profile = all.set->profile;
    all.profile = profile->precision;
    api_list_init(&all.apis, all.profile, &all.writer);
    enum plumb_code stopped = PLUMB_OK;
    code = details_open(&all.npu, options->npu, precheck_profiles, profile, false, err);
    if (!code)
        code = details_open(&all.gpu, options->gpu, precheck_profiles, profile, true, err);
    if (!code && options->verdict != PLUMB_BY_RULES)
        code = check_opinions(&all, err);
    if (!code) {
        plumb_file_guard_enter(&all.npu_guard, &all.npu.file);
        plumb_file_guard_enter(&all.gpu_guard, &all.gpu.file);
        code = compare_files(&all, options, &stopped, err);
        if (!code && !stopped)
            code = count_only_gpu(&all, err);
        code = left_guards(&all, code, err);
    }
    if (!code)
        code = precision_writer_commit(&all.writer, stopped ? NULL : err);
    if (!code) {
        count_apis(&all.apis, result);
        result->details_path = all.writer.files[FILE_DETAILS].path;
        result->result_path = all.writer.files[FILE_RESULT].path;
        all.writer.files[FILE_DETAILS].path = all.writer.files[FILE_RESULT].path = NULL;
    }
    precision_writer_close(&all.writer);
    api_list_free(&all.apis);
    details_close(&all.npu);
    details_close(&all.gpu);
    map_free(&all.route_of);
    free(all.routes);
    arena_free(&all.arena);
    buf_free(&all.key);
    buf_free(&all.message);
    return code ? code : stopped;
}

void plumb_precision_free(struct plumb_precision_result *result)
{
    free(result->details_path);
    free(result->result_path);
    *result = (struct plumb_precision_result){0};
}
