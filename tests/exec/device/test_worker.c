/* Workers that crash, hang, lie and grow: a stand-in for worker.py that needs no PyTorch does what
 * the name of the operator says. */
#define _GNU_SOURCE
#include "plumb/device.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "scratch.h"

static const char stand_in[] =
    "import json, mmap, os, socket, struct, sys, time\n"
    "link = socket.socket(fileno=4)\n"
    "def receive():\n"
    "    size, = struct.unpack('<I', link.recv(4, socket.MSG_WAITALL) or sys.exit(0))\n"
    "    return json.loads(link.recv(size, socket.MSG_WAITALL))\n"
    "def send(answer):\n"
    "    data = json.dumps(answer).encode()\n"
    "    link.sendall(struct.pack('<I', len(data)) + data)\n"
    "receive()\n"
    "time.sleep(float(os.environ.get('STAND_IN_START', '0')))\n"
    "send({'ready': 1})\n"
    "while True:\n"
    "    call = receive()\n"
    "    name, free = call['name'], call['free']\n"
    "    at, size = free, 4\n"
    "    if name == 'exit': os._exit(3)\n"
    "    if name == 'words': sys.exit('first line\\nlast \\x1b line')\n"
    "    if name == 'crash': os.kill(os.getpid(), 11)\n"
    "    if name == 'instruction': os.kill(os.getpid(), 4)\n"
    "    if name == 'hang': time.sleep(1000)\n"
    "    if name == 'slow': time.sleep(0.2)\n"
    "    if name == 'close': link.close(); time.sleep(1000)\n"
    "    if name == 'half': link.sendall(struct.pack('<I', 100) + b'{'); os._exit(0)\n"
    "    if name == 'long': link.sendall(b'\\xff\\xff\\xff\\xff'); time.sleep(1000)\n"
    "    if name == 'nonsense': link.sendall(struct.pack('<I', 3) + b'{]}'); continue\n"
    "    if name == 'beyond': at = 1 << 40\n"
    "    if name == 'grow': os.ftruncate(3, 1 << 62)\n"
    "    if name == 'shrink':\n"
    "        try: os.ftruncate(3, 0)\n"
    "        except OSError: pass\n"
    "    if name == 'chatter': os.write(2, b'x' * (1 << 20))\n"
    "    if name == 'large': size = 40 << 20\n"
    "    os.posix_fallocate(3, free, size)\n"
    "    with mmap.mmap(3, free + size) as memory:\n"
    "        value = struct.unpack_from('<f', memory, 0)[0] if free else 0.0\n"
    "        struct.pack_into('<f', memory, free, value + 1)\n"
    "        struct.pack_into('<f', memory, free + size - 4, value + 1)\n"
    "    send({'outputs': [{'tensor': {'dtype': 'float32', 'shape': [size // 4], 'at': at}},\n"
    "                      os.getpid()], 'grads': [None] * len(call['args']),\n"
    "          'arg_grads': len(call['args']), 'tuple': True})\n";

static struct plumb_device *open_device(double timeout)
{
    struct plumb_device *device;
    struct plumb_error err = {0};
    const struct plumb_device_options options = {.timeout = timeout};
    if (plumb_device_open_with("torch:cpu", &options, &device, &err))
        fail_msg("%s", err.message);
    return device;
}

/* Runs an operator on the number 41. */
static enum plumb_code run(struct plumb_device *device, const char *name,
                           struct plumb_result *result, struct plumb_error *err)
{
    static const float value = 41;
    struct plumb_tensor tensor;
    plumb_tensor_init(&tensor, PLUMB_F32, 0, NULL, NULL);
    tensor.data = &value;
    const struct plumb_arg arg = {.kind = PLUMB_ARG_TENSOR, .tensor = &tensor};
    const struct plumb_call call = {.prefix = "Torch", .name = name, .args = &arg, .n_args = 1};
    *err = (struct plumb_error){0};
    return device->run(device, &call, result, err);
}

/* The process that answered. */
static pid_t run_well(struct plumb_device *device, const char *name)
{
    struct plumb_result result;
    struct plumb_error err;
    if (run(device, name, &result, &err))
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(result.n_outputs, 2);
    assert_int_equal(result.n_grads, 1);
    const struct plumb_tensor *tensor = result.outputs[0].tensor;
    const float *values = tensor->data;
    assert_float_equal(values[0], 42, 0);
    assert_float_equal(values[tensor->count - 1], 42, 0);
    const pid_t pid = (pid_t)result.outputs[1].integer;
    plumb_result_destroy(&result);
    return pid;
}

static void run_badly(struct plumb_device *device, const char *name, const char *message)
{
    struct plumb_result result;
    struct plumb_error err;
    assert_int_not_equal(run(device, name, &result, &err), PLUMB_OK);
    if (!strstr(err.message, message))
        fail_msg("%s: %s", name, err.message);
    assert_null(result.memory);
}

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) != 0;
}

static void test_calls_share_a_worker(void **state)
{
    (void)state;
    struct plumb_device *device = open_device(60);
    const pid_t first = run_well(device, "fine");
    assert_int_equal(run_well(device, "chatter"), first);
    assert_int_equal(run_well(device, "large"), first);
    assert_int_equal(run_well(device, "shrink"), first);
    assert_int_equal(run_well(device, "fine"), first);
    plumb_device_close(device);
    assert_true(is_gone(first));
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        const char *name, *message;
    } faults[] = {
        {"exit", "the worker ended with exit code 3"},
        {"words", "the worker ended with exit code 1; it last said: last   line"},
        {"crash", "the worker was ended by SIGSEGV"},
        {"instruction", "SIGILL (an instruction that this machine does not have; in a virtual "
                        "machine set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16)"},
        {"half", "the worker ended with exit code 0"},
        {"long", "makes no sense: it is 4294967295 bytes long"},
        {"nonsense", "makes no sense"},
        {"beyond", "outside the shared memory"},
        {"grow", "more than the"},
    };
    struct plumb_device *device = open_device(60);
    pid_t before = run_well(device, "fine");
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        run_badly(device, faults[k].name, faults[k].message);
        assert_true(is_gone(before));
        const pid_t now = run_well(device, "fine");
        assert_int_not_equal(now, before);
        before = now;
    }
    plumb_device_close(device);
    assert_true(is_gone(before));
}

