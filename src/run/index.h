/* Indexes of checkpoints in several files: "weight_map" says which tensor is in which file.
 *
 * An index governs its folder and what is below. What it says is never believed: files are found
 * among those that the folder was seen to have, tensors in what these hold, and what does not agree
 * becomes a record with an error, or a warning of the run. */
#ifndef RUN_INDEX_H
#define RUN_INDEX_H

#include "base/map.h"
#include "run/run.h"
#include "run/walk.h"

#define INDEX_ENDING ".index.json"

/* A file that an index names. */
struct named {
    const char *path;                /* as it would be in the walk: below the folder of the run */
    const char *said;                /* in the index */
    const struct plumb_error *error; /* why it cannot be read, or NULL */
    bool seen;                       /* in the folder */
};

struct wanted {
    const char *name;
    size_t length;
    const struct named *file; /* NULL: the index names none */
    const char *elsewhere;    /* another file that has a tensor of that name, or NULL */
    bool found;
};

/* Things to warn of: how many, and the first. */
struct oddity {
    size_t count;
    const char *what, *where;
};

/* Lives from indexes_read to indexes_free; its texts are the run's. */
struct index {
    const char *path; /* of the index, relative to the run's */
    size_t folder;    /* bytes of it that are the folder's, with the slash */
    struct wanted *wanted;
    size_t count, room;
    struct named **files;
    size_t file_count, file_room;
    struct map by_name, by_path; /* 1 + the number of wanted and files */
    bool safetensors;            /* does the first file end so? */
    struct oddity twice, copies, unknown, strangers;
};

/* All that were found below a folder; none governs the folder of another. */
struct indexes {
    struct index **list;
    size_t count;
};

/* Reads those among the files of a walk. Where a folder has several, `only` counts (a path relative
 * to the folder, or NULL), else the first that names files of safetensors, else the first. Those
 * that cannot be read or do not count are warned of. PLUMB_E_NOMEM. Free with indexes_free. */
enum plumb_code indexes_read(struct indexes *indexes, struct plumb_run *run,
                             const struct walk *walk, const char *only);
void indexes_free(struct indexes *indexes);

/* The index that governs a file; NULL: none. */
struct index *indexes_of(const struct indexes *indexes, const char *path);

/* The length of the path of its folder, without a slash; 0 for the top. */
size_t index_folder(const struct index *index);

/* Does it name this file? Then the file counts as seen. */
bool index_names_file(struct index *index, const char *path);

/* Keeps of the records of a source, the last of the run, those that the index has in this file, and
 * those that it has nowhere. */
void index_keep(struct index *index, struct plumb_run *run, struct source *source);

/* A file that it names cannot be read: its tensors get this error. PLUMB_E_NOMEM. */
enum plumb_code index_lose(struct index *index, struct plumb_run *run, const char *path,
                           const struct plumb_error *why);

/* Adds a record with an error for every tensor that is not where it should be, as source, and the
 * warnings. PLUMB_E_NOMEM. */
enum plumb_code index_finish(struct index *index, struct plumb_run *run, struct source *source);

/* ---- Of both files --------------------------------------------------------------------------- */

void index_note(struct oddity *oddity, const char *what, const char *where);

/* Warns: "PATH: BEFORE NAME AFTER", where PATH and NAME are a stranger's. */
enum plumb_code index_warn(struct plumb_run *run, const char *path, const char *before,
                           const char *name, const char *after);

#endif
