/* Files of layouts, and what was recorded of DTensors and process groups: read, and laid out over
 * ranks. */
#include "pair/shards_dims.h"
#include "pair/shards_family.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 4 };

/* A layout must hold what it promises: every slot and term within bounds, shapes or a refusal. */
static void use(const struct shards_layout *layout, struct arena *arena)
{
    static const float numbers[4096];
    static const int64_t shape[] = {8, 12, 2};
    struct plumb_tensor part;
    const struct plumb_tensor *parts[PARTS] = {&part, &part, &part, &part};
    struct shards_plan plan;
    char text[SHARDS_TEXT];
    const int64_t ranks[PARTS] = {0, 1, 2, 3};
    shards_text(layout, ranks, text, sizeof text);
    if (plumb_tensor_init(&part, PLUMB_F32, 3, shape, NULL))
        abort();
    part.data = numbers;
    if (shards_plan(&plan, arena, layout, parts, NULL) || plan.count > 100000)
        return;
    float *whole = calloc(plan.count + 1, sizeof(double));
    for (unsigned p = 0; whole && p < PARTS; p++) {
        for (uint64_t i = 0; i < part.count; i++)
            if (shards_element(&plan, p, &part, i) >= plan.count)
                abort();
        shards_put(&plan, layout, p, &part, whole, NULL);
    }
    free(whole);
}

static void read_recorded(const uint8_t *data, size_t size)
{
    static const int64_t ranks[PARTS] = {0, 1, 2, 3};
    struct arena arena = {0};
    struct shards_layout *layout;
    char *text = arena_copy(&arena, (const char *)data, size);
    if (text && !shards_recorded(&layout, &arena, text, ranks, PARTS, NULL))
        use(layout, &arena);
    arena_free(&arena);
}

static void read_rules(const uint8_t *data, size_t size)
{
    static const int64_t ranks[PARTS] = {0, 1, 2, 3};
    struct arena arena = {0};
    struct shards_rules rules = {0};
    if (!shards_rules_parse(&rules, &arena, data, size, NULL)) {
        shards_rules_find(&rules, 0, "layers.0.qkv.weight");
        for (size_t i = 0; i < rules.count && i < 16; i++) {
            struct shards_layout *layout;
            if (!shards_dims_layout(&layout, &arena, &rules.list[i].dims, &rules.mesh[i % 2], ranks,
                                    PARTS, rules.list[i].dims.ndim, NULL))
                use(layout, &arena);
        }
    }
    shards_rules_free(&rules);
    arena_free(&arena);
}

/* A group on each line. */
static void read_groups(const uint8_t *data, size_t size)
{
    enum { RANKS = 8, LINES = 32 };
    static const int64_t ranks[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct arena arena = {0};
    struct shards_families families;
    const char *lines[LINES];
    size_t count = 0;
    char *text = arena_copy(&arena, (const char *)data, size);
    for (char *line = text; line && count < LINES; count++) {
        lines[count] = line;
        line = strchr(line, '\n');
        if (line)
            *line++ = '\0';
    }
    if (!shards_families(&families, &arena, lines, count, ranks, RANKS))
        abort();
    for (size_t i = 0; i < families.count; i++)
        for (unsigned r = 0; r < RANKS; r++)
            if (families.list[i].place[r] >= families.list[i].size || !families.list[i].group[r])
                abort();
    arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_rules(data, size);
    read_recorded(data, size);
    read_groups(data, size);
    return 0;
}
