/* Files that stay mapped. */
#define _GNU_SOURCE
#include "base/held.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Address space and kernel memory are cheap; that many files with small parts in turn are rare. */
enum { MOST = 64 };

struct plumb_held {
    struct plumb_file file;
    const char *path;
    atomic_uint users;   /* the holder is one of them */
    atomic_bool spoiled; /* zeros stand for pages that were gone */
};

struct holder {
    pthread_mutex_t lock;
    struct plumb_held *files[MOST];
    size_t next; /* where the next one goes: the place of the oldest */
    size_t last; /* where the last one was found */
};

void held_release(struct plumb_held *held)
{
    if (atomic_fetch_sub(&held->users, 1) != 1)
        return;
    plumb_file_unmap(&held->file);
    free(held);
}

void held_spoil(struct plumb_held *held)
{
    atomic_store(&held->spoiled, true);
}

bool held_is_spoiled(const struct plumb_held *held)
{
    return atomic_load(&held->spoiled);
}

struct holder *holder_new(void)
{
    struct holder *holder = calloc(1, sizeof *holder);
    if (holder)
        pthread_mutex_init(&holder->lock, NULL);
    return holder;
}

static void drop(struct holder *holder, size_t place)
{
    if (holder->files[place])
        held_release(holder->files[place]);
    holder->files[place] = NULL;
}

void holder_free(struct holder *holder)
{
    if (!holder)
        return;
    for (size_t i = 0; i < MOST; i++)
        drop(holder, i);
    pthread_mutex_destroy(&holder->lock);
    free(holder);
}

/* Is what is at the path the file that was mapped, as it was then? */
static bool is_current(const struct plumb_held *held)
{
    struct stat st;
    return !held_is_spoiled(held) && stat(held->path, &st) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size == held->file.file_size &&
           (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec == held->file.mtime_ns;
}

/* The file of that path, with one user more; NULL: there is none. */
static struct plumb_held *find(struct holder *holder, const char *path)
{
    struct plumb_held *found = NULL;
    pthread_mutex_lock(&holder->lock);
    for (size_t i = 0; i < MOST && !found; i++) {
        const size_t place = (holder->last + i) % MOST;
        if (!holder->files[place] || holder->files[place]->path != path)
            continue;
        holder->last = place;
        found = holder->files[place];
        atomic_fetch_add(&found->users, 1);
    }
    pthread_mutex_unlock(&holder->lock);
    return found;
}

/* Puts it into the place of the oldest, or of the one that it is the new state of. */
static void keep(struct holder *holder, struct plumb_held *held)
{
    pthread_mutex_lock(&holder->lock);
    size_t place = 0;
    while (place < MOST && (!holder->files[place] || holder->files[place]->path != held->path))
        place++;
    if (place == MOST) {
        place = holder->next;
        holder->next = (place + 1) % MOST;
    }
    drop(holder, place);
    holder->files[place] = held;
    holder->last = place;
    pthread_mutex_unlock(&holder->lock);
}

enum plumb_code holder_map(struct holder *holder, const char *path, struct plumb_file *file,
                           struct plumb_error *err)
{
    *file = (struct plumb_file){0};
    struct plumb_held *held = find(holder, path);
    if (held && !is_current(held)) {
        held_release(held);
        held = NULL;
    }
    if (!held) {
        held = calloc(1, sizeof *held);
        if (!held)
            return plumb_no_memory(err);
        enum plumb_code code = plumb_file_map(&held->file, path, 0, UINT64_MAX, err);
        if (code) {
            free(held);
            return code;
        }
        held->path = path;
        atomic_store(&held->users, 2); /* the holder, and whoever asks */
        keep(holder, held);
    }
    *file = held->file;
    file->held = held;
    return PLUMB_OK;
}
