/* Finding the texts of graphs, and putting the data of both sides to them. */
#define _GNU_SOURCE
#include "pair/graph_groups.h"

#include "pair/graph_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void graphs_find(struct graph_files *files, const struct tree *tree, int64_t rank)
{
    for (size_t i = 0; i < tree->file_count && !files->failed; i++) {
        struct graph_file file = {.path = tree->files[i].path};
        if (tree->files[i].problem || !graph_name_parse(tree->files[i].name, rank, &file.id))
            continue;
        file.rank = rank_of_graph(tree->files[i].name);
        if (files->count == files->capacity) {
            size_t capacity = files->capacity ? files->capacity * 2 : 8;
            struct graph_file *items = realloc(files->items, capacity * sizeof *items);
            files->failed = !items;
            if (!items)
                return;
            files->items = items;
            files->capacity = capacity;
        }
        files->items[files->count++] = file;
    }
    for (size_t i = 0; i < tree->folder_count; i++)
        graphs_find(files, &tree->folders[i], rank);
}

static int by_id(const void *a, const void *b)
{
    const struct graph_file *left = a, *right = b;
    if (left->id != right->id)
        return left->id < right->id ? -1 : 1;
    return strcmp(left->path, right->path);
}

/* When it was written, as its name says: "dynamo_original_graph_1_rank_0_pid_4_ts_5.txt". */
static const char *time_of(const struct graph_file *file)
{
    const char *slash = strrchr(file->path, '/');
    const char *name = slash ? slash + 1 : file->path;
    const char *time = strstr(name, "_ts_");
    return time ? time : name;
}

/* Of several of one graph, which repeated runs leave, the latest comes first. */
static int by_id_and_time(const void *a, const void *b)
{
    const struct graph_file *left = a, *right = b;
    if (left->id != right->id)
        return left->id < right->id ? -1 : 1;
    int order = strverscmp(time_of(right), time_of(left));
    return order ? order : strcmp(left->path, right->path);
}

bool graphs_has_text(const struct tree *tree)
{
    struct graph_files files = {0};
    graphs_find(&files, tree, -1);
    free(files.items);
    return files.count > 0;
}

bool graphs_recognise(const char *path)
{
    struct arena arena = {0};
    struct tree tree;
    bool found = !tree_read_some(&tree, path, 1, &arena, NULL) && graphs_has_text(&tree);
    arena_free(&arena);
    return found;
}

bool graphs_recognise_fx(const char *path)
{
    enum { LEVELS = 4 }; /* data_dump/token/graph, and one above */
    struct arena arena = {0};
    struct tree tree;
    bool found = !tree_read_some(&tree, path, LEVELS, &arena, NULL) && !graphs_has_text(&tree) &&
                 air_has_fx(&tree, true);
    arena_free(&arena);
    return found;
}

