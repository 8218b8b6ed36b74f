/* What a worker of PyTorch answers to a call of two tensors, and to its settings. */
#include "exec/device/message.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MEMORY = 256 };
    const struct message_call call = {.n_leaves = 2, .arg_leaves = 1};
    unsigned char *memory = calloc(1, MEMORY); /* so that a read beyond it is seen */
    struct plumb_result result;
    struct plumb_error err = {0};
    char kind[16];
    if (!memory)
        return 0;
    if (!message_get_result((const char *)data, size, &call, memory, MEMORY, &result, &err))
        for (size_t k = 0; k < result.n_outputs; k++)
            if (result.outputs[k].kind == PLUMB_ARG_TENSOR &&
                plumb_tensor_bytes(result.outputs[k].tensor) > MEMORY)
                abort();
    plumb_result_destroy(&result);
    message_get_ready((const char *)data, size, kind, &err);
    free(memory);
    return 0;
}
