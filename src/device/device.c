#include "plumb/device.h"

#include "device/cpu.h"

#include <string.h>

enum plumb_code plumb_device_open(const char *name, struct plumb_device **out,
                                  struct plumb_error *err)
{
    *out = NULL;
    if (strcmp(name, "cpu") != 0 && (!*name || name[strspn(name, "0123456789")] != '\0'))
        return plumb_fail(err, PLUMB_E_ARG, "there is no device '%s'; there is cpu", name);
    *out = cpu_device_new(name);
    return *out ? PLUMB_OK : plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
}

void plumb_device_close(struct plumb_device *device)
{
    if (device && device->close)
        device->close(device);
}
