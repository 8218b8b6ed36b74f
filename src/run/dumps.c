/* A dump as a run: a record a row of each dump.json, step by step and rank by rank. */
#define _GNU_SOURCE
#include "run/record.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The number in "rank3" or "step12", or -1. */
static int64_t number_after(const char *name, const char *word)
{
    size_t length = strlen(word), digits = strspn(name + strnlen(name, length), "0123456789");
    if (strncmp(name, word, length) != 0 || !digits || digits > 9 || name[length + digits])
        return -1;
    return strtol(name + length, NULL, 10);
}

/* One record in place of rows that could not be had. */
static enum plumb_code add_lost(struct plumb_run *run, const struct place *place, const char *name,
                                size_t length, const struct plumb_error *why)
{
    struct plumb_record *record = listing_add(&run->listing, name, length);
    if (!record)
        return PLUMB_E_NOMEM;
    record->step = place->step;
    record->rank = place->rank;
    record->absent = true;
    return listing_fail(&run->listing, record, why);
}

enum plumb_code dumps_warn(struct plumb_run *run, const char *text)
{
    const char **list = realloc(run->warnings, (run->warning_count + 1) * sizeof *list);
    if (!list)
        return PLUMB_E_NOMEM;
    run->warnings = list;
    list[run->warning_count++] = text;
    return PLUMB_OK;
}

/* A line about the files beside dump.json is a warning; any other stands for rows that are lost. */
static enum plumb_code add_warning(struct plumb_run *run, const struct dump_tree *tree,
                                   const struct place *place, const char *text)
{
    if (strstr(text, "stack.json") || strstr(text, "construct.json"))
        return dumps_warn(run, text);
    struct plumb_error why;
    const char *colon = strstr(text, ": "), *name = text;
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    const char *slash = memrchr(text, '/', length);
    if (slash) {
        name = slash + 1;
        length -= (size_t)(name - text);
    }
    plumb_fail(&why, PLUMB_E_FORMAT, "%s", colon && !slash ? colon + 2 : text);
    run->listing.path = tree->path;
    return add_lost(run, place, name, length, &why);
}

/* Reads a tree, which becomes the run's, into records. *why is set when the tree cannot be read;
 * and then there are no records of it. PLUMB_E_NOMEM: nothing can be done with the run. */
static enum plumb_code read_tree(struct plumb_run *run, const char *json, const struct place *place,
                                 struct plumb_error *why)
{
    struct dump_tree *tree = &run->trees[run->tree_count];
    struct record_maker maker = {.run = run, .place = *place, .first = run->listing.count};
    enum plumb_code code = dump_stream(tree, json, record_take, &maker, why);
    if (code) {
        run->listing.count = maker.first;
    } else {
        tree->step = place->step;
        tree->rank = place->rank;
        run->tree_count++;
        maker.tree = tree;
        code = record_end(&maker);
        for (size_t i = 0; i < tree->warning_count && !code; i++)
            code = add_warning(run, tree, place, tree->warnings[i]);
    }
    record_maker_free(&maker);
    return code;
}

/* Once: of ranks that are opened one by one, with the first. */
static enum plumb_code warn_of_strays(struct plumb_run *run, const struct dump_places *places,
                                      struct plumb_error *err)
{
    if (!places->strays ||
        (run->only && *run->only != number_after(places->places[0].rank, "rank")))
        return PLUMB_OK;
    const char *text = arena_copy(&run->arena, places->strays, strlen(places->strays));
    return !text || dumps_warn(run, text) ? plumb_no_memory(err) : PLUMB_OK;
}

