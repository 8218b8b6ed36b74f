/* Running plumb-h5, the program that talks to libhdf5 in plumb's stead (h5/protocol.h).
 *
 * Whatever the helper does (crash, hang, talk nonsense, not exist) is an error of the call. Every
 * helper started is waited for. Thread-safe on different objects. */
#ifndef FORMAT_H5PROC_H
#define FORMAT_H5PROC_H

#include "plumb/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* A running helper. */
struct h5proc {
    pid_t pid;
    int in, out, err; /* our ends of its standard streams; -1 when not connected */
    int64_t deadline; /* milliseconds of the monotonic clock */
    char text[512];   /* the start of what it said on stderr */
    size_t text_size;
};

/* Starts the helper with up to five arguments, argv[0] excluded and NULL at the end. feed: its
 * stdin is for h5proc_send and its stdout goes nowhere; else its stdout is for h5proc_collect. It
 * has `seconds` to live, or PLUMB_H5_TIMEOUT of the environment. On failure there is nothing to
 * release. */
enum plumb_code h5proc_start(struct h5proc *proc, const char *const arguments[], bool feed,
                             double seconds, struct plumb_error *err);

/* All of its stdout, malloc'd, limit bytes at most; more is an error. Memory grows with what comes,
 * from `expected` bytes on. Does not end the helper. */
enum plumb_code h5proc_collect(struct h5proc *proc, size_t expected, size_t limit, void **data,
                               size_t *size, struct plumb_error *err);

/* Sends bytes, and gives the helper `seconds` from now. When the helper is gone, this fails and
 * h5proc_finish tells why. */
enum plumb_code h5proc_send(struct h5proc *proc, const void *bytes, size_t size, double seconds,
                            struct plumb_error *err);

/* Waits for one byte, the answer to what was sent. When the helper is gone, as h5proc_send. */
enum plumb_code h5proc_answer(struct h5proc *proc, double seconds, struct plumb_error *err);

/* Closes the streams, waits for the helper to end, and turns its exit into an error. */
enum plumb_code h5proc_finish(struct h5proc *proc, struct plumb_error *err);

/* Ends the helper by force. */
void h5proc_kill(struct h5proc *proc);

/* Finds the helper: the environment's PLUMB_H5, else near the running program or library, else
 * where it was to be installed. Fills path; the error names the places. */
enum plumb_code h5proc_find(char *path, size_t size, struct plumb_error *err);

#endif
