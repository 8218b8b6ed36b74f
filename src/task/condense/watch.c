/* Waiting for changes with inotify, or by sleeping. */
#define _GNU_SOURCE
#include "task/condense/watch.h"

#include "format/condensed.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

void watch_open(struct watch *watch)
{
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void watch_close(struct watch *watch)
{
    if (watch->fd >= 0)
        close(watch->fd);
    watch->fd = -1;
}

/* Folders that cannot be watched, for instance because there are too many, are found by the scans
 * that happen anyway. */
void watch_add(struct watch *watch, const char *top, const struct scan *scan)
{
    for (size_t i = 0; watch->fd >= 0 && i < scan->folder_count; i++) {
        char *path = NULL;
        const char *inner = scan->folders[i].path;
        if (!scan->folders[i].error && asprintf(&path, "%s/%s", top, inner) >= 0) {
            inotify_add_watch(watch->fd, path,
                              IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR);
            free(path);
        }
    }
}

/* Takes what has been reported; true when it is about a file that is not hidden, as our own
 * temporary ones are. */
static bool take_events(const struct watch *watch)
{
    _Alignas(struct inotify_event) char room[16 * 1024];
    bool found = false;
    for (ssize_t got; (got = read(watch->fd, room, sizeof room)) > 0;)
        for (ssize_t at = 0; at < got;) {
            struct inotify_event event; /* without its name, which follows */
            memcpy(&event, room + at, sizeof event);
            const char *name = event.len ? room + at + sizeof event : "";
            size_t length = strnlen(name, event.len), tail = strlen(CONDENSED_ENDING);
            bool ours = name[0] == '.' ||
                        (length > tail && !memcmp(name + length - tail, CONDENSED_ENDING, tail));
            found |= !ours || (event.mask & IN_Q_OVERFLOW);
            at += (ssize_t)(sizeof event + event.len);
        }
    return found;
}

bool watch_wait(struct watch *watch, double seconds)
{
    struct pollfd events = {.fd = watch->fd, .events = POLLIN};
    int timeout = seconds > 3600 ? 3600 * 1000 : seconds > 0 ? (int)(seconds * 1000) + 1 : 0;
    return poll(&events, 1, timeout) > 0 && watch->fd >= 0 && take_events(watch);
}
