/* The two files of api_precision_compare: whole under their names, or not there at all. */
#ifndef PRECISION_WRITE_H
#define PRECISION_WRITE_H

#include "base/output.h"
#include "report/sink.h"
#include "task/precision/opinion.h"
#include "verdict/profile.h"

enum precision_file { FILE_DETAILS, FILE_RESULT, FILE_COUNT };

struct precision_writer {
    const struct precheck_dialect *dialect;
    const char *folder;
    bool opinions;   /* the files have columns for them */
    struct buf text; /* a cell that shall end with a NUL */
    struct {
        char *path; /* once it is committed */
        struct output output;
        struct sink *sink;
    } files[FILE_COUNT];
};

/* Begins both files, in a folder whose name outlives the writer. */
enum plumb_code precision_writer_open(struct precision_writer *writer, const char *folder,
                                      const struct precheck_dialect *dialect, bool opinions,
                                      struct plumb_error *err);

/* Failures of writing stay until the commit; out of memory too. */
void precision_write_details(struct precision_writer *writer, struct csv_cell name,
                             const struct judged *judged, const struct opinions *opinions);
void precision_write_result(struct precision_writer *writer, struct csv_cell name,
                            enum verdict forward, enum verdict backward, struct csv_cell message,
                            const char *word, struct csv_cell why);

/* Puts both files on the disk and gives them names of the next second that has none of the two yet.
 * Where that fails neither is left. */
enum plumb_code precision_writer_commit(struct precision_writer *writer, struct plumb_error *err);

/* Removes what was not committed, and releases the writer. Paths that were committed are the
 * caller's when it took them (and set them to NULL here). All zero is fine. */
void precision_writer_close(struct precision_writer *writer);

#endif
