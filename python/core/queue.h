/* Files written on a thread of their own. Knows nothing of Python.
 *
 * Jobs run in the order they were given. Failures are kept until somebody asks. A queue belongs to
 * the process that made it; after a fork the child leaves it alone and makes one of its own, which
 * has no thread: there, the caller writes. */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include "plumb/tensor.h"

#include <sys/types.h>

enum queue_kind { QUEUE_SAVE, QUEUE_OPEN, QUEUE_ADD, QUEUE_SYNC, QUEUE_CLOSE, QUEUE_ENTRY };

/* What the JSON files of entries end in; _capture/dump.py begins them. */
#define QUEUE_ENTRY_END "\n }\n}"

struct queue_job {
    enum queue_kind kind;
    char *name;   /* path of save and open, tensor's name of add, text of entry; malloc'd */
    int64_t file; /* open, add, sync, close: the number of the H5 file; entry: a descriptor */
    int64_t step; /* add; entry: where the first one begins */
    int64_t call; /* add: which call of the module, or -1 */
    int64_t global_rank, local_rank;   /* open */
    const struct plumb_tensor *tensor; /* save, add */
};

struct queue_error {
    char *name, *message;
};

struct queue;

/* Files with numbers below first_file belong to another process and are refused. NULL when out of
 * memory. With no thread to be had, it works like one without. */
struct queue *queue_new(uint64_t budget, bool threaded, int64_t first_file);

pid_t queue_owner(const struct queue *queue);

/* Takes the job and its name, and a copy of the tensor, when there is room within `milliseconds`;
 * false when there was none, and nothing was taken. A tensor larger than the budget is written
 * before the call returns. */
bool queue_put(struct queue *queue, const struct queue_job *job, int milliseconds);

/* Waits until all that was put before is written; false when time is up. */
bool queue_flush(struct queue *queue, uint64_t ticket, int milliseconds);
uint64_t queue_ticket(struct queue *queue); /* of the last job put */

/* Whether an open H5 file failed: it takes nothing more. */
bool queue_broken(struct queue *queue, int64_t number);

/* What failed, and forgets it: malloc'd. */
struct queue_error *queue_errors(struct queue *queue, size_t *count);
void queue_errors_free(struct queue_error *errors, size_t count);

/* Writes what waits, finishes every open file, ends the thread. Errors stay to be asked for. Later
 * jobs are written by their callers. */
void queue_close(struct queue *queue);

/* After queue_close. */
void queue_free(struct queue *queue);

#endif
