/* Opens libplumb-xlsx.so when the first workbook is written. */
#include "base/part.h"
#include "base/paths.h"
#include "report/xlsx_library.h"

#include <pthread.h>
#include <unistd.h>

#define NAME "libplumb-xlsx.so"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct xlsx_library *opened; /* NULL: why says why */
static struct plumb_error why;

static void open_library(void)
{
    static const char *const places[] = {PART_LIBRARY_PLACES(NAME)};
    static const struct part_library library = {
        .part = {.needed = "writing .xlsx needs the library " NAME " (`make` builds it)",
                 .variable = "PLUMB_XLSX",
                 .places = places,
                 .installed = PLUMB_LIBDIR "/plumb/" NAME,
                 .access = R_OK},
        .what = "the library that writes workbooks",
        .symbol = "plumb_xlsx"};
    opened = part_open(&library, &why);
}

const struct xlsx_library *xlsx_open(struct plumb_error *err)
{
    pthread_once(&once, open_library);
    if (!opened && err)
        *err = why;
    return opened;
}
