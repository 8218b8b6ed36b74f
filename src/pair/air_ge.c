/* GE folders: {time}/{device}/{model name}/{model id}/{token}/files, below a rank folder or not. */
#define _GNU_SOURCE
#include "base/mapped.h"
#include "pair/air.h"
#include "pair/graph_names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A folder without folders in it, and where its files belong. */
struct leaf {
    const struct tree *tree;
    int64_t group, token; /* group: model id, or device */
    const char *name;     /* of the model */
    int64_t device;
};

struct leaves {
    struct leaf *items;
    size_t count, capacity;
    bool several_devices;
    const struct air_rules *rules;
    bool failed;
};

static int64_t number_or_zero(const char *name)
{
    int64_t number = number_of(name, strlen(name));
    return number < 0 ? 0 : number;
}

/* ancestors: room for the folders from the top down to tree; those above it are there. */
static void find_leaves(struct leaves *leaves, const struct tree *tree,
                        const struct tree **ancestors, size_t depth)
{
    struct ge_name parts;
    bool leaf = !tree->folder_count;
    ancestors[depth] = tree;
    for (size_t i = 0; i < tree->folder_count; i++)
        if (leaves->rules->leaves || !ge_name_parse(tree->folders[i].name, &parts))
            find_leaves(leaves, &tree->folders[i], ancestors, depth + 1);
    /* Dump files make a token, whatever else lies beside them. */
    for (size_t i = 0; i < tree->file_count && !leaf && !leaves->rules->leaves; i++)
        leaf = ge_name_parse(tree->files[i].name, &parts);
    if (!leaf)
        return;
    if (leaves->count == leaves->capacity) {
        size_t capacity = leaves->capacity ? leaves->capacity * 2 : 16;
        struct leaf *items = realloc(leaves->items, capacity * sizeof *items);
        leaves->failed = leaves->failed || !items;
        if (!items)
            return;
        leaves->items = items;
        leaves->capacity = capacity;
    }
    size_t up = leaves->several_devices && leaves->rules->in_place ? 3 : 1;
    leaves->items[leaves->count++] =
        (struct leaf){.tree = tree,
                      .group = depth >= up ? number_or_zero(ancestors[depth - up]->name) : 0,
                      .token = number_or_zero(tree->name),
                      .name = depth >= 2 ? ancestors[depth - 2]->name : NULL,
                      .device = depth >= 3 ? number_or_zero(ancestors[depth - 3]->name) : 0};
}

/* One folder of a time with several below it, or several folders: then those are devices. */
static bool has_several_devices(const struct tree *tree)
{
    if (tree->folder_count > 1)
        return true;
    for (size_t i = 0; i < tree->folder_count; i++)
        if (strlen(tree->folders[i].name) == 14 && number_of(tree->folders[i].name, 14) >= 0)
            return tree->folders[i].folder_count > 1;
    return false;
}

/* By group; within one in the order of paths, which is the order they came in. */
static int by_group(const void *a, const void *b)
{
    const struct leaf *left = a, *right = b;
    if (left->group != right->group)
        return left->group < right->group ? -1 : 1;
    return strcmp(left->tree->path, right->tree->path);
}

static int compare_models(const struct leaf *left, const struct leaf *right)
{
    if (left->device != right->device)
        return left->device < right->device ? -1 : 1;
    if (left->group != right->group)
        return left->group < right->group ? -1 : 1;
    return strverscmp(left->name ? left->name : "", right->name ? right->name : "");
}

static int by_model(const void *a, const void *b)
{
    const struct leaf *left = a, *right = b;
    int order = compare_models(left, right);
    return order ? order : strcmp(left->tree->path, right->tree->path);
}

static bool is_same_group(const struct leaf *a, const struct leaf *b, const struct air_rules *rules)
{
    return rules->in_place ? a->group == b->group : compare_models(a, b) == 0;
}

