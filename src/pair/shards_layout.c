/* Layouts as such: made, asked, and told to people. */
#include "pair/shards.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct shards_layout *shards_replica(struct arena *arena, unsigned parts)
{
    struct shards_layout *layout = arena_alloc(arena, sizeof *layout);
    if (!layout)
        return NULL;
    layout->terms = 1;
    layout->parts = parts;
    layout->slot = arena_array(arena, parts, sizeof *layout->slot);
    layout->term = arena_array(arena, parts, sizeof *layout->term);
    return layout->slot && layout->term ? layout : NULL;
}

double shards_scale(const struct shards_layout *layout)
{
    const unsigned terms = layout->reduce == SHARDS_MEAN ? layout->terms : 1;
    return 1.0 / ((double)terms * (layout->divisor ? layout->divisor : 1));
}

unsigned shards_first(const struct shards_layout *layout, unsigned slot, unsigned term)
{
    unsigned p = 0;
    while (p < layout->parts && (layout->slot[p] != slot || layout->term[p] != term))
        p++;
    return p;
}

unsigned shards_twin(const struct shards_layout *layout, unsigned part)
{
    unsigned twin = layout->parts, found = 0;
    for (unsigned p = 0; p < layout->parts; p++)
        if (p != part && layout->slot[p] == layout->slot[part] &&
            layout->term[p] == layout->term[part]) {
            twin = p;
            found++;
        }
    return found == 1 ? twin : layout->parts;
}

struct writing {
    char *text;
    size_t size, used;
};

static void put(struct writing *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writing *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const size_t room = w->used < w->size ? w->size - w->used : 0;
    const int length = vsnprintf(room ? w->text + w->used : NULL, room, format, args);
    va_end(args);
    w->used += length > 0 ? (size_t)length : 0;
}

static void put_split(struct writing *w, const struct shards_split *split)
{
    static const char *const words[] = {
        [SHARDS_CONCAT] = "concat", [SHARDS_ZIGZAG] = "zigzag", [SHARDS_FUSED] = "interleaved"};
    put(w, "%s", words[split->how]);
    for (unsigned k = 0; k < split->segments && split->weight[0]; k++)
        put(w, "%c%" PRIu32, k ? ':' : ' ', split->weight[k]);
    if (split->segments && !split->weight[0])
        put(w, " in %u blocks", split->segments);
    put(w, " axis %u", split->axis);
}

/* The ranks of a slot: terms with a plus, replicas with a bar between them. */
static void put_slot(struct writing *w, const struct shards_layout *layout, const int64_t *ranks,
                     unsigned slot)
{
    for (unsigned term = 0; term < layout->terms; term++) {
        const char *gap = term ? "+" : "";
        for (unsigned p = 0; p < layout->parts; p++)
            if (layout->slot[p] == slot && layout->term[p] == term) {
                put(w, "%s%" PRId64, gap, ranks[p]);
                gap = "|";
            }
    }
}

const char *shards_text(const struct shards_layout *layout, const int64_t *ranks, char *text,
                        size_t size)
{
    struct writing w = {.text = text, .size = size};
    const unsigned slots = shards_slots(layout);
    if (size)
        *text = '\0';
    for (unsigned s = 0; s < layout->splits && !layout->flat; s++) {
        put(&w, s ? ", then " : "");
        put_split(&w, &layout->split[s]);
    }
    if (layout->flat)
        put(&w, "flat");
    if (layout->reduce != SHARDS_ONE)
        put(&w, "%s%s of %u", w.used ? ", " : "", layout->reduce == SHARDS_SUM ? "sum" : "mean",
            layout->terms);
    else if (!w.used)
        put(&w, "replica of %u", layout->parts);
    put(&w, layout->parts == 1 ? ": rank " : slots > 1 ? " over ranks " : ": ranks ");
    for (unsigned slot = 0; slot < slots; slot++) {
        put(&w, slot ? "," : "");
        put_slot(&w, layout, ranks, slot);
    }
    if (layout->divisor > 1)
        put(&w, ", each %u times too large", layout->divisor);
    if (layout->padding)
        put(&w, ", padding of %" PRIu64 " zero%s", layout->padding, layout->padding > 1 ? "s" : "");
    return text;
}
