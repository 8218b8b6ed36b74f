/* From the rows of a dump.json to records. */
#define _GNU_SOURCE
#include "run/record.h"

#include "run/dtype.h"

#include "format/condensed.h"
#include "format/recorded.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_number(const char *text, size_t length)
{
    return length && strspn(text, "0123456789") >= length;
}

/* Where the call number of a backward API is: "Functional.linear.3.backward", or
 * "Module.fc.Linear.backward.3". False when there is none. */
static bool find_backward_number(const char *name, const char **number, size_t *length)
{
    static const char word[] = ".backward";
    const char *at = NULL;
    for (const char *p = name; (p = strstr(p, word)); p++)
        at = p;
    if (!at)
        return false;
    const char *end = at + sizeof word - 1;
    if (*end == '.' && is_number(end + 1, strlen(end + 1))) {
        *number = end + 1;
        *length = strlen(end + 1);
        return true;
    }
    const char *dot = *end ? NULL : memrchr(name, '.', (size_t)(at - name));
    if (!dot || !is_number(dot + 1, (size_t)(at - dot - 1)))
        return false;
    *number = dot + 1;
    *length = (size_t)(at - dot - 1);
    return true;
}

/* Recomputation makes backward calls run in another order: they are counted as they come. */
static enum plumb_code renumber(struct record_maker *maker, const char *name)
{
    const char *number;
    size_t length;
    maker->prefix = NULL;
    if (!find_backward_number(name, &number, &length))
        return PLUMB_OK;
    int before = (int)(number - name);
    struct arena *arena = &maker->run->arena;
    const char *call = arena_printf(arena, "%.*s%s", before, name, number + length);
    uint64_t *count = call ? map_put(&maker->calls, call, strlen(call), NULL) : NULL;
    if (!count)
        return PLUMB_E_NOMEM;
    maker->prefix = arena_printf(arena, "%.*s%llu%s", before, name, (unsigned long long)(*count)++,
                                 number + length);
    return maker->prefix ? PLUMB_OK : PLUMB_E_NOMEM;
}

static const char *key_of(struct record_maker *maker, const struct dump_row *row)
{
    if (!maker->prefix)
        return row->path_name;
    const char *name = maker->tree->apis[row->api].name;
    size_t length = strlen(name);
    if (strncmp(row->path_name, name, length) != 0)
        return row->path_name;
    return arena_printf(&maker->run->arena, "%s%s", maker->prefix, row->path_name + length);
}

