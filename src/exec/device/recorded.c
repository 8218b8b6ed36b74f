/* The device that ran already: its results are in the dump, and whoever has the dump takes them
 * from there. Here is what it says to others. */
#include "exec/device/recorded.h"

static enum plumb_code recorded_run(struct plumb_device *device, const struct plumb_call *call,
                                    struct plumb_result *out, struct plumb_error *err)
{
    (void)device;
    *out = (struct plumb_result){0};
    return plumb_fail(err, PLUMB_E_UNSUPPORTED, "nothing is recorded of %s", call->name);
}

enum plumb_code recorded_device_open(const char *name, const struct plumb_device_options *options,
                                     struct plumb_device **out, struct plumb_error *err)
{
    static struct plumb_device recorded = {
        .api_version = PLUMB_DEVICE_API, .name = "recorded", .run = recorded_run, .recorded = true};
    (void)name;
    (void)options;
    (void)err;
    *out = &recorded;
    return PLUMB_OK;
}
