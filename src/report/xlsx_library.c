/* The functions of libxlsxwriter, for whoever opens libplumb-xlsx.so. */
#include "report/xlsx_library.h"

const struct xlsx_library plumb_xlsx = {.version = PLUMB_VERSION,
#define XLSX_MEMBER(name) .name = name, // NOLINT(bugprone-macro-parentheses)
                                        XLSX_FUNCTIONS(XLSX_MEMBER)};
