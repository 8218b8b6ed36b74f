/* The device that is always there: plumb's own operators. */
#define _POSIX_C_SOURCE 200809L
#include "exec/device/cpu.h"

#include <stdlib.h>
#include <string.h>

static enum plumb_code cpu_run(struct plumb_device *device, const struct plumb_call *call,
                               struct plumb_result *out, struct plumb_error *err)
{
    (void)device;
    return plumb_op_run(call, PLUMB_OWN, out, err);
}

static void cpu_close(struct plumb_device *device)
{
    free(device->state);
    free(device);
}

enum plumb_code cpu_device_open(const char *name, const struct plumb_device_options *options,
                                struct plumb_device **out, struct plumb_error *err)
{
    (void)options;
    struct plumb_device *device = calloc(1, sizeof *device);
    char *copy = strdup(name);
    if (!device || !copy) {
        free(device);
        free(copy);
        return plumb_no_memory(err);
    }
    *device = (struct plumb_device){.api_version = PLUMB_DEVICE_API,
                                    .name = copy,
                                    .state = copy,
                                    .run = cpu_run,
                                    .close = cpu_close,
                                    .native = true};
    *out = device;
    return PLUMB_OK;
}
