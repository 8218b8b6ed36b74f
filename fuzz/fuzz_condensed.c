#include "list.h"

#include "metric/sketch.h"

/* Whatever is listed can be compared: distances, factors, blocks, sums. */
static void compare(const struct plumb_sketch *a, const struct plumb_sketch *b)
{
    char where[120];
    struct plumb_sketch sum;
    if (sketch_distance(a, b, 1).distance < 0 || sketch_distance(a, b, (double)NAN).distance < 0)
        abort();
    sketch_scale(a, b);
    sketch_where(a, b, where, sizeof where);
    if (sketch_sum(&sum, a, b) != (sketch_alike(a, b) && a->version == SKETCH_VERSION))
        abort();
}

static void compare_all(const uint8_t *data, size_t size)
{
    struct plumb_file file = {.data = data, .size = size, .file_size = size};
    struct arena arena = {0};
    struct listing listing = {.arena = &arena, .path = "input"};
    struct plumb_error err;
    const struct plumb_sketch *before = NULL;
    if (format_list(&format_condensed, &listing, &file, &err))
        listing.count = 0;
    for (size_t i = 0; i < listing.count; i++) {
        const struct plumb_recorded *recorded = listing.records[i].recorded;
        const struct plumb_kept *kept = plumb_recorded_kept(recorded);
        if (!recorded || !kept->sketch)
            continue;
        compare(kept->sketch, before ? before : kept->sketch);
        before = kept->sketch;
    }
    arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_list(&format_condensed, data, size);
    compare_all(data, size);
    return 0;
}
