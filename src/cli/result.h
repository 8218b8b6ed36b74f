/* Result files that get their name from the time: DIR/compare_result_YYYYmmddHHMMSS.csv. They are
 * whole under a name that nobody had, or not there. */
#ifndef CLI_RESULT_H
#define CLI_RESULT_H

#include "cli/cli.h"

struct result_name {
    const char *folder; /* NULL: the current one */
    const char *stem, *ending;
    bool utc; /* of the time */
};

/* A hidden name in that folder, to write the file to. The caller frees it. */
enum plumb_code result_hidden(char **hidden, const struct result_name *name,
                              struct plumb_error *err);

/* Gives the file that was written there its name. The caller frees *path. */
enum plumb_code result_claim(char **path, const struct result_name *name, const char *hidden,
                             struct plumb_error *err);

/* Both, for a table. */
enum plumb_code result_save(char **path, const struct result_name *name,
                            const struct plumb_table *table, const struct cli_view *view,
                            struct plumb_error *err);

/* The same for the bytes of a file. */
enum plumb_code result_write(char **path, const struct result_name *name, const void *bytes,
                             size_t size, struct plumb_error *err);

/* Writes the file of a mapping, data_mapping_TIME.yaml, and tells its name on `out` (NULL: nobody).
 * mapping NULL: there is none. */
enum plumb_code result_mapping(const char *mapping, const char *folder, FILE *out,
                               struct plumb_error *err);

#endif
