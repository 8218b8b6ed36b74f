/* FX folders: {graph name}/{token}/files.npy, or, by older writers, {token +
 * 1}/{dump}/files.npy. */
#define _GNU_SOURCE
#include "pair/air.h"
#include "pair/graph_names.h"
#include "plumb/run.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TOKEN_DIGITS = 11 };

struct finder {
    struct air_dump *dump;
    struct arena *arena;
    bool ranked;
    const struct air_rules *rules;
    bool failed;
    size_t capacity;
};

static bool is_token(const struct tree *tree)
{
    size_t length = strlen(tree->name);
    return length <= MAX_TOKEN_DIGITS && number_of(tree->name, length) >= 0;
}

static bool is_token_set(const struct tree *tree)
{
    for (size_t i = 0; i < tree->folder_count; i++)
        if (!is_token(&tree->folders[i]))
            return false;
    return tree->folder_count > 0;
}

static struct air_group *add_group(struct finder *finder, const char *name, size_t tokens)
{
    struct air_dump *dump = finder->dump;
    if (dump->count == finder->capacity) {
        size_t capacity = finder->capacity ? finder->capacity * 2 : 4;
        struct air_group *groups = arena_array(finder->arena, capacity, sizeof *groups);
        if (!groups)
            return NULL;
        if (dump->count)
            memcpy(groups, dump->groups, dump->count * sizeof *groups);
        dump->groups = groups;
        finder->capacity = capacity;
    }
    struct air_group *group = &dump->groups[dump->count];
    *group = (struct air_group){.name = name, .device = -1};
    group->tokens = arena_array(finder->arena, tokens, sizeof *group->tokens);
    dump->count += group->tokens != NULL;
    return group->tokens ? group : NULL;
}

static bool add_file(struct air_token *token, const struct tree_file *file, struct arena *arena)
{
    struct fx_name parts;
    size_t length = strlen(file->name);
    if (length < 4 || strcmp(file->name + length - 4, ".npy") != 0)
        return true;
    bool named = fx_name_parse(file->name, &parts);
    if (!named || file->problem) {
        token->odd[token->odd_count].path = file->path;
        token->odd[token->odd_count++].why =
            named ? file->problem : "its name says neither INPUT nor OUTPUT";
        return true;
    }
    bool added;
    uint64_t *place = map_put(&token->by_name, file->name, parts.key_length, &added);
    if (!place)
        return false;
    if (added) {
        *place = token->node_count;
        struct air_node *fresh = &token->nodes[token->node_count++];
        fresh->key = arena_copy(arena, file->name, parts.key_length);
        fresh->stamp = parts.stamp;
        if (!fresh->key)
            return false;
    }
    struct air_node *node = &token->nodes[*place];
    struct air_fx_list *list = &node->list[parts.input ? 0 : 1];
    if (!(list->count & (list->count - 1))) { /* full: twice as much */
        struct air_fx_file *files =
            arena_array(arena, list->count ? list->count * 2 : 1, sizeof *files);
        if (!files)
            return false;
        if (list->count)
            memcpy(files, list->files, list->count * sizeof *files);
        list->files = files;
    }
    list->files[list->count++] = (struct air_fx_file){
        .path = file->path,
        .name = file->name,
        .length = parts.timed ? (size_t)(parts.stamp - file->name) - 1 : length - 4,
        .timed = parts.timed,
        .index = parts.index,
        .inner = parts.inner,
    };
    return true;
}

bool air_fx_same(const struct air_fx_file *a, const struct air_fx_file *b)
{
    return a->length == b->length && memcmp(a->name, b->name, a->length) == 0;
}

static int by_number(const void *a, const void *b)
{
    const struct air_fx_file *left = a, *right = b;
    if (left->index != right->index)
        return left->index < right->index ? -1 : 1;
    if (left->inner != right->inner)
        return left->inner < right->inner ? -1 : 1;
    return strcmp(left->path, right->path);
}

/* A run that was repeated leaves files beside those of the first time: the latest count. The list
 * is in order. */
static void set_aside_older(struct air_token *token, struct air_fx_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct air_fx_file *file = &list->files[i];
        if (i + 1 < list->count && file->timed && air_fx_same(file, file + 1)) {
            token->odd[token->odd_count].path = file->path;
            token->odd[token->odd_count].older = true;
            token->odd[token->odd_count++].why = "a later file of the same tensor is compared";
        } else {
            list->files[kept++] = *file;
        }
    }
    list->count = kept;
}

