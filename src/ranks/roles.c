/* Roles and peers of communication calls, read from their recorded arguments. */
#include "ranks/roles.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum key { KEY_OTHER, KEY_SRC, KEY_DST, KEY_GROUP_SRC, KEY_GROUP_DST, KEY_GROUP, KEY_POSITION };

/* What the arguments of a call say about the exchange. */
struct call {
    const char *op;
    size_t op_length;
    bool has_src, has_dst, has_first;
    int64_t src, dst;
    int64_t first; /* number among the positional arguments */
};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Which argument a row is; depth 1 only. */
static enum key key_of(const struct dump_row *row)
{
    static const struct {
        const char *name;
        enum key key;
    } keys[] = {{"src", KEY_SRC},
                {"dst", KEY_DST},
                {"group_src", KEY_GROUP_SRC},
                {"group_dst", KEY_GROUP_DST},
                {"group", KEY_GROUP}};
    const char *dot = strrchr(row->path_name, '.');
    const char *last = dot ? dot + 1 : row->path_name;
    if (row->section != DUMP_INPUT || row->depth != 1 || !row->type)
        return KEY_OTHER;
    if (isdigit((unsigned char)*last))
        return KEY_POSITION;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(last, keys[i].name) == 0)
            return keys[i].key;
    return KEY_OTHER;
}

static bool number_of(const char *text, int64_t *number)
{
    char *end;
    if (!text || !*text)
        return false;
    *number = strtoll(text, &end, 10);
    return !*end;
}

static void add_number(struct roles *roles, int64_t number)
{
    buf_append(&roles->numbers, &number, sizeof number);
}

/* "[0, 1]" */
static void add_list(struct roles *roles, const char *text)
{
    while (text && *text) {
        char *end;
        long long number = strtoll(text, &end, 10);
        if (end != text)
            add_number(roles, number);
        text = end != text ? end : text + 1;
    }
}

/* The n-th rank of a group, n itself when there is no such list. */
static int64_t rank_in_group(const char *text, int64_t n)
{
    for (int64_t i = 0; text && *text;) {
        char *end;
        long long number = strtoll(text, &end, 10);
        if (end != text && i++ == n)
            return number;
        text = end != text ? end : text + 1;
    }
    return n;
}

static const char *group_of(const struct dump_tree *tree, const struct dump_api *api)
{
    if (api->group)
        return api->group;
    for (size_t i = api->first; i < api->first + api->count; i++)
        if (tree->rows[i].section == DUMP_INPUT && tree->rows[i].group_ranks)
            return tree->rows[i].group_ranks;
    return NULL;
}

static bool is_point_to_point(const struct call *call)
{
    size_t length = call->op_length;
    return (length >= 4 && (!memcmp(call->op, "send", 4) || !memcmp(call->op, "recv", 4))) ||
           (length == 5 && (!memcmp(call->op, "isend", 5) || !memcmp(call->op, "irecv", 5)));
}

static void read_call(struct roles *roles, struct call *call, const struct dump_tree *tree,
                      const struct dump_api *api)
{
    const char *group = group_of(tree, api);
    bool plain = roles->rules->plain_roles;
    for (size_t i = api->first; i < api->first + api->count; i++) {
        const struct dump_row *row = &tree->rows[i];
        enum key key = key_of(row);
        int64_t number;
        if (row->p2p_peer && row->section == DUMP_INPUT && !plain &&
            number_of(row->p2p_peer, &number))
            add_number(roles, number);
        if (key == KEY_OTHER || !number_of(row->value, &number))
            continue;
        if (!plain && (key == KEY_GROUP_SRC || key == KEY_GROUP_DST)) {
            number = rank_in_group(group, number);
            key = key == KEY_GROUP_SRC ? KEY_SRC : KEY_DST;
        }
        if (key == KEY_SRC) {
            call->has_src = true;
            call->src = number;
        } else if (key == KEY_DST) {
            call->has_dst = true;
            call->dst = number;
        } else if (key == KEY_POSITION && strcmp(row->type, "int") == 0 && !call->has_first) {
            call->has_first = true;
            call->first = number;
        }
    }
}

static enum graph_role direction_of(const struct call *call, bool plain)
{
    if (!plain && call->op_length == 6 && memcmp(call->op, "reduce", 6) == 0)
        return GRAPH_TARGET;
    return graph_direction(call->op, call->op_length);
}

static void add_peers(struct roles *roles, const struct call *call, const struct dump_tree *tree,
                      const struct dump_api *api)
{
    bool plain = roles->rules->plain_roles;
    if (call->has_src)
        add_number(roles, call->src);
    if (call->has_dst)
        add_number(roles, call->dst);
    bool directed = direction_of(call, plain) != GRAPH_LINK;
    for (size_t i = api->first; i < api->first + api->count; i++) {
        const struct dump_row *row = &tree->rows[i];
        enum key key = key_of(row);
        int64_t number;
        if (key == KEY_POSITION && !call->has_src && !call->has_dst &&
            strcmp(row->type, "int") == 0 && number_of(row->value, &number) &&
            (plain || (directed && number == call->first)))
            add_number(roles, number);
    }
    /* A send goes to one rank, not to its whole group. */
    if (!plain && is_point_to_point(call) && roles->numbers.size)
        return;
    for (size_t i = api->first; i < api->first + api->count; i++) {
        const struct dump_row *row = &tree->rows[i];
        if (row->section == DUMP_INPUT && row->depth == 1 && row->group_ranks &&
            (!plain || key_of(row) == KEY_GROUP))
            add_list(roles, row->group_ranks);
    }
}

