/* Cutting a tensor's name into module path, class, call and role. */
#include "pair/name.h"

#include <string.h>

bool name_is_number(const char *token)
{
    return *token && token[strspn(token, "0123456789")] == '\0';
}

/* Whether both hold the same digits in the same order. */
static bool same_digits(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    for (;;) {
        a += strcspn(a, digits);
        b += strcspn(b, digits);
        if (*a != *b)
            return false;
        if (!*a)
            return true;
        a++;
        b++;
    }
}

bool name_classes_agree(const struct name *a, const struct name *b)
{
    if (a->class == NAME_NONE || b->class == NAME_NONE || a->call != NAME_NONE ||
        b->call != NAME_NONE)
        return true;
    return same_digits(a->tokens[a->class], b->tokens[b->class]);
}

static bool is_one_of(const char *token, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(token, words[i]) == 0)
            return true;
    return false;
}

bool name_is_wrapper(const char *token, size_t length)
{
    static const char *const words[] = {"module", "_orig_mod", "_forward_module",
                                        "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && memcmp(words[i], token, length) == 0)
            return true;
    return false;
}

/* The part that a tensor plays in a call: "input", "output", "param", "buffer", or NULL for no such
 * word. */
static const char *kind_of(const char *word)
{
    static const char *const inputs[] = {"input", "inputs"};
    static const char *const outputs[] = {"output", "outputs"};
    static const char *const params[] = {"param", "params", "parameter", "parameters"};
    if (is_one_of(word, inputs, 2))
        return "input";
    static const char *const buffers[] = {"buffer", "buffers"};
    if (is_one_of(word, outputs, 2))
        return "output";
    if (is_one_of(word, buffers, 2))
        return "buffer";
    return is_one_of(word, params, 4) ? "param" : NULL;
}

struct split {
    char *tokens[NAME_MAX_TOKENS];
    bool capital[NAME_MAX_TOKENS]; /* as a class is written */
    int count;
};

/* Cuts text, a copy that is ours to change. False when there are too many tokens. */
static bool cut(struct split *split, char *text, const char *separators)
{
    split->count = 0;
    while (*(text += strspn(text, separators))) {
        size_t length = strcspn(text, separators);
        bool last = text[length] == '\0';
        text[length] = '\0';
        bool capital = *text >= 'A' && *text <= 'Z';
        for (char *c = text; *c; c++)
            if (*c >= 'A' && *c <= 'Z')
                *c = (char)(*c - 'A' + 'a');
        if (last || !name_is_wrapper(text, strlen(text))) {
            if (split->count == NAME_MAX_TOKENS)
                return false;
            split->capital[split->count] = capital;
            split->tokens[split->count++] = text;
        }
        if (last)
            break;
        text += length + 1;
    }
    return true;
}

struct role {
    const char *kind; /* NULL: a leaf such as weight, whose rest is its name */
    bool backward;
    bool marked; /* a word says that this was dumped from a call: then there may be a class */
    int start;   /* the first token that belongs to it */
    int rest;    /* the first token after its words */
};

static bool starts_call(const char *token, bool *backward, const char **tail)
{
    *backward = strncmp(token, "backward", 8) == 0;
    if (!*backward && strncmp(token, "forward", 7) != 0)
        return false;
    *tail = token + (*backward ? 8 : 7);
    return true;
}

static struct role find_role(const struct split *split)
{
    struct role role = {0};
    int count = split->count;
    for (int i = count - 1; i >= 0; i--) {
        const char *tail;
        if (!starts_call(split->tokens[i], &role.backward, &tail))
            continue;
        role.start = i;
        role.marked = true;
        if (*tail == '_' && (role.kind = kind_of(tail + 1)) != NULL) {
            role.rest = i + 1;
            return role;
        }
        /* forward.0.input.1, where 0 is the call */
        int next = i + 1 < count && name_is_number(split->tokens[i + 1]) ? i + 2 : i + 1;
        if (*tail == '\0' && next < count && (role.kind = kind_of(split->tokens[next])) != NULL) {
            role.rest = next + 1;
            return role;
        }
    }
    role = (struct role){0};
    int i = count - 1;
    while (i > 0 && name_is_number(split->tokens[i]))
        i--;
    role.kind = kind_of(split->tokens[i]);
    if (role.kind && strcmp(role.kind, "param") != 0) {
        role.start = i;
        role.rest = i + 1;
    } else {
        role.kind = NULL;
        role.start = role.rest = count - 1;
    }
    return role;
}

/* A parameter's role is its own name, so that a dump and a checkpoint agree on it. */
static const char *spell_role(struct arena *arena, const struct split *split,
                              const struct role *role)
{
    bool leaf = !role->kind || (strcmp(role->kind, "param") == 0 && role->rest < split->count);
    const char *text =
        arena_printf(arena, "%s%s", role->backward ? "backward." : "", leaf ? "" : role->kind);
    for (int i = role->rest; text && i < split->count; i++)
        text = arena_printf(arena, "%s%s%s", text, leaf && i == role->rest ? "" : ".",
                            split->tokens[i]);
    return text;
}

bool name_parse(struct name *name, struct arena *arena, const char *text)
{
    *name = (struct name){.count = NAME_NONE, .class = NAME_NONE, .call = NAME_NONE};
    /* A name without any other separator may have been flattened with underscores. */
    const char *separators = strpbrk(text, "./") ? "./\\:[] " : "./\\:[] _";
    char *copy = arena_copy(arena, text, strlen(text));
    if (!copy)
        return false;
    struct split split;
    if (!cut(&split, copy, separators) || !split.count)
        return true;

    struct role role = find_role(&split);
    name->role = spell_role(arena, &split, &role);
    name->tokens = arena_array(arena, (size_t)role.start, sizeof *name->tokens);
    if (!name->role || !name->tokens)
        return false;
    for (int i = 0; i < role.start; i++)
        name->tokens[i] = split.tokens[i];
    name->count = name->path = role.start;
    name->kind = role.kind;
    name->backward = role.backward;

    int last = role.start - 1;
    if (!role.marked || last < 0)
        return true;
    if (last > 0 && name_is_number(split.tokens[last]) && split.capital[last - 1]) {
        name->call = last;
        name->class = name->path = last - 1;
    } else if (split.capital[last]) {
        name->class = name->path = last;
    }
    return true;
}
