/* Opens the library of operators when the first is asked for, and hands calls on to it. */
#include "base/arena.h"
#include "base/cpu.h"
#include "base/part.h"
#include "base/paths.h"
#include "exec/op/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The build tree's places (programs at its top, tests and fuzz targets one folder deeper, the
 * module for Python two), then an installed tree's, seen from bin or from the folder of libplumb.
 * A Python package has the library beside its module. */
#define NAME "libplumb-op.so"
static const char *const places[] = {
    NAME,
    "../" NAME,
    "../../" NAME,
    "plumb/" NAME,
    "../" PLUMB_LIBDIR_NAME "/plumb/" NAME,
    "../lib/plumb/" NAME,
    "../lib/python3*/site-packages/plumb/" NAME,
    NULL,
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct op_library *operators; /* NULL: why says why */
static struct plumb_error why;

/* The library stays open for good: results and tables of it may be in use anywhere. */
static void open_library(void)
{
    static const struct part part = {.needed =
                                         "operators need the library " NAME " (`make` builds it)",
                                     .variable = "PLUMB_OP",
                                     .places = places,
                                     .installed = PLUMB_LIBDIR "/plumb/" NAME,
                                     .access = R_OK};
    char path[PATH_MAX];
    if (part_find(&part, path, sizeof path, &why))
        return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct op_library *found = library ? dlsym(library, "plumb_operators") : NULL;
    if (!found)
        plumb_fail(&why, PLUMB_E_IO, "the library of operators cannot be opened: %.300s",
                   dlerror());
    else if (strcmp(found->version, PLUMB_VERSION) != 0)
        plumb_fail(&why, PLUMB_E_IO, "%.200s is of plumb %.20s, and this is plumb %s", path,
                   found->version, PLUMB_VERSION);
    else
        operators = found;
}

enum plumb_code plumb_op_ready(struct plumb_error *err)
{
    pthread_once(&once, open_library);
    if (operators)
        return PLUMB_OK;
    if (err)
        *err = why;
    return why.code;
}

const struct plumb_op *plumb_op_find(const char *prefix, const char *name)
{
    return plumb_op_ready(NULL) ? NULL : operators->find(prefix, name);
}

const struct plumb_op *plumb_op_of(const struct plumb_call *call)
{
    return plumb_op_ready(NULL) ? NULL : operators->of(call);
}

const struct plumb_op *plumb_op_at(size_t i)
{
    return plumb_op_ready(NULL) ? NULL : operators->at(i);
}

enum plumb_code plumb_op_run(const struct plumb_call *call, enum plumb_precision precision,
                             struct plumb_result *out, struct plumb_error *err)
{
    *out = (struct plumb_result){0};
    const enum plumb_code code = plumb_op_ready(err);
    return code ? code : operators->run(call, precision, cpu_mask(), out, err);
}

void plumb_result_destroy(struct plumb_result *result)
{
    if (result->memory) {
        arena_free(result->memory);
        free(result->memory);
    }
    *result = (struct plumb_result){0};
}
