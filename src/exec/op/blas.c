/* Looking for an OpenBLAS that can be used safely from several threads. */
#include "exec/op/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

/* The builds with threads of their own come first: of one without, two calls at once are not always
 * safe. The plain name may be any build; usable() looks. */
static const char *const places[] = {
    "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
    "/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0",
    "libopenblasp.so.0",
    "libopenblas.so.0",
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct blas found;
static const struct blas *result;
static const char *name = "plain";

/* ISO C has no cast from an object pointer to a function pointer; POSIX promises the same bits. */
static int symbol(void *library, const char *text, void *function, size_t size)
{
    void *address = dlsym(library, text);
    memcpy(function, &address, size);
    return address != NULL;
}

/* OpenMP builds keep the number of threads per calling thread, so it cannot be pinned once for all;
 * builds with 64-bit integers have other signatures. */
static int usable(void *library)
{
    int (*parallel)(void);
    char *(*config)(void);
    void (*set_threads)(int);
    enum { OPENMP = 2 };
    if (!symbol(library, "openblas_get_parallel", &parallel, sizeof parallel) ||
        !symbol(library, "openblas_get_config", &config, sizeof config) ||
        !symbol(library, "openblas_set_num_threads", &set_threads, sizeof set_threads))
        return 0;
    if (parallel() == OPENMP || strstr(config(), "USE64BITINT"))
        return 0;
    if (!symbol(library, "cblas_sgemm", &found.sgemm, sizeof found.sgemm) ||
        !symbol(library, "cblas_dgemm", &found.dgemm, sizeof found.dgemm) ||
        !symbol(library, "cblas_sgemv", &found.sgemv, sizeof found.sgemv) ||
        !symbol(library, "cblas_dgemv", &found.dgemv, sizeof found.dgemv))
        return 0;
    set_threads(1);
    name = config();
    return 1;
}

static void find(void)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        void *library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        if (usable(library)) {
            result = &found;
            return;
        }
        dlclose(library);
    }
}

const struct blas *blas_find(void)
{
    pthread_once(&once, find);
    return result;
}

const char *blas_name(void)
{
    pthread_once(&once, find);
    return name;
}
