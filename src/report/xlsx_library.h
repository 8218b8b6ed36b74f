/* libxlsxwriter is opened when the first workbook is written: it brings libcrypto and two more,
 * which would take longer to load than a small comparison takes. libplumb-xlsx.so is linked with it
 * and shows its functions; like the library of operators it is a private part of one build of
 * plumb. */
#ifndef REPORT_XLSX_LIBRARY_H
#define REPORT_XLSX_LIBRARY_H

#include "plumb/error.h"

#include <xlsxwriter.h>

#define XLSX_FUNCTIONS(X)                                                                          \
    X(format_set_bg_color)                                                                         \
    X(format_set_bold)                                                                             \
    X(format_set_bottom)                                                                           \
    X(lxw_strerror)                                                                                \
    X(lxw_workbook_free)                                                                           \
    X(workbook_add_format)                                                                         \
    X(workbook_add_worksheet)                                                                      \
    X(workbook_close)                                                                              \
    X(workbook_new_opt)                                                                            \
    X(worksheet_autofilter)                                                                        \
    X(worksheet_freeze_panes)                                                                      \
    X(worksheet_set_column)                                                                        \
    X(worksheet_write_blank)                                                                       \
    X(worksheet_write_number)                                                                      \
    X(worksheet_write_string)

struct xlsx_library {
    const char *version;                          /* PLUMB_VERSION */
#define XLSX_MEMBER(name) __typeof__(name) *name; // NOLINT(bugprone-macro-parentheses)
    XLSX_FUNCTIONS(XLSX_MEMBER)
#undef XLSX_MEMBER
};

/* The one symbol that the library shows. */
extern const struct xlsx_library plumb_xlsx;

/* Opens it; NULL with err set when it is not there. Thread-safe. */
const struct xlsx_library *xlsx_open(struct plumb_error *err);

#endif