static enum graph_role role_of(const struct call *call, int64_t rank, bool plain)
{
    if (call->has_src)
        return call->src == rank ? GRAPH_SOURCE : GRAPH_TARGET;
    if (call->has_dst)
        return call->dst == rank ? GRAPH_TARGET : GRAPH_SOURCE;
    enum graph_role role = direction_of(call, plain);
    if (role == GRAPH_LINK || !call->has_first)
        return GRAPH_LINK;
    return (role == GRAPH_SOURCE) == (call->first == rank) ? GRAPH_SOURCE : GRAPH_TARGET;
}

/* By names and texts alone: whoever names a source is a target, whoever names a destination is a
 * source, and rank 0 is nobody's peer. */
static enum graph_role read_texts(struct roles *roles, const struct dump_tree *tree,
                                  const struct dump_api *api)
{
    enum graph_role role = GRAPH_LINK;
    for (size_t i = api->first; i < api->first + api->count; i++) {
        const struct dump_row *row = &tree->rows[i];
        int64_t number;
        if (row->section != DUMP_INPUT || strstr(row->name, ".kwargs."))
            continue;
        bool src = strstr(row->name, "src") != NULL, dst = strstr(row->name, "dst") != NULL;
        char number_text[NUMBER_BYTES];
        const char *text = dump_value_text(&row->statistic[DUMP_MAX], number_text);
        if (src)
            role = GRAPH_TARGET;
        else if (dst && role == GRAPH_LINK)
            role = GRAPH_SOURCE;
        if (src || dst) {
            if (number_of(text, &number) && number)
                add_number(roles, number);
        } else if (ends_with(row->name, ".group")) {
            if (text && *text == '[')
                add_list(roles, text);
        } else if (row->p2p_peer && number_of(row->p2p_peer, &number)) {
            add_number(roles, number);
        }
    }
    return role;
}

static int by_value(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

/* The numbers that were added, each once, in order; and none are there any more. */
static enum plumb_code keep_numbers(struct roles *roles, const int64_t **list, size_t *n)
{
    if (roles->numbers.failed)
        return PLUMB_E_NOMEM;
    size_t count = roles->numbers.size / sizeof(int64_t), kept = 0;
    roles->numbers.size = 0;
    *n = 0;
    if (!count)
        return PLUMB_OK;
    int64_t *numbers = (int64_t *)(void *)roles->numbers.data;
    qsort(numbers, count, sizeof *numbers, by_value);
    for (size_t i = 0; i < count; i++)
        if (!kept || numbers[kept - 1] != numbers[i])
            numbers[kept++] = numbers[i];
    size_t size = kept * sizeof *numbers;
    uint64_t *place = map_get(&roles->lists, roles->numbers.data, size);
    if (!place) {
        int64_t *copy = arena_array(roles->arena, kept, sizeof *copy);
        if (!copy)
            return PLUMB_E_NOMEM;
        memcpy(copy, numbers, size);
        place = map_put(&roles->lists, (const char *)copy, size, NULL);
        if (!place)
            return PLUMB_E_NOMEM;
        *place = (uint64_t)(uintptr_t)copy;
    }
    *list = (const int64_t *)(uintptr_t)*place;
    *n = kept;
    return PLUMB_OK;
}

/* Texts of groups are shared: thousands of calls have one that names thousands of ranks. */
static enum plumb_code read_group(struct roles *roles, struct graph_node *node, const char *text)
{
    if (text && text != roles->group_text) {
        add_list(roles, text);
        if (keep_numbers(roles, &roles->group, &roles->group_count))
            return PLUMB_E_NOMEM;
        roles->group_text = text;
    }
    node->group = text ? roles->group : NULL;
    node->group_count = text ? roles->group_count : 0;
    return PLUMB_OK;
}

enum plumb_code roles_describe(struct roles *roles, struct graph_node *node,
                               const struct dump_tree *tree, const struct dump_api *api,
                               int64_t rank)
{
    *node = (struct graph_node){.name = api->name, .order = -1};
    node->communication = graph_is_communication(api->name);
    if (!node->communication)
        return PLUMB_OK;
    roles->numbers.size = 0;
    if (roles->rules->text_roles) {
        node->role = read_texts(roles, tree, api);
    } else {
        struct call call = {0};
        call.op = graph_op(api->name, &call.op_length);
        read_call(roles, &call, tree, api);
        if (read_group(roles, node, group_of(tree, api)))
            return PLUMB_E_NOMEM;
        node->order = api->order;
        read_call(roles, &call, tree, api);
        node->role = role_of(&call, rank, roles->rules->plain_roles);
        if (node->group_count && !roles->rules->plain_roles &&
            !graph_is_point_to_point(call.op, call.op_length)) {
            roles->numbers.size = 0; /* all of the group are peers */
            node->peers = node->group;
            node->peer_count = node->group_count;
            return PLUMB_OK;
        }
        add_peers(roles, &call, tree, api);
    }
    return keep_numbers(roles, &node->peers, &node->peer_count);
}

void roles_free(struct roles *roles)
{
    buf_free(&roles->numbers);
    map_free(&roles->lists);
    *roles = (struct roles){0};
}
