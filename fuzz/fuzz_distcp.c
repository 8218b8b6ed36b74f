/* Distributed checkpoints: a .metadata, and behind it the file that it leads to. */
#include "two_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {".metadata", "__0_0.distcp"};
    return two_files(data, size, names);
}
