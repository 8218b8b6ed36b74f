/* Names of files in a folder, and of the records in them. */
#ifndef RUN_FOLDER_H
#define RUN_FOLDER_H

#include "run/run.h"

const char *folder_base_name(const char *path);

/* The length of path without its ending. */
size_t folder_stem(const char *path);

/* The global rank in "globalrank-3_localrank-1.h5", or -1. */
int64_t folder_rank(const char *path);

/* Gives records names that are unique in the folder, and no longer than that takes.
 * PLUMB_E_NOMEM. */
enum plumb_code folder_name_records(struct plumb_run *run);

#endif
