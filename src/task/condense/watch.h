/* Waiting until something happens in a folder tree. */
#ifndef CONDENSE_WATCH_H
#define CONDENSE_WATCH_H

#include "task/condense/scan.h"

struct watch {
    int fd; /* of inotify, or -1: then waiting is only sleeping */
};

void watch_open(struct watch *watch);
void watch_close(struct watch *watch);

/* Also watches the folders of a scan; those that are watched already stay so. */
void watch_add(struct watch *watch, const char *top, const struct scan *scan);

/* Waits for at most so many seconds; true when a file or folder came, was written or was closed.
 * Signals end the wait. */
bool watch_wait(struct watch *watch, double seconds);

#endif
