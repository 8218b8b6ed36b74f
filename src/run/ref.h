/* A record of a run as another process can find it: without the run, by the file that holds it. */
#ifndef RUN_REF_H
#define RUN_REF_H

#include "base/pack.h"
#include "crew/places.h"
#include "plumb/run.h"

struct run_ref {
    const char *path;
    bool dump;         /* the only tensor of a data file of a dump */
    size_t index;      /* else: which tensor of the file */
    uint64_t count;    /* its elements */
    const char *shape; /* as dump.json has it, or NULL */
    uint64_t size;     /* of the file when it was listed; of a dump: 0 */
    int64_t mtime_ns;
};

/* False when the record cannot be read anyway, or only through its run. */
bool run_ref_of(const struct plumb_run *run, size_t index, struct run_ref *ref);

void run_ref_pack(struct pack *pack, struct run_ref *ref, struct arena *arena);

/* What changes when the file does, as far as this host sees; 0: it does not see the file. */
uint64_t run_ref_stamp(const struct run_ref *ref, const struct crew_places *places);

/* Files that were listed, the last few of them. Any thread may load. */
struct run_files;

/* places may be NULL, and is kept. NULL when out of memory. */
struct run_files *run_files_new(const struct crew_places *places);
void run_files_free(struct run_files *files);

/* As plumb_run_load of the record. The payload does not depend on the files. */
enum plumb_code run_files_load(struct run_files *files, const struct run_ref *ref,
                               struct plumb_payload *payload, struct plumb_error *err);

#endif
