/* The tensors of one file, whatever it is. */
#ifndef CONDENSE_SOURCE_H
#define CONDENSE_SOURCE_H

#include "base/arena.h"
#include "format/ge_file.h"
#include "plumb/run.h"

struct source {
    const char *format; /* "npy", ... */
    size_t count;
    uint64_t surplus;      /* bytes that belong to no tensor, where the format should have none */
    struct plumb_run *run; /* NULL: a GE file, with the members below */
    struct arena arena;
    struct ge_file ge;
    struct plumb_record *records;
};

/* *ours is false, and nothing needs closing, for a file without tensors whose name does not promise
 * any. */
enum plumb_code source_open(struct source *source, const char *path, bool *ours,
                            struct plumb_error *err);
void source_close(struct source *source);

const struct plumb_record *source_record(const struct source *source, size_t index);
enum plumb_code source_load(const struct source *source, size_t index,
                            struct plumb_payload *payload, struct plumb_error *err);

#endif