enum plumb_dtype run_dtype(const char *text)
{
    char lower[32];
    size_t length = strlen(text);
    enum plumb_dtype dtype = plumb_dtype_from_name(text);
    if (dtype != PLUMB_DTYPE_COUNT || length >= sizeof lower)
        return dtype;
    for (size_t i = 0; i <= length; i++)
        lower[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    return plumb_dtype_from_name(lower);
}

static enum plumb_code mark(struct record_maker *maker, struct plumb_record *record,
                            const struct plumb_error *why)
{
    return listing_fail(&maker->run->listing, record, why) ? PLUMB_E_NOMEM : PLUMB_OK;
}

/* Does a link stay in the folder of the dump? */
static bool stays_inside(struct record_maker *maker, const char *path)
{
    char *real = realpath(path, NULL), *folder = realpath(maker->tree->folder, NULL);
    size_t length = folder ? strlen(folder) : 0;
    bool inside = real && folder && strncmp(real, folder, length) == 0 && real[length] == '/';
    free(real);
    free(folder);
    return inside;
}

/* What was kept of a tensor in place of its file. */
static enum plumb_code find_kept(struct record_maker *maker, struct plumb_recorded *recorded,
                                 const char *path, bool *found)
{
    const char *name = recorded->data_name;
    const uint64_t *number = map_get(&maker->names, name, strlen(name));
    *found = number && maker->kept.records[*number].recorded;
    if (!*found)
        return condensed_complete(recorded, path, &maker->run->arena, found);
    return condensed_add(recorded, &maker->kept.records[*number], &maker->run->arena);
}

/* Finds the data file and looks at its size: shapes are promises. */
static enum plumb_code find_payload(struct record_maker *maker, struct plumb_record *record)
{
    struct plumb_recorded *recorded = (struct plumb_recorded *)record->recorded; /* made here */
    char path[PATH_MAX];
    struct plumb_error why;
    struct stat st, target;
    record->absent = !recorded->data_name || !(maker->payloads || maker->condensed);
    if (record->absent)
        return PLUMB_OK;
    if (!dump_payload(maker->tree, recorded->data_name, path, sizeof path)) {
        plumb_fail(&why, PLUMB_E_FORMAT, "the name of its data file, %.200s, leads elsewhere",
                   recorded->data_name);
        return mark(maker, record, &why);
    }
    record->path = maker->run->listing.path = arena_copy(&maker->run->arena, path, strlen(path));
    if (!record->path)
        return PLUMB_E_NOMEM;
    if (lstat(path, &st) || stat(path, &target)) {
        int reason = errno;
        if (find_kept(maker, recorded, path, &record->absent))
            return PLUMB_E_NOMEM;
        record->absent |= !maker->payloads;
        if (record->absent)
            return PLUMB_OK;
        plumb_fail(&why, PLUMB_E_IO, "cannot open its data file: %s", strerror(reason));
        return mark(maker, record, &why);
    }
    if (!S_ISREG(target.st_mode) || (S_ISLNK(st.st_mode) && !stays_inside(maker, path))) {
        plumb_fail(&why, PLUMB_E_IO,
                   "its data file is a link that leads out of the folder, or no "
                   "file at all");
        return mark(maker, record, &why);
    }
    if (record->count / 2 > (uint64_t)target.st_size) {
        plumb_fail(&why, PLUMB_E_FORMAT,
                   "its data file of %lld bytes is too small for the shape %s",
                   (long long)target.st_size, recorded->shape);
        return mark(maker, record, &why);
    }
    return PLUMB_OK;
}

static bool fill_recorded(struct record_maker *maker, struct plumb_recorded *recorded,
                          const struct dump_row *row)
{
    struct arena *arena = &maker->run->arena;
    *recorded = (struct plumb_recorded){
        .tensor = row->tensor,
        .api = maker->tree->apis[row->api].name,
        .type = row->type,
        .dtype = row->dtype,
        .shape = row->shape,
        .value = row->value,
        .checksum = row->md5,
        .data_name = row->data_name,
        .uninitialised = row->uninitialised,
        .spread = row->spread,
    };
    if (!row->tensor && !row->value)
        recorded->value = row->group_ranks ? row->group_ranks : row->type ? row->shape : "None";
    for (unsigned i = 0; i < PLUMB_STATISTICS; i++) {
        const struct dump_value *value = &row->statistic[i];
        const struct plumb_value taken = {
            .kind = value->kind == DUMP_NUMBER ? PLUMB_VALUE_NUMBER
                    : value->kind == DUMP_WORD ? PLUMB_VALUE_WORD
                                               : PLUMB_VALUE_NONE,
            .number = value->number,
            .text = value->kind == DUMP_ABSENT ? NULL : value->text,
        };
        if (!recorded_set_statistic(recorded, i, &taken, arena))
            return false;
    }
    if (!row->p2p_op && !row->p2p_peer && !row->dtensor)
        return true;
    struct plumb_recorded_rest *rest = recorded_rest(recorded, arena);
    if (!rest)
        return false;
    rest->p2p_op = row->p2p_op;
    rest->p2p_peer = row->p2p_peer;
    rest->dtensor = row->dtensor;
    return true;
}

_Static_assert((int)PLUMB_STATISTIC_MAX == DUMP_MAX && (int)PLUMB_STATISTIC_NORM == DUMP_NORM,
               "statistics in the same order");

/* Lists the sketches of a capture. One that cannot be read is as if it were not there, but for a
 * line. */
static enum plumb_code list_kept(struct record_maker *maker)
{
    struct plumb_run *run = maker->run;
    struct plumb_error why;
    struct stat st;
    struct format_file found;
    const char *path = arena_printf(&run->arena, "%s/" CONDENSED_SKETCHES, maker->tree->folder);
    if (!path)
        return PLUMB_E_NOMEM;
    if (lstat(path, &st) || !S_ISREG(st.st_mode))
        return PLUMB_OK;
    maker->kept = (struct listing){.arena = &run->arena};
    enum plumb_code code = format_list_file(&maker->kept, path, &found, &why);
    if (code == PLUMB_E_NOMEM)
        return code;
    if (code) {
        char text[800];
        plumb_error_text(&why, text, sizeof text);
        const char *line = arena_copy(&run->arena, text, strlen(text));
        return line ? dumps_warn(run, line) : PLUMB_E_NOMEM;
    }
    for (size_t i = 0; i < maker->kept.count; i++) {
        const char *name = maker->kept.records[i].name;
        uint64_t *number = map_put(&maker->names, name, strlen(name), NULL);
        if (!number)
            return PLUMB_E_NOMEM;
        *number = i;
    }
    maker->condensed = maker->kept.count;
    return PLUMB_OK;
}

static enum plumb_code add_record(struct record_maker *maker, struct plumb_recorded *recorded,
                                  const struct dump_row *row)
{
    struct listing *listing = &maker->run->listing;
    if (maker->api != row->api + 1) {
        if (renumber(maker, maker->tree->apis[row->api].name))
            return PLUMB_E_NOMEM;
        maker->api = row->api + 1;
    }
    listing->path = maker->tree->path;
    struct plumb_record *record = listing_lend(listing, row->name); /* the tree lives on */
    if (!record)
        return PLUMB_E_NOMEM;
    record->step = maker->place.step;
    record->rank = maker->place.rank;
    record->key = key_of(maker, row);
    record->recorded = recorded;
    if (!record->key || !fill_recorded(maker, recorded, row))
        return PLUMB_E_NOMEM;
    if (row->requires_grad)
        record->requires_grad = strcmp(row->requires_grad, "True") == 0;
    record->absent = true;
    maker->named |= row->data_name != NULL;
    if (!row->tensor)
        return PLUMB_OK;

    struct plumb_error why;
    if (row->dtype != maker->dtype_text) {
        maker->dtype = run_dtype(row->dtype);
        maker->dtype_text = row->dtype;
    }
    enum plumb_code code =
        listing_lend_shape(record, maker->dtype == PLUMB_DTYPE_COUNT ? PLUMB_F32 : maker->dtype,
                           row->ndim > UINT_MAX ? UINT_MAX : (unsigned)row->ndim, row->dims, &why);
    return code ? mark(maker, record, &why) : PLUMB_OK;
}

enum plumb_code record_take(void *context, const struct dump_tree *tree,
                            const struct dump_row *rows, size_t count)
{
    struct record_maker *maker = context;
    struct plumb_recorded *recorded = arena_array(&maker->run->arena, count, sizeof *recorded);
    enum plumb_code code = recorded ? PLUMB_OK : PLUMB_E_NOMEM;
    maker->tree = tree;
    for (size_t i = 0; i < count && !code; i++)
        code = add_record(maker, &recorded[i], &rows[i]);
    return code;
}

/* Who threw all data files away to save space has a dump of statistics. */
static void look_for_payloads(struct record_maker *maker)
{
    const struct listing *listing = &maker->run->listing;
    char path[PATH_MAX];
    struct stat st;
    for (size_t i = maker->first; i < listing->count && !maker->payloads; i++) {
        const char *name = listing->records[i].recorded->data_name;
        if (!name || !dump_payload(maker->tree, name, path, sizeof path))
            continue;
        maker->payloads = lstat(path, &st) == 0;
        size_t length = strlen(path);
        if (maker->payloads || maker->condensed || length + sizeof CONDENSED_ENDING > sizeof path)
            continue;
        memcpy(path + length, CONDENSED_ENDING, sizeof CONDENSED_ENDING);
        maker->condensed = lstat(path, &st) == 0;
    }
}

/* What is known of the calls only when all of the tree was read. */
static enum plumb_code set_callers(struct record_maker *maker)
{
    const struct dump_tree *tree = maker->tree;
    for (size_t a = 0; a < tree->api_count; a++) {
        const struct dump_api *api = &tree->apis[a];
        if (!api->parent && !api->stack)
            continue;
        struct plumb_caller *caller = arena_alloc(&maker->run->arena, sizeof *caller);
        if (!caller)
            return PLUMB_E_NOMEM;
        *caller =
            (struct plumb_caller){api->parent, api->stack ? tree->stacks[api->stack - 1] : NULL};
        for (size_t i = api->first; i < api->first + api->count; i++) {
            struct plumb_recorded *recorded =
                (struct plumb_recorded *)maker->run->listing.records[maker->first + i].recorded;
            recorded->caller = caller;
        }
    }
    return PLUMB_OK;
}

enum plumb_code record_end(struct record_maker *maker)
{
    struct listing *listing = &maker->run->listing;
    enum plumb_code code = list_kept(maker);
    if (!code)
        code = set_callers(maker);
    if (code || !maker->named)
        return code; /* all of them are absent */
    look_for_payloads(maker);
    for (size_t i = maker->first; i < listing->count && !code; i++) {
        struct plumb_record *record = &listing->records[i];
        listing->path = maker->tree->path;
        if (record->recorded->tensor && !record->error)
            code = find_payload(maker, record);
    }
    return code;
}

void record_maker_free(struct record_maker *maker)
{
    map_free(&maker->calls);
    map_free(&maker->names);
}
