/* What a run is made of. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "dump/dump.h"
#include "format/format.h"
#include "run/stock.h"

/* One file, and the records [first, first+count) that came from it. */
struct source {
    const char *relative; /* path inside the folder, or NULL for a run of one file */
    const struct format *format;
    const struct format *like; /* of what was condensed: its names are still those; else format */
    uint64_t size;
    int64_t mtime_ns;
    size_t first, count;
    const struct index *index; /* that says what is in it, while the run is opened; or NULL */
};

/* Records [first, first+count) of one rank and step, one after the other. */
struct span {
    int64_t rank;
    size_t first, count;
};

struct plumb_run {
    const int64_t *only; /* of a dump, while it is opened: the rank that is wanted; NULL: all */
    bool others;         /* while it is opened: other hosts have more ranks of the dump */
    struct arena arena;
    const char *path, *kind;
    struct listing listing;
    struct holder *holder;  /* of files with more tensors than one; NULL: there is none */
    struct source *sources; /* in order, without those that hold nothing */
    size_t source_count;
    size_t ignored;
    struct dump_tree *trees; /* of a dump; their rows are gone, the texts are in use */
    size_t tree_count, tree_capacity;
    const char **warnings; /* those of the dump that cost no row */
    size_t warning_count;
    struct span *spans; /* all records, so that those of a rank are found without the others; NULL:
                           somebody else listed the records */
    size_t span_count;
    struct stock stock; /* where there are spans */
    /* Of records that somebody else listed, from files that are no run; NULL: as their format
     * says. */
    enum plumb_code (*load)(const struct plumb_record *record, struct plumb_payload *payload,
                            struct plumb_error *err);
    const char *level;  /* of dumps whose trees belong to another run, or NULL */
    const char *shards; /* what was put together from ranks, in lines for people; or NULL */
};

/* Marks records unreadable that make the run far larger than its files. */
enum plumb_code promise_keep(struct plumb_run *run);

/* Fills spans and stock. */
enum plumb_code spans_list(struct plumb_run *run);

/* Opens run->path as a dump; *found stays false, without an error, when it is none. */
enum plumb_code dumps_open(struct plumb_run *run, bool *found, struct plumb_error *err);
void dumps_free(struct plumb_run *run);

/* A rank of a dump whose ranks are on several hosts, as if all of them were here. */
struct run_part {
    bool none;   /* this rank is nowhere */
    bool others; /* some of the other ranks are elsewhere */
};
enum plumb_code run_open_part(struct plumb_run **run, const char *path, int64_t rank,
                              const struct run_part *part, struct plumb_error *err);

/* Calls see(context, rank, path) for every dump.json below a path, in the order of a run, without
 * reading it; nothing when the path is no dump. bare: also for rank folders without one, where no
 * other rank has one either. False from see ends it as if out of memory. */
enum plumb_code dumps_look(const char *path, bool bare,
                           bool (*see)(void *context, int64_t rank, const char *json),
                           void *context, struct plumb_error *err);

/* Calls say(context, line) for every step of a dump that has files beside its rank folders. */
void dumps_strays(const char *path, void (*say)(void *context, const char *line), void *context);

/* Adds a line, which lives as long as the run. */
enum plumb_code dumps_warn(struct plumb_run *run, const char *text);

/* Opens run->path as a folder tree of files, by the index `only` (a name there; NULL: by the one
 * that counts, if any); as the index of one, which becomes the path; or as one file. */
enum plumb_code folder_open(struct plumb_run *run, const char *only, struct plumb_error *err);
enum plumb_code folder_open_index(struct plumb_run *run, struct plumb_error *err);
enum plumb_code folder_open_file(struct plumb_run *run, struct plumb_error *err);

/* Opens run->path as a distributed checkpoint of PyTorch; *found stays false, without an error,
 * when it is none. */
enum plumb_code distcp_open(struct plumb_run *run, bool *found, struct plumb_error *err);

/* Loads a record of a dump from the file that it names. */
enum plumb_code dumps_load(const struct plumb_record *record, struct plumb_payload *payload,
                           struct plumb_error *err);

#endif
