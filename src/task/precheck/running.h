/* Which calls a check has under way, in a small file beside its results that goes when it ends: who
 * resumes a run that was killed for lack of memory knows what it died of. */
#ifndef PRECHECK_RUNNING_H
#define PRECHECK_RUNNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct running {
    int fd; /* -1: there is none */
    char path[4096];
};

/* The call, by its place in the dump, that took most of those that ran when the run behind this
 * result was killed. False unless the kernel has ended processes for lack of memory since then. */
bool running_killer(const char *result_path, size_t *call);

/* Without the file a resumed run knows less, so failures are not told. */
void running_create(struct running *running, const char *result_path);

/* The thread begins with the call, or knows that it takes so many bytes. Thread-safe. */
void running_note(const struct running *running, unsigned thread, size_t call, uint64_t bytes);

void running_remove(struct running *running);

#endif
