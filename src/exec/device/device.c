/* Opening a device by its name. */
#include "plumb/device.h"

#include "exec/device/cpu.h"
#include "exec/device/recorded.h"
#include "exec/device/torch.h"

#include <stdio.h>
#include <string.h>

/* All devices, in the order of error texts. */
static const struct {
    const char *name; /* one that ends in ':' is a family of devices */
    enum plumb_code (*open)(const char *name, const struct plumb_device_options *options,
                            struct plumb_device **out, struct plumb_error *err);
    const char *told; /* what people are told about it */
} devices[] = {
    {"cpu", cpu_device_open, "cpu"},
    {"recorded", recorded_device_open, "recorded"},
    {"torch:", torch_device_open,
     "what PyTorch has: torch:cpu, torch:cuda:0, torch:npu:0, ..."}, /* the last, for its dots */
};
enum { DEVICES = sizeof devices / sizeof *devices };

static bool is_number(const char *name)
{
    return *name && name[strspn(name, "0123456789")] == '\0';
}

static enum plumb_code unknown(const char *name, struct plumb_error *err)
{
    char told[256] = "";
    for (size_t i = 0, used = 0; i < DEVICES && used < sizeof told; i++)
        used += (size_t)snprintf(told + used, sizeof told - used, "%s%s",
                                 i == 0             ? ""
                                 : i == DEVICES - 1 ? ", and "
                                                    : ", ",
                                 devices[i].told);
    return plumb_fail(err, PLUMB_E_ARG, "there is no device '%s'; there are %s", name, told);
}

enum plumb_code plumb_device_open_with(const char *name, const struct plumb_device_options *options,
                                       struct plumb_device **out, struct plumb_error *err)
{
    *out = NULL;
    const char *wanted = is_number(name) ? "cpu" : name;
    for (size_t i = 0; i < DEVICES; i++) {
        const size_t length = strlen(devices[i].name);
        const bool family = devices[i].name[length - 1] == ':';
        if (strncmp(wanted, devices[i].name, length) == 0 && (family || !wanted[length]))
            return devices[i].open(name, options, out, err);
    }
    return unknown(name, err);
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
