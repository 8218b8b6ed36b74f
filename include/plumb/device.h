/* What runs an operator: one struct a back end. The built-in `cpu` computes in the recorded
 * types. */
#ifndef PLUMB_DEVICE_H
#define PLUMB_DEVICE_H

#include "plumb/op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUMB_DEVICE_API 1

struct plumb_device {
    unsigned api_version; /* PLUMB_DEVICE_API */
    const char *name;     /* as the user wrote it: "cpu" */
    void *state;          /* the back end's own */

    /* Optional: false when the device cannot run the call; why then says so. */
    bool (*supports)(struct plumb_device *device, const struct plumb_call *call, char *why,
                     size_t size);

    /* Runs the call in the recorded types, as plumb_op_run does. Called from several threads at
     * once. */
    enum plumb_code (*run)(struct plumb_device *device, const struct plumb_call *call,
                           struct plumb_result *out, struct plumb_error *err);

    /* Optional: releases state and the device itself. */
    void (*close)(struct plumb_device *device);
};

/* Opens a device by name: "cpu", or one of the origin's numbers, which mean the same. */
enum plumb_code plumb_device_open(const char *name, struct plumb_device **out,
                                  struct plumb_error *err);
void plumb_device_close(struct plumb_device *device);

#ifdef __cplusplus
}
#endif
#endif
