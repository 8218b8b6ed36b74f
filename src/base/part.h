/* Parts of plumb that lie outside the program and the library: a helper program, a script, a
 * library that is opened only when it is needed. */
#ifndef BASE_PART_H
#define BASE_PART_H

#include "plumb/error.h"

#include <stddef.h>

struct part {
    const char *needed;        /* starts the message: "reading HDF5 needs the program plumb-h5" */
    const char *variable;      /* environment variable that holds its path */
    const char *const *places; /* seen from the folder of the program or of the library: patterns of
                                  glob(), NULL at the end */
    const char *installed;     /* where `make install` puts it */
    int access;                /* R_OK or X_OK */
};

/* Writes the path of the part. What the variable says is taken as it is; then come the places near
 * the library that holds this code (a Python process has it in a module), those near the running
 * program, and the place of installation. PLUMB_E_IO: it is nowhere. Thread-safe. */
enum plumb_code part_find(const struct part *part, char *path, size_t size,
                          struct plumb_error *err);

/* A library that is a private part of one build of plumb. */
struct part_library {
    struct part part;
    const char *what;   /* for messages: "the library of operators" */
    const char *symbol; /* the one that it shows: a struct whose first member is PLUMB_VERSION */
};

/* The places of such a library: the build tree's (programs at its top, tests and fuzz targets one
 * folder deeper, the module for Python two), then an installed tree's, seen from bin or from the
 * folder of libplumb. A Python package has it beside its module. */
#define PART_LIBRARY_PLACES(NAME)                                                                  \
    NAME, "../" NAME, "../../" NAME, "plumb/" NAME, "../" PLUMB_LIBDIR_NAME "/plumb/" NAME,        \
        "../lib/plumb/" NAME, "../lib/python3*/site-packages/plumb/" NAME, NULL

/* Opens it, for good, and returns its symbol; NULL with err set when that is not possible.
 * Thread-safe. */
const void *part_open(const struct part_library *library, struct plumb_error *err);

#endif