/* Lines "hash,original name" of mapping.csv; keys and values live in the arena. */
struct mapping {
    struct map map;
    const char **names;
    size_t count;
};

static bool read_mapping(struct mapping *mapping, const struct tree *tree, struct arena *arena)
{
    struct mapped in;
    const char *path = arena_printf(arena, "%s/mapping.csv", tree->path);
    if (!path)
        return false;
    if (mapped_open(&in, path, NULL))
        return true; /* there is none */
    const size_t size = (size_t)in.file.size;
    char *text = arena_copy(arena, (const char *)in.file.data, size);
    mapped_close(&in, PLUMB_OK, NULL);
    size_t lines = 1;
    for (size_t i = 0; text && i < size; i++)
        lines += text[i] == '\n';
    mapping->names = text ? arena_array(arena, lines, sizeof *mapping->names) : NULL;
    if (!mapping->names)
        return false;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        char *comma = strchr(line, ',');
        if (!comma)
            continue;
        *comma = '\0';
        uint64_t *place = map_put(&mapping->map, line, strlen(line), NULL);
        if (!place)
            return false;
        *place = mapping->count;
        mapping->names[mapping->count++] = comma + 1;
    }
    return true;
}

static bool is_skipped(const char *name, const struct air_rules *rules)
{
    static const char *const endings[] = {".txt", ".npy", ".bin"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && dot != name && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return !rules->literal && strcmp(name, "mapping.csv") == 0;
}

static uint64_t file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Makes op the one of its name, unless a larger one is there already. */
static bool enter_op(struct air_token *token, size_t number)
{
    struct air_op *op = &token->ops[number];
    bool added;
    uint64_t *place = map_put(&token->by_name, op->key, strlen(op->key), &added);
    if (!place)
        return false;
    if (added) {
        *place = number;
        return true;
    }
    /* The place in the order of the first stays, as does the first when both are equally large. */
    struct air_op *first = &token->ops[*place];
    if (file_size(op->path) > file_size(first->path)) {
        struct air_op larger = *op;
        *op = *first;
        *first = larger;
    }
    op->doubled = true;
    return true;
}

static bool add_odd(struct air_token *token, const struct tree_file *file, const char *why)
{
    token->odd[token->odd_count].path = file->path;
    token->odd[token->odd_count++].why = why;
    return true;
}

static uint64_t time_of(const struct ge_name *parts)
{
    int64_t time = number_of(parts->timestamp, parts->timestamp_length);
    return time < 0 ? 0 : (uint64_t)time;
}

static bool add_file(struct air_token *token, const struct tree_file *file,
                     const struct mapping *mapping, const struct air_rules *rules,
                     struct arena *arena)
{
    struct ge_name parts;
    const char *name = file->name;
    if (is_skipped(name, rules))
        return true;
    if (file->problem)
        return add_odd(token, file, file->problem);
    const uint64_t *mapped = map_get(&mapping->map, name, strlen(name));
    if (mapped)
        name = mapping->names[*mapped];
    if (!(rules->parse_name ? rules->parse_name : ge_name_parse)(name, &parts))
        return add_odd(token, file,
                       "its name is not that of a GE dump file, and mapping.csv does not give it "
                       "another");
    struct air_op *op = &token->ops[token->op_count];
    char *key = arena_copy(arena, parts.op, parts.op_length);
    if (key && !rules->literal)
        ge_name_spell(key);
    *op = (struct air_op){.name = arena_copy(arena, parts.op, parts.op_length),
                          .key = key,
                          .type = arena_copy(arena, name, parts.type_length),
                          .path = file->path,
                          .file = file->name,
                          .time = time_of(&parts)};
    return op->name && op->key && op->type && enter_op(token, token->op_count++);
}

/* Fills the token from leaves [first, end), which all belong to it or to other tokens. */
static void add_odd_folder(struct air_token *token, const struct tree *folder)
{
    struct ge_name parts;
    if (ge_name_parse(folder->name, &parts))
        add_odd(token, &(struct tree_file){.path = folder->path},
                "a folder, where its name is that of a GE dump file");
}

static bool fill_token(struct air_token *token, const struct leaf *leaves, size_t count,
                       const struct air_rules *rules, struct arena *arena)
{
    size_t files = 0;
    bool ok = true;
    for (size_t i = 0; i < count; i++)
        if (leaves[i].token == token->id)
            files += leaves[i].tree->file_count + leaves[i].tree->folder_count + 1;
    token->ops = arena_array(arena, files, sizeof *token->ops);
    token->odd = arena_array(arena, files, sizeof *token->odd);
    ok = token->ops && token->odd;
    for (size_t i = 0; i < count && ok; i++) {
        const struct tree *tree = leaves[i].tree;
        struct mapping mapping = {0};
        if (leaves[i].token != token->id)
            continue;
        if (tree->problem)
            add_odd(token, &(struct tree_file){.path = tree->path}, tree->problem);
        for (size_t k = 0; k < tree->folder_count; k++)
            add_odd_folder(token, &tree->folders[k]);
        ok = rules->literal || read_mapping(&mapping, tree, arena);
        for (size_t k = 0; k < tree->file_count && ok; k++)
            ok = add_file(token, &tree->files[k], &mapping, rules, arena);
        map_free(&mapping.map);
    }
    return ok;
}

static int by_token(const void *a, const void *b)
{
    const struct air_token *left = a, *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

static bool fill_group(struct air_group *group, const struct leaf *leaves, size_t count,
                       const struct air_rules *rules, struct arena *arena)
{
    group->name = leaves[0].name;
    group->device = leaves[0].device;
    group->tokens = arena_array(arena, count, sizeof *group->tokens);
    for (size_t i = 0; i < count && group->tokens; i++) {
        if (air_find_token(group, leaves[i].token))
            continue;
        struct air_token *token = &group->tokens[group->token_count++];
        token->id = leaves[i].token;
        if (!fill_token(token, leaves, count, rules, arena))
            return false;
    }
    if (group->tokens && !rules->in_place)
        qsort(group->tokens, group->token_count, sizeof *group->tokens, by_token);
    return group->tokens != NULL;
}

static bool is_empty(const struct air_group *group)
{
    for (size_t i = 0; i < group->token_count; i++)
        if (group->tokens[i].op_count || group->tokens[i].odd_count)
            return false;
    return true;
}

enum plumb_code air_read_ge(struct air_dump *dump, const struct tree *tree,
                            const struct air_rules *rules, struct arena *arena,
                            struct plumb_error *err)
{
    const struct tree *ancestors[80]; /* more than tree_read goes down */
    struct leaves leaves = {.several_devices = has_several_devices(tree), .rules = rules};
    *dump = (struct air_dump){.root = tree->path};
    find_leaves(&leaves, tree, ancestors, 0);
    bool ok = !leaves.failed;
    if (ok) {
        qsort(leaves.items, leaves.count, sizeof *leaves.items,
              rules->in_place ? by_group : by_model);
        dump->groups = arena_array(arena, leaves.count, sizeof *dump->groups);
        ok = dump->groups != NULL;
    }
    for (size_t first = 0, end; first < leaves.count && ok; first = end) {
        for (end = first;
             end < leaves.count && is_same_group(&leaves.items[first], &leaves.items[end], rules);)
            end++;
        ok = fill_group(&dump->groups[dump->count++], leaves.items + first, end - first, rules,
                        arena);
        /* A folder of something else, or of nothing, is no graph. */
        if (ok && !rules->in_place && is_empty(&dump->groups[dump->count - 1]))
            dump->count--; /* an empty map holds nothing */
    }
    free(leaves.items);
    return ok ? PLUMB_OK : plumb_no_memory(err);
}
