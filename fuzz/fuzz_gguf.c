#include "list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_list(&format_gguf, data, size);
    return 0;
}
