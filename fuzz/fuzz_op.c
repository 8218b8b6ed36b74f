/* Operators with arguments that nobody would give them. */
#include "op_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct calls calls;
    if (!calls.n_args)
        calls_make(&calls);
    calls_from_bytes(&calls, data, size);
    return 0;
}
