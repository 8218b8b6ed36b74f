/* Where calls are, and which belong together. */
#define _GNU_SOURCE
#include "pair/layer.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

struct text {
    const char *at;
    size_t length;
};

static bool text_is(struct text text, const char *word)
{
    return strlen(word) == text.length && memcmp(text.at, word, text.length) == 0;
}

/* Cuts the last field off. */
static struct text cut_field(struct text *rest)
{
    const char *dot = rest->length ? memrchr(rest->at, '.', rest->length) : NULL;
    struct text field = *rest;
    if (dot)
        field = (struct text){dot + 1, (size_t)(rest->at + rest->length - dot - 1)};
    rest->length = dot ? (size_t)(dot - rest->at) : 0;
    return field;
}

/* What the name of a call says. */
struct parts {
    struct text direction;
    struct text path; /* of a module */
    struct text name; /* its class, or the function */
    bool module;
};

static bool is_direction(struct text field)
{
    return text_is(field, "forward") || text_is(field, "backward") ||
           text_is(field, "parameters_grad");
}

/* "Cell.a.b.Class.forward.0", "Cell.a.b.Class.parameters_grad", "Mint.add.0.forward". */
static bool split(struct parts *parts, const char *api)
{
    struct text rest = {api, strlen(api)};
    struct text last = cut_field(&rest);
    *parts =
        (struct parts){.module = strncmp(api, "Module.", 7) == 0 || strncmp(api, "Cell.", 5) == 0};
    parts->path.at = api;
    parts->direction = last;
    if (!is_direction(last)) {
        parts->direction = cut_field(&rest);
        if (!is_direction(parts->direction))
            return false;
    } else if (!parts->module) {
        cut_field(&rest); /* the number */
    }
    parts->name = cut_field(&rest);
    const char *dot = memchr(api, '.', rest.length);
    if (dot)
        parts->path = (struct text){dot + 1, (size_t)(rest.at + rest.length - dot - 1)};
    return parts->name.length && rest.length;
}

/* The function of the framework that user code called: the outermost of the innermost frames that
 * are the framework's. Calls of modules are no news. */
static struct text framework_function(const char *const *stack)
{
    static const char *const folders[] = {"site-packages/torch/", "site-packages/mindspore/",
                                          "package/torch/", "package/mindspore/"};
    static const char *const modules[] = {"forward", "construct", "backward"};
    const char *line = NULL;
    for (const char *const *frame = stack; frame && *frame; frame++) {
        bool inside = false;
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
            inside |= strstr(*frame, folders[i]) != NULL;
        if (!inside)
            break;
        line = *frame;
    }
    const char *in = line ? strstr(line, ", in ") : NULL;
    if (!in)
        return (struct text){"", 0};
    struct text name = {in + 5, strcspn(in + 5, ", \n")};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (text_is(name, modules[i]))
            name.length = 0;
    if (*name.at == '_')
        name.length = 0;
    return name;
}

struct scoping {
    struct arena arena;
    struct map apis;    /* place and name of a call to its number */
    struct map classes; /* paths of modules to their number, for the class */
    const struct layer_calls *calls;
    struct text *class;              /* by call */
    const struct layer_rules *rules; /* NULL: names stay */
    struct buf text;
};

static bool survey(struct scoping *scoping)
{
    const struct layer_calls *calls = scoping->calls;
    scoping->class = arena_array(&scoping->arena, calls->count, sizeof *scoping->class);
    if (!scoping->class)
        return false;
    for (size_t i = 0; i < calls->count; i++) {
        struct parts parts;
        const char *key =
            arena_printf(&scoping->arena, "%s%s", calls->calls[i].api, calls->calls[i].place);
        uint64_t *place = key ? map_put(&scoping->apis, key, strlen(key), NULL) : NULL;
        if (!place)
            return false;
        *place = i;
        if (!split(&parts, calls->calls[i].api) || !parts.module)
            continue;
        scoping->class[i] = parts.name;
        place = map_put(&scoping->classes, parts.path.at, parts.path.length, NULL);
        if (!place)
            return false;
        *place = i;
    }
    return true;
}

/* The number of bytes at the start of `rest` that a rule of the class renames, and to what. */
static size_t find_rule(struct scoping *scoping, struct text class, struct text rest,
                        const char **to)
{
    const struct layer_rules *rules = scoping->rules;
    size_t longest = 0, pieces = 0;
    char key[512];
    if (!rules || class.length >= sizeof key - 1)
        return 0;
    memcpy(key, class.at, class.length);
    key[class.length] = '/';
    for (size_t end = 1; end <= rest.length && pieces < rules->pieces; end++) {
        if (end < rest.length && rest.at[end] != '.')
            continue;
        pieces++;
        if (class.length + 1 + end > sizeof key)
            break;
        memcpy(key + class.length + 1, rest.at, end);
        const uint64_t *place = map_get(&rules->names, key, class.length + 1 + end);
        if (place) {
            longest = end;
            *to = rules->to[*place];
        }
    }
    return longest;
}

