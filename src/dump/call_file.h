/* What the readers of an open dump.json share. */
#ifndef DUMP_CALL_FILE_H
#define DUMP_CALL_FILE_H

#include "dump/call.h"
#include "plumb/file.h"

/* Longer names than any model has; deeper lists than any API takes. */
enum { CASE_MAX_NAME = 4096, CASE_MAX_NESTING = 64 };

struct case_file {
    struct plumb_file map; /* all zero when the bytes are somebody else's */
    const uint8_t *bytes;
    size_t size;
    struct arena arena; /* names */
    const char *path, *data_dir;
    struct case_place *places;
    size_t count;
};

#endif
