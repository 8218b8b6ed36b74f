/* One worksheet of a workbook. */
#ifndef RANKS_SHEET_H
#define RANKS_SHEET_H

#include "task/ranks/rows.h"

/* Texts that cells refer to by number. */
struct strings {
    const char **at;
    size_t count;
};

enum plumb_code sheet_read(const void *bytes, size_t size, const char *what, size_t number,
                           const struct strings *strings, const struct row_reader *reader,
                           struct plumb_error *err);

#endif