static void test_time(void **state)
{
    (void)state;
    struct plumb_device *device = open_device(5);
    const pid_t before = run_well(device, "fine");
    run_badly(device, "hang", "no answer within 5 s");
    assert_true(is_gone(before));
    run_badly(device, "close", "the worker was ended by SIGKILL");
    run_well(device, "fine");
    plumb_device_close(device);
}

/* A worker that dies while nobody asks it anything costs nothing. */
static void test_killed_while_idle(void **state)
{
    (void)state;
    struct plumb_device *device = open_device(60);
    const pid_t before = run_well(device, "fine");
    assert_int_equal(kill(before, SIGKILL), 0);
    siginfo_t end;
    assert_int_equal(waitid(P_PID, (id_t)before, &end, WEXITED | WNOWAIT), 0);
    assert_int_not_equal(run_well(device, "fine"), before);
    plumb_device_close(device);
}

/* ---- Several --------------------------------------------------------------------------------- */

static void *run_some(void *device)
{
    for (int k = 0; k < 20; k++) {
        struct plumb_result result;
        struct plumb_error err;
        if (k % 10 == 5)
            run(device, "crash", &result, &err);
        else if (run(device, "fine", &result, &err) ||
                 *(const float *)result.outputs[0].tensor->data != 42)
            return device;
        plumb_result_destroy(&result);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    struct plumb_device *device = open_device(60);
    pthread_t threads[THREADS];
    for (int k = 0; k < THREADS; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, run_some, device), 0);
    for (int k = 0; k < THREADS; k++) {
        void *failed;
        pthread_join(threads[k], &failed);
        assert_null(failed);
    }
    plumb_device_close(device);
}

/* Starting a worker costs. Callers share one as long as waiting for it is cheaper than another. */
struct several {
    struct plumb_device *device;
    const char *name;
    pid_t pid[20];
};

static void *run_named(void *several)
{
    struct several *of = several;
    for (size_t k = 0; k < sizeof of->pid / sizeof *of->pid; k++)
        of->pid[k] = run_well(of->device, of->name);
    return NULL;
}

/* How many processes answered two threads that ask for 20 calls each. */
static size_t processes_for(const char *name, const char *start_seconds)
{
    setenv("STAND_IN_START", start_seconds, 1);
    struct plumb_device *device = open_device(60);
    struct several asked[2] = {{.device = device, .name = name}, {.device = device, .name = name}};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_named, &asked[0]), 0);
    run_named(&asked[1]);
    pthread_join(thread, NULL);
    unsetenv("STAND_IN_START");
    plumb_device_close(device);
    const pid_t first = asked[0].pid[0];
    for (size_t k = 0; k < 40; k++)
        if (asked[k / 20].pid[k % 20] != first)
            return 2;
    return 1;
}

static void test_few_are_started(void **state)
{
    (void)state;
    assert_int_equal(processes_for("fine", "5"), 1); /* all of the calls take less than that */
    assert_int_equal(processes_for("slow", "0"), 2); /* waiting takes seconds */
}

/* ---- Starting -------------------------------------------------------------------------------- */

static void refuse(const char *variable, const char *value, const char *message)
{
    struct plumb_device *device;
    struct plumb_error err = {0};
    char was[4096];
    snprintf(was, sizeof was, "%s", getenv(variable));
    setenv(variable, value, 1);
    assert_int_not_equal(plumb_device_open("torch:cpu", &device, &err), PLUMB_OK);
    assert_null(device);
    if (!strstr(err.message, message))
        fail_msg("%s=%s: %s", variable, value, err.message);

    /* A lazy device opens, and says the same at every call. */
    const struct plumb_device_options lazy = {.lazy = true};
    assert_int_equal(plumb_device_open_with("torch:cpu", &lazy, &device, &err), PLUMB_OK);
    run_badly(device, "fine", message);
    run_badly(device, "fine", message);
    plumb_device_close(device);
    setenv(variable, was, 1);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("PLUMB_PYTHON", "/bin/false", "(/bin/false: the worker ended with exit code 1)");
    refuse("PLUMB_PYTHON", "/no/such/python", "set PLUMB_PYTHON to a Python that has it");
    refuse("PLUMB_WORKER", "/no/such/worker.py", "PLUMB_WORKER=/no/such/worker.py");
    refuse("PLUMB_WORKER", "/dev/null", "ended with exit code 0");
}

static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {"torch:", "torch: ", "torch:a b", "torch:\n",
                                        "torch",  "x",       ""};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct plumb_device *device;
        assert_int_equal(plumb_device_open(names[k], &device, NULL), PLUMB_E_ARG);
        assert_null(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_share_a_worker),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_killed_while_idle),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_few_are_started),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_names),
    };
    const char *base = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/plumb-worker-XXXXXX", base && *base ? base : "/tmp");
    const int file = mkstemp(path);
    if (file < 0 || write(file, stand_in, sizeof stand_in - 1) != (ssize_t)sizeof stand_in - 1)
        return 1;
    close(file);
    setenv("PLUMB_WORKER", path, 1);
    setenv("PLUMB_PYTHON", "python3", 1);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
