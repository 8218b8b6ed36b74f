/* What runs an operator: one struct a back end. The built-in `cpu` computes in the recorded
 * types; `torch:DEVICE` is any device of the user's PyTorch, behind worker processes; `recorded` is
 * whatever ran when the dump was made. */
#ifndef PLUMB_DEVICE_H
#define PLUMB_DEVICE_H

#include "plumb/op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUMB_DEVICE_API 2

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

    /* Optional: the same in raised types (float64, complex128), as a reference. */
    enum plumb_code (*run_raised)(struct plumb_device *device, const struct plumb_call *call,
                                  struct plumb_result *out, struct plumb_error *err);

    bool native;   /* runs plumb's own operators: what they lack, another device may run instead */
    bool recorded; /* what it gave is in the dump: acc_check takes it from there */
};

/* Of devices that are processes. All zero: as the comments say. */
struct plumb_device_options {
    double timeout;   /* seconds for a call, beside a second for every 16 MiB of arguments; 0: 60 */
    unsigned threads; /* that PyTorch may use in one call; 0: 1 */
    const char *const *imports; /* modules, or files NAME.py, with the user's own operators */
    size_t n_imports;
    bool jit;  /* compile operators, where the device knows that */
    bool lazy; /* start nothing before the first call, which then tells what is wrong */
};

/* Opens a device by name: "cpu", or one of the origin's numbers, which mean the same;
 * "recorded"; "torch:cpu", "torch:cuda:0", "torch:npu:0", ... A torch device starts python3 with
 * worker.py (see PLUMB_PYTHON and PLUMB_WORKER in docs/PRECHECK.md), at most one process for
 * each thread that calls run at a time; when it cannot, this fails and says what to do. A process
 * that crashes, hangs or runs out of memory costs the call at hand, an error that says how, and
 * is started again. */
enum plumb_code plumb_device_open(const char *name, struct plumb_device **out,
                                  struct plumb_error *err);
enum plumb_code plumb_device_open_with(const char *name, const struct plumb_device_options *options,
                                       struct plumb_device **out, struct plumb_error *err);
void plumb_device_close(struct plumb_device *device);

#ifdef __cplusplus
}
#endif
#endif