enum plumb_code graphs_read(struct graph_files *files, const struct air_rules *rules,
                            struct arena *arena, struct plumb_error *err)
{
    if (files->failed)
        return plumb_no_memory(err);
    if (files->count)
        qsort(files->items, files->count, sizeof *files->items,
              rules->in_place ? by_id : by_id_and_time);
    for (size_t i = 0; i < files->count; i++) {
        struct graph_file *file = &files->items[i];
        struct plumb_error why;
        char text[900];
        enum plumb_code code = graph_open(&file->graph, file->path, arena, &why);
        if (!code && !rules->literal && !graph_spell_as_files(&file->graph, arena))
            return plumb_no_memory(err);
        if (!code)
            continue;
        file->graph = (struct graph){0};
        file->problem = arena_printf(arena, "%s", plumb_error_text(&why, text, sizeof text));
        if (code == PLUMB_E_NOMEM || !file->problem)
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

void graphs_free(struct graph_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        graph_free(&files->items[i].graph);
    free(files->items);
    *files = (struct graph_files){0};
}

static struct graph_set *add_set(struct graph_sets *sets, const char *name)
{
    struct graph_set *set = &sets->items[sets->count];
    size_t length = strlen(name), digits = 0;
    while (digits < length && strchr("0123456789", name[length - digits - 1]))
        digits++;
    int64_t id = number_of(name + length - digits, digits);
    *set = (struct graph_set){.name = name, .id = id < 0 ? (int64_t)sets->count : id};
    sets->count++;
    return set;
}

static bool is_of(const struct graph_set *set, const struct air_group *group)
{
    char number[40];
    if (!group->name)
        return false;
    if (set->text)
        snprintf(number, sizeof number, "graph_%" PRIu64, set->text->id);
    return ge_name_same(set->name, group->name) || (set->text && ge_name_same(number, group->name));
}

/* The set that the group is of, and nothing of its side is in yet. Of several with its name, as
 * those of devices, it is that of the device's rank. */
static struct graph_set *find_set(const struct graph_sets *sets, const struct air_group *group,
                                  int side)
{
    struct graph_set *found = NULL;
    for (size_t i = 0; i < sets->count; i++) {
        struct graph_set *set = &sets->items[i];
        if (set->groups[side] || !is_of(set, group))
            continue;
        bool same_device = set->text && group->device >= 0 && set->text->rank == group->device;
        if (!found || same_device)
            found = set;
        if (same_device)
            break;
    }
    return found;
}

static void put_by_position(struct graph_sets *sets, const struct air_dump *dump, int side)
{
    for (size_t i = 0; i < sets->count && i < dump->count; i++)
        sets->items[i].groups[side] = &dump->groups[i];
}

static void match_side(struct graph_sets *sets, const struct air_dump *dump, int side,
                       struct buf *notes, struct arena *arena)
{
    bool *placed = arena_array(arena, dump->count + 1, sizeof *placed);
    size_t named = 0;
    notes->failed = notes->failed || !placed;
    for (size_t i = 0; placed && i < dump->count; i++) {
        struct graph_set *set = find_set(sets, &dump->groups[i], side);
        if (!set)
            continue;
        set->groups[side] = &dump->groups[i];
        placed[i] = true;
        named++;
    }
    if (!named && dump->count && dump->count == sets->count) {
        if (dump->count > 1)
            buf_printf(notes,
                       "The %zu graphs of the %s side are taken in their order: their folders do "
                       "not have the names of graphs\n",
                       dump->count, side ? "golden" : "target");
        put_by_position(sets, dump, side);
        return;
    }
    for (size_t i = 0; placed && i < dump->count; i++) {
        const struct air_group *group = &dump->groups[i];
        const char *name = group->name;
        if (placed[i])
            continue;
        if (!name)
            name = arena_printf(arena, "graph number %zu", i + 1);
        notes->failed = notes->failed || !name;
        if (name)
            add_set(sets, name)->groups[side] = group;
    }
}

/* Is the set an earlier text of a graph whose data is in another one? */
static bool is_outdated(const struct graph_sets *sets, size_t which)
{
    const struct graph_set *set = &sets->items[which];
    if (!set->text || set->groups[0] || set->groups[1])
        return false;
    for (size_t i = 0; i < which; i++) {
        const struct graph_set *other = &sets->items[i];
        if (other->text && other->text->id == set->text->id &&
            other->text->rank == set->text->rank && strcmp(other->name, set->name) == 0)
            return true;
    }
    return false;
}

static void drop_outdated(struct graph_sets *sets, struct buf *notes)
{
    size_t kept = 0;
    for (size_t i = 0; i < sets->count; i++) {
        if (is_outdated(sets, i)) {
            const char *path = sets->items[i].text->path;
            const char *slash = strrchr(path, '/');
            buf_printf(notes, "Graph text %s: a later text of the same graph is used\n",
                       slash ? slash + 1 : path);
        } else {
            sets->items[kept++] = sets->items[i];
        }
    }
    sets->count = kept;
}

enum plumb_code groups_match(struct graph_sets *sets, const struct graph_files *files,
                             const struct air_dump dumps[2], const struct air_rules *rules,
                             struct buf *notes, struct arena *arena, struct plumb_error *err)
{
    size_t most = files->count + dumps[0].count + dumps[1].count;
    *sets = (struct graph_sets){.items = arena_array(arena, most + 1, sizeof *sets->items)};
    if (!sets->items)
        return plumb_no_memory(err);
    for (size_t i = 0; i < files->count; i++) {
        const struct graph_file *file = &files->items[i];
        const char *name = file->graph.name && !rules->in_place
                               ? file->graph.name
                               : arena_printf(arena, "graph_%" PRIu64, file->id);
        if (!name)
            return plumb_no_memory(err);
        struct graph_set *set = add_set(sets, name);
        set->text = file;
        set->id = (int64_t)file->id;
    }
    for (int side = 0; side < 2; side++) {
        if (rules->in_place)
            put_by_position(sets, &dumps[side], side);
        else
            match_side(sets, &dumps[side], side, notes, arena);
    }
    if (!rules->in_place)
        drop_outdated(sets, notes);
    return notes->failed ? plumb_no_memory(err) : PLUMB_OK;
}
