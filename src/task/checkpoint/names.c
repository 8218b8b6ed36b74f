/* Older names of Megatron's weights made new, and what they say of layers and cuts. */
#define _GNU_SOURCE
#include "task/checkpoint/names.h"

#include <inttypes.h>
#include <string.h>

struct replacement {
    const char *from, *to;
};

/* Older names, in the order in which they are replaced. */
static const struct replacement core_names[] = {
    {"self_attention.linear_qkv.layer_norm_", "input_layernorm."},
    {"language_model.", ""},
    {"encoder", "decoder"},
    {".input_norm.", ".input_layernorm."},
    {"query_key_value", "linear_qkv"},
    {".dense.", ".linear_proj."},
    {"post_attention_norm", "pre_mlp_layernorm"},
    {"dense_h_to_4h", "linear_fc1"},
    {"dense_4h_to_h", "linear_fc2"},
    {"mlp.local_experts", "mlp.experts.local_experts"},
    {"final_norm", "final_layernorm"},
    {"word_embeddings_for_head", "output_layer"},
};

static const struct replacement aliases[] = {
    {"mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm."},
    {"post_attention_layernorm", "pre_mlp_layernorm"},
};

/* All occurrences of one text by another, from left to right. */
static const char *replace(struct arena *arena, const char *name, const struct replacement *rule)
{
    size_t from = strlen(rule->from), to = strlen(rule->to), count = 0;
    for (const char *at = name; (at = strstr(at, rule->from)); at += from)
        count++;
    if (!count)
        return name;
    size_t length = strlen(name);
    char *out = arena_alloc(arena, length - count * from + count * to + 1);
    if (!out)
        return NULL;
    char *end = out;
    for (const char *at; (at = strstr(name, rule->from)); name = at + from) {
        memcpy(end, name, (size_t)(at - name));
        end += at - name;
        memcpy(end, rule->to, to);
        end += to;
    }
    memcpy(end, name, strlen(name) + 1);
    return out;
}

const char *names_to_core(struct arena *arena, const char *name)
{
    for (size_t i = 0; name && i < sizeof core_names / sizeof *core_names; i++)
        name = replace(arena, name, &core_names[i]);
    return name;
}

const char *names_alias(struct arena *arena, const char *name)
{
    const char *alias = name;
    for (size_t i = 0; alias && i < sizeof aliases / sizeof *aliases; i++)
        alias = replace(arena, alias, &aliases[i]);
    return alias == name ? NULL : alias;
}

static bool contains_any(const char *name, const char *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

enum checkpoint_join names_join(const char *name, bool gated,
                                const struct checkpoint_profile *rules)
{
    static const char *const rows[] = {"linear_qkv", "linear_fc1", "word_embeddings.weight",
                                       "output_layer.weight"};
    static const char *const columns[] = {"linear_fc2.weight", "linear_proj.weight"};
    /* The norm that is fused with a layer is whole in every part. */
    if (!rules->plain_cuts && strstr(name, ".layer_norm_"))
        return CKPT_WHOLE;
    if (contains_any(name, rows, sizeof rows / sizeof *rows))
        return gated && !rules->plain_cuts && strstr(name, "linear_fc1") ? CKPT_GATED : CKPT_AXIS0;
    if (contains_any(name, columns, sizeof columns / sizeof *columns))
        return CKPT_AXIS1;
    return CKPT_WHOLE;
}

/* Digits at name[at]: at least one, and not more than fit. */
static bool read_number(const char *name, size_t at, struct names_index *index)
{
    *index = (struct names_index){.at = at};
    for (const char *c = name + at; *c >= '0' && *c <= '9' && index->length < 9; c++) {
        index->value = index->value * 10 + (*c - '0');
        index->length++;
    }
    return index->length > 0;
}

static bool find_index(const char *name, const char *before, const char *after,
                       struct names_index *index)
{
    for (const char *at = name; (at = strstr(at, before)); at++) {
        if (read_number(name, (size_t)(at - name) + strlen(before), index) &&
            strncmp(name + index->at + index->length, after, strlen(after)) == 0)
            return true;
    }
    return false;
}

bool names_layer(const char *name, struct names_index *index)
{
    return find_index(name, "layers.", ".", index);
}

bool names_expert(const char *name, const struct checkpoint_profile *rules,
                  struct names_index *index)
{
    /* Grouped layers count their experts at the end: experts.linear_fc1.weight3. */
    static const char *const grouped[] = {"experts.linear_fc1.weight", "experts.linear_fc1.bias",
                                          "experts.linear_fc2.weight", "experts.linear_fc2.bias"};
    if (find_index(name, "experts.", ".", index))
        return true;
    for (size_t i = 0; !rules->plain_experts && i < sizeof grouped / sizeof *grouped; i++)
        if (find_index(name, grouped[i], "", index) && !name[index->at + index->length])
            return true;
    return false;
}

const char *names_renumber(struct arena *arena, const char *name, const struct names_index *index,
                           int64_t value)
{
    if (value == index->value)
        return name;
    return arena_printf(arena, "%.*s%" PRId64 "%s", (int)index->at, name, value,
                        name + index->at + index->length);
}
