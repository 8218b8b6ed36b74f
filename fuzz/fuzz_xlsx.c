#include "task/ranks/rows.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum plumb_code look(void *context, size_t sheet, const struct row_cell *cells, size_t count,
                            struct plumb_error *err)
{
    size_t *bytes = context;
    (void)sheet, (void)err;
    if (!count)
        abort();
    for (size_t i = 0; i < count; i++)
        *bytes += cells[i].text ? strlen(cells[i].text) : 0;
    return PLUMB_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plumb_file file = {.data = data, .size = size, .file_size = size};
    struct arena arena = {0};
    struct plumb_error err = {0};
    size_t bytes = 0;
    struct row_reader reader = {.arena = &arena, .row = look, .context = &bytes};
    if (xlsx_read(&file, &reader, &err) && !err.message[0])
        abort();
    arena_free(&arena);
    return 0;
}
