#include "format/ge_file.h"
#include "format/ge_layout.h"
#include "format/ge_type.h"
#include "msprobe/graph.h"

#include <stdlib.h>
#include <string.h>

/* Orders the tensor's elements, when a buffer of the size that is promised is at hand. */
static void reorder(const struct ge_tensor *tensor, const struct ge_reading *reading)
{
    enum { MOST = 1 << 16 };
    static uint8_t from[MOST], to[MOST];
    struct ge_order order;
    struct plumb_error err;
    uint64_t stored = 1;
    if (ge_order_find(&order, tensor, reading, &err)) {
        if (!err.message[0])
            abort();
        return;
    }
    for (unsigned i = 0; i < tensor->shape.rank; i++)
        if (__builtin_mul_overflow(stored, tensor->shape.dim[i], &stored))
            abort();
    if (order.plain || stored > MOST)
        return;
    if (ge_order_count(&order) > stored)
        abort();
    ge_order_copy(&order, from + (MOST - stored), to, 1);
}

static void check(const struct ge_tensor *tensors, size_t count, uint64_t size)
{
    for (size_t i = 0; i < count; i++) {
        const struct ge_tensor *tensor = &tensors[i];
        if (!tensor->error && (tensor->offset > size || tensor->size > size - tensor->offset))
            abort();
        if (tensor->index != i)
            abort();
        reorder(tensor, &(struct ge_reading){0});
        reorder(tensor, &msprobe_ge_reading);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plumb_file file = {.data = data, .size = size, .file_size = size};
    struct arena arena = {0};
    struct ge_file ge;
    struct plumb_error err;
    ge_probe(data, size < 64 ? size : 64, size);
    if (!ge_parse(&ge, &file, "input", &arena, &err)) {
        check(ge.inputs, ge.input_count, size);
        check(ge.outputs, ge.output_count, size);
    } else if (!err.message[0]) {
        abort();
    }
    arena_free(&arena);
    return 0;
}
