/* Result files that get their name from the time: DIR/compare_result_YYYYmmddHHMMSS.csv. */
#ifndef CLI_RESULT_H
#define CLI_RESULT_H

#include "plumb/error.h"

#include <stdio.h>

/* Makes sure that a folder is there, making its last part when it is missing. */
enum plumb_code result_folder(const char *folder, struct plumb_error *err);

/* Makes an empty file of a name that nobody had, for cli_save to replace. folder NULL: the current
 * one. The caller frees *path. */
enum plumb_code result_reserve(char **path, const char *folder, const char *ending,
                               struct plumb_error *err);

/* The same with another beginning than compare_result. */
enum plumb_code result_reserve_as(char **path, const char *folder, const char *stem,
                                  const char *ending, struct plumb_error *err);

/* The same with the time in UTC. */
enum plumb_code result_reserve_utc(char **path, const char *folder, const char *stem,
                                   const char *ending, struct plumb_error *err);

/* Writes the file of a mapping, data_mapping_TIME.yaml, and tells its name on `out` (NULL: nobody).
 * mapping NULL: there is none. */
enum plumb_code result_mapping(const char *mapping, const char *folder, FILE *out,
                               struct plumb_error *err);

#endif