/* The trees of one step. A tree that cannot be read is a record, unless it is the only one. */
static enum plumb_code add_step(struct plumb_run *run, const struct dump_places *places,
                                int64_t step, bool only, struct plumb_error *err)
{
    if (warn_of_strays(run, places, err))
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < places->count; i++) {
        if (run->only && *run->only != number_after(places->places[i].rank, "rank"))
            continue;
        if (run->tree_count == run->tree_capacity) {
            size_t capacity = run->tree_capacity ? run->tree_capacity * 2 : 8;
            struct dump_tree *trees = realloc(run->trees, capacity * sizeof *trees);
            if (!trees)
                return plumb_no_memory(err);
            run->trees = trees;
            run->tree_capacity = capacity;
        }
        struct place place = {.step = step, .rank = number_after(places->places[i].rank, "rank")};
        struct plumb_error why;
        enum plumb_code code = read_tree(run, places->places[i].json, &place, &why);
        const bool alone = only && places->count == 1 && !run->others;
        if (code && code != PLUMB_E_NOMEM && !alone) {
            const char *json = places->places[i].json;
            run->listing.path = arena_copy(&run->arena, json, strlen(json));
            code = run->listing.path ? add_lost(run, &place, "dump.json", 9, &why) : PLUMB_E_NOMEM;
        } else if (code && code != PLUMB_E_NOMEM) {
            if (err)
                *err = why;
            return code;
        }
        if (code)
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

static bool has_tree(const struct dump_places *places)
{
    for (size_t i = 0; i < places->count; i++)
        if (is_file(places->places[i].json))
            return true;
    return false;
}

struct steps {
    const char **names; /* in the arena, in their order */
    int64_t *numbers;
    size_t count;
};

static enum plumb_code list_steps(struct arena *arena, const char *folder, struct steps *steps)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, NULL);
    if (count < 0)
        return errno == ENOMEM ? PLUMB_E_NOMEM : PLUMB_OK;
    steps->names = arena_array(arena, (size_t)count, sizeof *steps->names);
    steps->numbers = arena_array(arena, (size_t)count, sizeof *steps->numbers);
    enum plumb_code code = steps->names && steps->numbers ? PLUMB_OK : PLUMB_E_NOMEM;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        int64_t number = number_after(name, "step");
        if (!code && number >= 0) {
            const char *path = arena_printf(arena, "%s/%s", folder, name);
            if (!path)
                code = PLUMB_E_NOMEM;
            size_t at = steps->count++;
            for (; at && steps->numbers[at - 1] > number; at--) {
                steps->numbers[at] = steps->numbers[at - 1];
                steps->names[at] = steps->names[at - 1];
            }
            steps->numbers[at] = number;
            steps->names[at] = path;
        }
        free(entries[i]);
    }
    free(entries);
    return code;
}

/* Something done for every step of a dump. */
typedef enum plumb_code step_fn(void *context, const struct dump_places *places, int64_t step,
                                bool only, struct plumb_error *err);

/* Steps below a dump path; MindSpore puts them into a folder of the mode that it ran in. */
static enum plumb_code each_below(const char *path, struct arena *arena, bool bare, bool *found,
                                  step_fn *fn, void *context, struct plumb_error *err)
{
    static const char *const below[] = {"", "/graph", "/pynative"};
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < sizeof below / sizeof *below && !code; k++) {
        struct steps steps = {0};
        const char *folder = arena_printf(arena, "%s%s", path, below[k]);
        if (!folder || list_steps(arena, folder, &steps))
            return plumb_no_memory(err);
        for (size_t i = 0; i < steps.count && !code; i++) {
            struct dump_places places;
            struct plumb_error none;
            if (dump_find(&places, steps.names[i], &none))
                continue;
            if (bare || has_tree(&places)) {
                *found = true;
                code = fn(context, &places, steps.numbers[i], false, err);
            }
            dump_places_free(&places);
        }
    }
    return code;
}

/* bare: also where no rank has a dump.json; those of another host may. */
static enum plumb_code each_step(const char *path, struct arena *arena, bool bare, bool *found,
                                 step_fn *fn, void *context, struct plumb_error *err)
{
    struct dump_places places;
    struct plumb_error none;
    enum plumb_code code = dump_find(&places, path, &none);
    *found = false;
    if (code == PLUMB_E_NOMEM)
        return plumb_no_memory(err);
    if (code)
        return each_below(path, arena, bare, found, fn, context, err);
    *found = bare || has_tree(&places);
    if (*found)
        code = fn(context, &places, -1, true, err);
    dump_places_free(&places);
    return code;
}

