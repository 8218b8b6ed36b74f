/* A run: the ordered tensors that one execution of a model left behind, whatever wrote them.
 *
 * A run is opened from a file of a format that plumb reads, from a folder tree of such files (by an
 * index, *.index.json, where there is one; or that file), or from a dump: a dump.json, the folder
 * that holds it, a step folder with rank* or proc* below it, or a folder of step* folders. What a
 * file is, is decided by its content. Opening reads structure only; payloads are mapped or decoded
 * one at a time by plumb_run_load. An open run does not change: any number of threads may load from
 * it at once. */
#ifndef PLUMB_RUN_H
#define PLUMB_RUN_H

#include "plumb/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_run;

/* Opens path. A file that cannot be read inside a folder becomes one record with an error; a single
 * file that cannot be read is an error of the call. *run is set only on success. */
enum plumb_code plumb_run_open(struct plumb_run **run, const char *path, struct plumb_error *err);

/* The same of one rank of a dump, as if the others were not there; what is no dump is opened as a
 * whole. A rank that the dump does not have gives a run without records. */
enum plumb_code plumb_run_open_rank(struct plumb_run **run, const char *path, int64_t rank,
                                    struct plumb_error *err);

/* Ranks of dumps, ascending, each once. */
struct plumb_ranks {
    int64_t *list; /* malloc: the caller frees it, after a failure too */
    size_t count;
};

/* Adds the ranks that a dump has folders of, without reading them; nothing for what is no dump. -1
 * is the rank of folders that have no number. PLUMB_E_NOMEM. */
enum plumb_code plumb_run_ranks(struct plumb_ranks *ranks, const char *path,
                                struct plumb_error *err);

void plumb_run_free(struct plumb_run *run); /* NULL is fine */

size_t plumb_run_count(const struct plumb_run *run);
const struct plumb_record *plumb_run_record(const struct plumb_run *run, size_t index);

const char *plumb_run_path(const struct plumb_run *run);

/* What plumb took it for: the name of a format ("npy", "safetensors", ...), "folder", "index" (a
 * folder whose index says which tensor is in which file), "distcp", or "dump". */
const char *plumb_run_kind(const struct plumb_run *run);

/* Files inside a folder that plumb does not read (their number). */
size_t plumb_run_ignored(const struct plumb_run *run);

/* What was odd but cost no record, a line each; NULL from the number of such lines on. */
const char *plumb_run_warning(const struct plumb_run *run, size_t index);

/* Loads record `index`. On success the caller releases the payload; on failure there is nothing to
 * release. Touch mapped bytes only under a guard (plumb_file_guard_enter, file.h). */
enum plumb_code plumb_run_load(const struct plumb_run *run, size_t index,
                               struct plumb_payload *payload, struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