/* Adds the files of a folder to the token. */
static bool fill_token(struct air_token *token, const struct tree *tree,
                       const struct air_rules *rules, struct arena *arena)
{
    token->nodes = arena_array(arena, tree->file_count, sizeof *token->nodes);
    token->odd = arena_array(arena, tree->file_count + 1, sizeof *token->odd);
    bool ok = token->nodes && token->odd;
    if (ok && tree->problem) {
        token->odd[0].path = tree->path;
        token->odd[token->odd_count++].why = tree->problem;
    }
    for (size_t i = 0; i < tree->file_count && ok; i++)
        ok = add_file(token, &tree->files[i], arena);
    for (size_t i = 0; i < token->node_count && ok && !rules->all_files; i++)
        for (int k = 0; k < 2; k++) {
            struct air_fx_list *list = &token->nodes[i].list[k];
            if (list->count)
                qsort(list->files, list->count, sizeof *list->files, by_number);
            set_aside_older(token, list);
        }
    return ok;
}

static bool add_token(struct air_group *group, int64_t id, const struct tree *tree,
                      const struct air_rules *rules, struct arena *arena)
{
    struct air_token *token = &group->tokens[group->token_count];
    *token = (struct air_token){.id = id};
    bool ok = fill_token(token, tree, rules, arena);
    if (token->node_count || token->odd_count)
        group->token_count++;
    else
        map_free(&token->by_name);
    return ok;
}

static int by_value(const void *a, const void *b)
{
    const struct tree *left = *(const struct tree *const *)a,
                      *right = *(const struct tree *const *)b;
    int64_t x = number_of(left->name, strlen(left->name));
    int64_t y = number_of(right->name, strlen(right->name));
    return x < y ? -1 : x > y;
}

/* Numbers in names count as numbers: graph_10 comes after graph_9. */
static int by_version(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* Tokens that hold their files themselves. */
static bool take_direct(struct finder *finder, const char *name, const struct tree **tokens,
                        size_t count)
{
    struct air_group *group = add_group(finder, name, count);
    for (size_t i = 0; i < count && group; i++)
        if (!add_token(group, number_of(tokens[i]->name, strlen(tokens[i]->name)), tokens[i],
                       finder->rules, finder->arena))
            return false;
    return group != NULL;
}

static int by_folder(const void *name, const void *folder)
{
    return strcmp(name, ((const struct tree *)folder)->name);
}

/* Folders are in the order of their names. */
static const struct tree *find_folder(const struct tree *tree, const char *name)
{
    if (!tree->folder_count)
        return NULL;
    return bsearch(name, tree->folders, tree->folder_count, sizeof *tree->folders, by_folder);
}

/* Do folders of different tokens have names in common? Then names say what is of one graph. */
static bool share_names(const struct tree **tokens, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++)
        for (size_t k = 0; k < tokens[i]->folder_count; k++)
            if (find_folder(tokens[i + 1], tokens[i]->folders[k].name))
                return true;
    return false;
}

/* The names of the folders in all tokens, each once, in the order of their numbers. */
static const char **list_names(const struct tree **tokens, size_t count, size_t *found,
                               struct arena *arena)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        most += tokens[i]->folder_count;
    const char **names = arena_array(arena, most + 1, sizeof *names);
    *found = 0;
    for (size_t i = 0; i < count && names; i++)
        for (size_t k = 0; k < tokens[i]->folder_count; k++)
            names[(*found)++] = tokens[i]->folders[k].name;
    if (names && *found)
        qsort(names, *found, sizeof *names, by_version);
    size_t kept = 0;
    for (size_t i = 0; i < *found && names; i++)
        if (!kept || strcmp(names[kept - 1], names[i]) != 0)
            names[kept++] = names[i];
    *found = kept;
    return names;
}

/* Tokens, counted from 1, that hold a folder for each graph. */
static bool take_nested(struct finder *finder, const struct tree **tokens, size_t count)
{
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        least = tokens[i]->folder_count < least ? tokens[i]->folder_count : least;
        most = tokens[i]->folder_count > most ? tokens[i]->folder_count : most;
    }
    size_t graphs = finder->rules->in_place ? least : most;
    const char **names = NULL;
    if (!finder->rules->in_place && (count == 1 || share_names(tokens, count))) {
        names = list_names(tokens, count, &graphs, finder->arena);
        if (!names)
            return false;
    }
    for (size_t k = 0; k < graphs; k++) {
        struct air_group *group = add_group(finder, names ? names[k] : NULL, count);
        for (size_t i = 0; i < count && group; i++) {
            int64_t id = number_of(tokens[i]->name, strlen(tokens[i]->name)) - 1;
            const struct tree *folder = names ? find_folder(tokens[i], names[k])
                                        : k < tokens[i]->folder_count ? &tokens[i]->folders[k]
                                                                      : NULL;
            if (folder && !add_token(group, id, folder, finder->rules, finder->arena))
                return false;
        }
        if (!group)
            return false;
    }
    return true;
}

