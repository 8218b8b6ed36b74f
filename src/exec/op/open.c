/* Opens the library of operators when the first is asked for, and hands calls on to it. */
#include "base/arena.h"
#include "base/cpu.h"
#include "base/part.h"
#include "base/paths.h"
#include "exec/op/library.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define NAME "libplumb-op.so"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct op_library *operators; /* NULL: why says why */
static struct plumb_error why;

/* The library stays open for good: results and tables of it may be in use anywhere. */
static void open_library(void)
{
    static const char *const places[] = {PART_LIBRARY_PLACES(NAME)};
    static const struct part_library library = {
        .part = {.needed = "operators need the library " NAME " (`make` builds it)",
                 .variable = "PLUMB_OP",
                 .places = places,
                 .installed = PLUMB_LIBDIR "/plumb/" NAME,
                 .access = R_OK},
        .what = "the library of operators",
        .symbol = "plumb_operators"};
    operators = part_open(&library, &why);
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
