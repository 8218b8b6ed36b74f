/* How a tensor is divided into blocks along its axes, and where in them a number lies. */
#include "metric/sketch_cursor.h"

enum { LEAST_RUN = 64 };

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

void sketch_frame_init(struct sketch_frame *frame, enum plumb_dtype dtype, unsigned rank,
                       const int64_t *shape)
{
    struct sketch_axis found[PLUMB_SKETCH_AXES];
    unsigned count = 0;
    uint64_t inner = plumb_dtype_parts(dtype);
    *frame = (struct sketch_frame){0};
    for (unsigned i = rank; i-- && count < PLUMB_SKETCH_AXES;) {
        const uint64_t size = (uint64_t)shape[i];
        if (!size)
            return;
        uint64_t blocks = size * inner / LEAST_RUN;
        blocks = blocks > PLUMB_SKETCH_BLOCKS ? PLUMB_SKETCH_BLOCKS : blocks ? blocks : 1;
        const uint64_t length = divide_up(size, blocks < size ? blocks : size);
        blocks = divide_up(size, length);
        if (blocks > 1)
            found[count++] = (struct sketch_axis){i, (unsigned)blocks, size, length, inner};
        inner *= size;
    }
    for (unsigned k = 0; k < count; k++)
        frame->axis[k] = found[count - 1 - k];
    frame->count = count;
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
