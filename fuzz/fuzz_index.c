/* Checkpoints with an index: the index, and behind it a file that it may name. */
#include "two_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"model.safetensors.index.json", "a.safetensors"};
    return two_files(data, size, names);
}
