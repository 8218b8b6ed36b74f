/* How a tensor is divided into blocks along its axes, and where in them a number lies. */
#include "metric/sketch_cursor.h"

#include "format/sketch_kept.h"

void sketch_frame_init(struct sketch_frame *frame, int version, enum plumb_dtype dtype,
                       unsigned rank, const int64_t *shape)
{
    struct plumb_sketch divided = {.version = version};
    sketch_divide(&divided, dtype, rank, shape);
    *frame = (struct sketch_frame){
        .version = version, .count = divided.axes, .whole_tiles = version != SKETCH_OLD};
    uint64_t inner = plumb_dtype_parts(dtype);
    unsigned left = divided.axes;
    for (unsigned i = rank; i-- && left; inner *= (uint64_t)shape[i]) {
        const struct plumb_sketch_axis *from = &divided.axis[left - 1];
        if (from->axis != i)
            continue;
        frame->axis[--left] =
            (struct sketch_axis){i, from->blocks, from->size, from->length, inner};
        frame->whole_tiles = frame->whole_tiles && from->length * inner % KERNEL_SKETCH_TILE == 0 &&
                             from->size * inner % KERNEL_SKETCH_TILE == 0;
    }
}

void cursor_seek(struct sketch_cursor *cursor, const struct sketch_frame *frame, uint64_t index)
{
    cursor->next = index;
    for (unsigned k = 0; k < frame->count; k++) {
        const struct sketch_axis *axis = &frame->axis[k];
        const uint64_t place = index / axis->inner % axis->size, block = place / axis->length;
        const uint64_t next = (block + 1) * axis->length;
        const uint64_t end = next < axis->size ? next : axis->size;
        cursor->block[k] = (unsigned)block;
        cursor->left[k] = (end - place) * axis->inner - index % axis->inner;
    }
}

size_t cursor_run(const struct sketch_cursor *cursor, const struct sketch_frame *frame, size_t most)
{
    for (unsigned k = 0; k < frame->count; k++)
        if (cursor->left[k] < most)
            most = (size_t)cursor->left[k];
    return most;
}

void cursor_advance(struct sketch_cursor *cursor, const struct sketch_frame *frame, size_t n)
{
    cursor->next += n;
    for (unsigned k = 0; k < frame->count; k++) {
        const struct sketch_axis *axis = &frame->axis[k];
        cursor->left[k] -= n;
        if (cursor->left[k])
            continue;
        if (++cursor->block[k] == axis->blocks)
            cursor->block[k] = 0;
        const uint64_t begin = cursor->block[k] * axis->length;
        const uint64_t rest = axis->size - begin;
        cursor->left[k] = (rest < axis->length ? rest : axis->length) * axis->inner;
    }
}
