/* Where worker.py is, and which Pythons may run it. */
#ifndef DEVICE_FIND_H
#define DEVICE_FIND_H

#include "plumb/error.h"

/* The environment's PLUMB_WORKER, else near the running program or library, else where it was to be
 * installed. */
enum plumb_code find_worker(char *path, size_t size, struct plumb_error *err);

/* The k-th Python to try, or NULL: the environment's PLUMB_PYTHON alone, else those that a machine
 * usually has. */
const char *find_python(size_t k);

#endif
