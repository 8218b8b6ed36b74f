/* The status of an API from those of its outputs, and its row in the result file. */
#ifndef PRECISION_API_H
#define PRECISION_API_H

#include "base/arena.h"
#include "base/map.h"
#include "task/precision/name.h"
#include "task/precision/write.h"

struct api_entry {
    struct csv_cell name, api;
    enum verdict forward, backward;
    bool unsupported;        /* the type of its last output */
    struct csv_cell message; /* of the worst output so far */
    enum verdict told;       /* what that output was */
    bool judged;             /* some output has a second opinion */
    enum plumb_word word;    /* the worst of them */
    struct csv_cell why;
};

/* Outputs of an API belong together wherever they stand, and rows are written at the end, in the
 * order of the first output. By stretch: an API ends where another begins, and what could not be
 * evaluated is written at once. */
struct api_list {
    const struct precision_profile *profile;
    struct precision_writer *writer; /* borrowed; need not be open before the first entry */
    struct api_entry *entries;       /* by stretch: the one that is still open */
    size_t count, capacity;
    struct map places;
    struct arena arena;
    size_t written;
    size_t counts[VERDICT_ERROR + 1]; /* of written rows, by the worse direction */
};

void api_list_init(struct api_list *list, const struct precision_profile *profile,
                   struct precision_writer *writer);
void api_list_free(struct api_list *list);

enum plumb_code api_list_add(struct api_list *list, const struct output_name *name,
                             enum verdict verdict, bool unsupported, const struct buf *message,
                             const struct opinions *opinions, struct plumb_error *err);

/* A row that belongs to no API, or could not be evaluated. */
enum plumb_code api_list_skip(struct api_list *list, struct csv_cell name,
                              const struct buf *message, struct plumb_error *err);

/* Writes what is left. */
void api_list_finish(struct api_list *list);

#endif
