/* What there is of the tensors of a run. */
#ifndef RUN_STOCK_H
#define RUN_STOCK_H

#include "plumb/run.h"

#include <stdbool.h>

/* Numbers of tensors. */
struct stock {
    size_t tensors, payloads, statistics, checksums;
};

/* Looks at all records where nobody has before. */
struct stock run_stock(const struct plumb_run *run);

/* Of a dump, as its first dump.json has it: "L1"; NULL: it is none, or does not say. */
const char *run_level(const struct plumb_run *run);

bool record_is_tensor(const struct plumb_record *record);
bool record_has_payload(const struct plumb_record *record);
bool record_has_statistics(const struct plumb_record *record);
bool record_has_checksum(const struct plumb_record *record);

#endif