static enum plumb_code open_step(void *context, const struct dump_places *places, int64_t step,
                                 bool only, struct plumb_error *err)
{
    return add_step(context, places, step, only, err);
}

enum plumb_code dumps_open(struct plumb_run *run, bool *found, struct plumb_error *err)
{
    enum plumb_code code =
        each_step(run->path, &run->arena, run->others, found, open_step, run, err);
    if (*found)
        run->kind = "dump";
    if (!code && *found && !run->listing.count && !run->only) {
        code = plumb_fail(err, PLUMB_E_FORMAT, "the dump has no entries");
        plumb_error_in_file(err, run->path);
    }
    return code;
}

struct looking {
    bool (*see)(void *context, int64_t rank, const char *json);
    void *context;
};

static enum plumb_code look_at_step(void *context, const struct dump_places *places, int64_t step,
                                    bool only, struct plumb_error *err)
{
    const struct looking *looking = context;
    (void)step, (void)only;
    for (size_t i = 0; i < places->count; i++)
        if (!looking->see(looking->context, number_after(places->places[i].rank, "rank"),
                          places->places[i].json))
            return plumb_no_memory(err);
    return PLUMB_OK;
}

enum plumb_code dumps_look(const char *path, bool bare,
                           bool (*see)(void *context, int64_t rank, const char *json),
                           void *context, struct plumb_error *err)
{
    struct arena arena = {0};
    struct looking looking = {see, context};
    bool found;
    const enum plumb_code code = each_step(path, &arena, bare, &found, look_at_step, &looking, err);
    arena_free(&arena);
    return code;
}

struct telling {
    void (*say)(void *context, const char *line);
    void *context;
};

static enum plumb_code tell_strays(void *context, const struct dump_places *places, int64_t step,
                                   bool only, struct plumb_error *err)
{
    const struct telling *telling = context;
    (void)step, (void)only, (void)err;
    if (places->strays)
        telling->say(telling->context, places->strays);
    return PLUMB_OK;
}

void dumps_strays(const char *path, void (*say)(void *context, const char *line), void *context)
{
    struct arena arena = {0};
    struct telling telling = {say, context};
    struct plumb_error none;
    bool found;
    /* Whoever opens the dump says what is wrong with it. */
    (void)each_step(path, &arena, false, &found, tell_strays, &telling, &none);
    arena_free(&arena);
}

void dumps_free(struct plumb_run *run)
{
    for (size_t i = 0; i < run->tree_count; i++)
        dump_close(&run->trees[i]);
    free(run->trees);
    free(run->warnings);
}

/* The one tensor of a payload file, whatever it is called there. */
static enum plumb_code load_only(const struct plumb_record *record, struct arena *arena,
                                 struct plumb_payload *payload, struct plumb_error *err)
{
    struct listing listing = {.arena = arena};
    struct format_file found;
    enum plumb_code code = format_list_file(&listing, record->path, &found, err);
    if (!code && listing.count == 1 && listing.records[0].absent)
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "its range was kept, its values were not");
    if (!code && listing.count != 1)
        code =
            plumb_fail(err, PLUMB_E_FORMAT, "it holds %zu tensors instead of one", listing.count);
    return code ? code
                : format_load(found.format, &listing.records[0], found.size, found.mtime_ns, NULL,
                              payload, err);
}

enum plumb_code dumps_load(const struct plumb_record *record, struct plumb_payload *payload,
                           struct plumb_error *err)
{
    struct arena arena = {0};
    *payload = (struct plumb_payload){0};
    if (record->error) {
        if (err)
            *err = *record->error;
        return record->error->code;
    }
    if (record->absent)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "the dump has no data file for it");
    enum plumb_code code = load_only(record, &arena, payload, err);
    if (!code && record->recorded->shape && payload->tensor.count != record->count) {
        char text[160];
        code = plumb_fail(err, PLUMB_E_FORMAT, "the file holds %s, but dump.json says %s",
                          plumb_shape_text(&payload->tensor, text, sizeof text),
                          record->recorded->shape);
        plumb_payload_release(payload);
    }
    if (code)
        plumb_error_in_file(err, record->path);
    arena_free(&arena);
    return code;
}