/* Appends the path as the golden side has it. */
static void add_path(struct scoping *scoping, struct text path)
{
    for (size_t at = 0; at < path.length;) {
        struct text class = {"TopLayer", strlen("TopLayer")};
        if (at) {
            const uint64_t *holder = map_get(&scoping->classes, path.at, at - 1);
            class = holder ? scoping->class[*holder] : (struct text){"", 0};
        }
        struct text rest = {path.at + at, path.length - at};
        const char *to = NULL;
        size_t length = find_rule(scoping, class, rest, &to);
        if (length) {
            buf_text(&scoping->text, to);
        } else {
            const char *dot = memchr(rest.at, '.', rest.length);
            length = dot ? (size_t)(dot - rest.at) : rest.length;
            buf_append(&scoping->text, rest.at, length);
        }
        buf_text(&scoping->text, ".");
        at += length + 1;
    }
}

/* The forward call of a backward one, where there is one: it has a stack and a parent. */
static const struct layer_call *origin_of(struct scoping *scoping, const struct layer_call *call,
                                          const struct parts *parts)
{
    if (!text_is(parts->direction, "backward"))
        return call;
    const char *name =
        arena_printf(&scoping->arena, "%.*sforward%s%s", (int)(parts->direction.at - call->api),
                     call->api, parts->direction.at + parts->direction.length, call->place);
    const uint64_t *place = name ? map_get(&scoping->apis, name, strlen(name)) : NULL;
    return place ? &scoping->calls->calls[*place] : call;
}

/* Scope, direction and place of a call in the text. What is no call is known by its name. */
static void describe(struct scoping *scoping, const struct layer_call *call)
{
    struct parts parts, parent;
    scoping->text.size = 0;
    if (!split(&parts, call->api)) {
        buf_printf(&scoping->text, "=%s%s", call->api, call->place);
        return;
    }
    if (parts.module) {
        add_path(scoping, parts.path);
    } else {
        const struct layer_call *origin = origin_of(scoping, call, &parts);
        if (origin->parent && split(&parent, origin->parent) && parent.module)
            add_path(scoping, parent.path);
        struct text function = framework_function(origin->stack);
        buf_text(&scoping->text, "/"); /* a function is no module */
        buf_append(&scoping->text, function.at, function.length);
        buf_text(&scoping->text, "/");
        buf_append(&scoping->text, parts.name.at, parts.name.length);
    }
    buf_text(&scoping->text, "/");
    buf_append(&scoping->text, parts.direction.at, parts.direction.length);
    buf_text(&scoping->text, call->place);
}

bool layer_pair(size_t *partner, const struct layer_calls *target, const struct layer_calls *golden,
                const struct layer_rules *rules)
{
    struct scoping sides[2] = {{.calls = target, .rules = rules}, {.calls = golden}};
    struct map scopes = {0}; /* of golden calls, to the first that is free, + 1 */
    size_t *next = calloc(golden->count + 1, sizeof *next);
    bool done = next && survey(&sides[0]) && survey(&sides[1]);
    for (size_t i = golden->count; done && i-- > 0;) {
        describe(&sides[1], &golden->calls[i]);
        const char *scope = sides[1].text.failed ? NULL
                                                 : arena_copy(&sides[1].arena, sides[1].text.data,
                                                              sides[1].text.size);
        uint64_t *first = scope ? map_put(&scopes, scope, sides[1].text.size, NULL) : NULL;
        done = first != NULL;
        if (done) {
            next[i] = *first;
            *first = i + 1;
        }
    }
    for (size_t i = 0; done && i < target->count; i++) {
        partner[i] = LAYER_NONE;
        describe(&sides[0], &target->calls[i]);
        done = !sides[0].text.failed;
        uint64_t *first = done ? map_get(&scopes, sides[0].text.data, sides[0].text.size) : NULL;
        if (first && *first) {
            partner[i] = *first - 1;
            *first = next[partner[i]];
        }
    }
    for (int i = 0; i < 2; i++) {
        map_free(&sides[i].apis);
        map_free(&sides[i].classes);
        buf_free(&sides[i].text);
        arena_free(&sides[i].arena);
    }
    map_free(&scopes);
    free(next);
    return done;
}

const char *layer_suffix(const char *api, const char *row)
{
    for (const char *dot = api; (dot = strchr(dot, '.')); dot++) {
        row = strchr(row, '.');
        if (!row++)
            return NULL;
    }
    return strchr(row, '.');
}
