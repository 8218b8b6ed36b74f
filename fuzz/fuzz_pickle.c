#include "format/pickle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any bytes are a value or an error with a position inside them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct pickle_value *root = NULL;
    struct plumb_error err = {0};
    enum plumb_code code = pickle_parse(data, size, &arena, &root, &err);
    if (code ? root || (err.offset > size && err.offset != PLUMB_NO_OFFSET) : !root)
        abort();
    arena_free(&arena);
    return 0;
}