static bool take_set(struct finder *finder, const struct tree *tree)
{
    const struct tree **tokens = arena_array(finder->arena, tree->folder_count, sizeof *tokens);
    size_t count = tree->folder_count;
    if (!tokens)
        return false;
    bool nested = false;
    for (size_t i = 0; i < count; i++) {
        tokens[i] = &tree->folders[i];
        nested = nested || tokens[i]->folder_count;
    }
    qsort(tokens, count, sizeof *tokens, by_value);
    if (finder->rules->in_place)
        nested = !finder->ranked;
    return nested ? take_nested(finder, tokens, count)
                  : take_direct(finder, tree->name, tokens, count);
}

static int by_name(const void *a, const void *b)
{
    const struct air_group *left = a, *right = b;
    return strverscmp(left->name ? left->name : "", right->name ? right->name : "");
}

static void find_sets(struct finder *finder, const struct tree *tree)
{
    if (finder->failed)
        return;
    if (is_token_set(tree)) {
        finder->failed = !take_set(finder, tree);
        return;
    }
    for (size_t i = 0; i < tree->folder_count; i++)
        find_sets(finder, &tree->folders[i]);
}

enum plumb_code air_read_fx(struct air_dump *dump, const struct tree *tree, bool ranked,
                            const struct air_rules *rules, struct arena *arena,
                            struct plumb_error *err)
{
    struct finder finder = {.dump = dump, .arena = arena, .ranked = ranked, .rules = rules};
    *dump = (struct air_dump){.fx = true, .root = tree->path};
    find_sets(&finder, tree);
    if (!rules->in_place && dump->count && dump->groups[0].name)
        qsort(dump->groups, dump->count, sizeof *dump->groups, by_name);
    if (!dump->count && !finder.failed && tree->file_count) {
        /* A folder of nothing but files is one token. */
        struct air_group *group = add_group(&finder, tree->name, 1);
        finder.failed = !group || !add_token(group, 0, tree, rules, arena);
    }
    return finder.failed ? plumb_no_memory(err) : PLUMB_OK;
}

bool air_has_fx(const struct tree *tree, bool timed)
{
    struct fx_name parts;
    for (size_t i = 0; i < tree->file_count; i++)
        if (fx_name_parse(tree->files[i].name, &parts) && (parts.timed || !timed))
            return true;
    for (size_t i = 0; i < tree->folder_count; i++)
        if (air_has_fx(&tree->folders[i], timed))
            return true;
    return false;
}

void air_dump_free(struct air_dump *dump)
{
    for (size_t i = 0; i < dump->count; i++)
        for (size_t k = 0; k < dump->groups[i].token_count; k++)
            map_free(&dump->groups[i].tokens[k].by_name);
    *dump = (struct air_dump){0};
}

struct air_token *air_find_token(const struct air_group *group, int64_t id)
{
    for (size_t i = 0; i < group->token_count; i++)
        if (group->tokens[i].id == id)
            return &group->tokens[i];
    return NULL;
}

struct air_op *air_find_op(const struct air_token *token, const char *key, size_t length)
{
    const uint64_t *place = map_get(&token->by_name, key, length);
    return place ? &token->ops[*place] : NULL;
}

struct air_node *air_find_node(const struct air_token *token, const char *key)
{
    const uint64_t *place = map_get(&token->by_name, key, strlen(key));
    return place ? &token->nodes[*place] : NULL;
}

enum plumb_code air_load_fx(const char *path, struct plumb_payload *payload,
                            struct plumb_error *err)
{
    struct plumb_run *run;
    enum plumb_code code = plumb_run_open(&run, path, err);
    if (code)
        return code;
    code = plumb_run_count(run) == 1
               ? plumb_run_load(run, 0, payload, err)
               : plumb_fail(err, PLUMB_E_FORMAT, "%zu tensors where an FX file has one",
                            plumb_run_count(run));
    plumb_run_free(run);
    return code;
}
