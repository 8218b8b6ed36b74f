/* Opening a device by its name. */
#include "plumb/device.h"

#include "exec/device/cpu.h"
#include "exec/device/torch.h"

#include <string.h>

enum plumb_code plumb_device_open_with(const char *name, const struct plumb_device_options *options,
                                       struct plumb_device **out, struct plumb_error *err)
{
    *out = NULL;
    if (strncmp(name, "torch:", 6) == 0)
        return torch_device_open(name, options, out, err);
    if (strcmp(name, "cpu") != 0 && (!*name || name[strspn(name, "0123456789")] != '\0'))
        return plumb_fail(
            err, PLUMB_E_ARG,
            "there is no device '%s'; there are cpu, and what PyTorch has: torch:cpu, "
            "torch:cuda:0, torch:npu:0, ...",
            name);
    *out = cpu_device_new(name);
    return *out ? PLUMB_OK : plumb_no_memory(err);
}

enum plumb_code plumb_device_open(const char *name, struct plumb_device **out,
                                  struct plumb_error *err)
{
    const struct plumb_device_options usual = {0};
    return plumb_device_open_with(name, &usual, out, err);
}

void plumb_device_close(struct plumb_device *device)
{
    if (device && device->close)
        device->close(device);
}
