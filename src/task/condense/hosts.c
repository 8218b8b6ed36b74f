/* Listing the files of all hosts. */
#define _GNU_SOURCE
#include "task/condense/hosts.h"

#include "base/pack.h"
#include "run/walk.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char kind[] = "condense scan";

struct asking {
    const char *folder;
    bool sweep;
    unsigned count;
    struct buf *told; /* by every host; empty: it is lost */
};

/* ---- What a host says ------------------------------------------------------------------------ */

/* A path that stays inside of the folder. */
static bool is_inside(const char *path)
{
    if (!path || !*path || *path == '/')
        return false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (!at[2] || at[2] == '/'))
            return false;
    }
    return true;
}

static void pack_file(struct pack *pack, struct scan_file *file, struct arena *arena)
{
    int64_t seconds = file->changed.tv_sec, rest = file->changed.tv_nsec;
    pack_text(pack, &file->path, arena);
    pack_u64(pack, &file->device);
    pack_u64(pack, &file->inode);
    pack_u64(pack, &file->size);
    pack_i64(pack, &seconds);
    pack_i64(pack, &rest);
    pack_check(pack, is_inside(file->path) && rest >= 0 && rest < 1000000000);
    file->changed = (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)rest};
}

static void pack_folder(struct pack *pack, struct scan_folder *folder, struct arena *arena)
{
    int64_t error = folder->error;
    pack_text(pack, &folder->path, arena);
    pack_i64(pack, &error);
    pack_check(pack, folder->path && error > 0 && error < 4096);
    folder->error = (int)error;
}

/* Files, and folders that could not be read. there: the host has the folder at all. */
static void pack_scan(struct pack *pack, struct scan *scan, bool *there)
{
    struct arena *arena = pack->out ? NULL : &scan->arena;
    pack_bool(pack, there);
    pack_size(pack, &scan->file_count);
    if (!pack->out && pack_check(pack, scan->file_count <= pack->left))
        pack_check(pack,
                   (scan->files = arena_array(arena, scan->file_count + 1, sizeof *scan->files)));
    for (size_t i = 0; i < scan->file_count && !pack->bad; i++)
        pack_file(pack, &scan->files[i], arena);
    size_t odd = 0;
    for (size_t i = 0; pack->out && i < scan->folder_count; i++)
        odd += scan->folders[i].error != 0;
    pack_size(pack, &odd);
    if (!pack->out) {
        scan->folder_count = odd;
        if (pack_check(pack, odd <= pack->left))
            pack_check(pack, (scan->folders = arena_array(arena, odd + 1, sizeof *scan->folders)));
    }
    for (size_t i = 0; i < scan->folder_count && !pack->bad; i++)
        if (!pack->out || scan->folders[i].error)
            pack_folder(pack, &scan->folders[i], arena);
}

/* What a killed plumb left is swept only where no other is at work, as far as locks tell. */
static bool may_sweep(const char *folder, int *lock)
{
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) == 0;
}

static bool answer(void *context, const void *request, size_t size, struct buf *reply)
{
    const struct crew_places *places = context;
    struct arena arena = {0};
    struct pack in = pack_reader(request, size), out = pack_writer(reply);
    struct asking asking = {0};
    pack_text(&in, &asking.folder, &arena);
    pack_bool(&in, &asking.sweep);
    const char *here =
        pack_good(&in) && asking.folder ? crew_places_here(places, asking.folder, &arena) : NULL;
    bool fine = here;
    if (here) {
        struct scan scan;
        struct plumb_error none;
        int lock = -1;
        const bool sweep = asking.sweep && may_sweep(here, &lock);
        const enum plumb_code code = scan_folder(&scan, here, sweep, &none);
        bool there = !code;
        if (lock >= 0)
            close(lock);
        fine = code != PLUMB_E_NOMEM;
        pack_scan(&out, &scan, &there);
        scan_free(&scan);
    }
    arena_free(&arena);
    return fine && pack_good(&out);
}

struct crew_handler hosts_scan_handler(const struct crew_places *places)
{
    return (struct crew_handler){kind, (void *)(uintptr_t)places, answer};
}

/* ---- Asking all ------------------------------------------------------------------------------ */

static void ask(void *context, struct buf *request)
{
    struct asking *asking = context;
    struct pack pack = pack_writer(request);
    pack_text(&pack, &asking->folder, NULL);
    pack_bool(&pack, &asking->sweep);
}

/* The lock of the folder is this process's, so it may sweep. */
static void scan_here(void *context, struct buf *reply)
{
    const struct asking *asking = context;
    struct pack out = pack_writer(reply);
    struct scan scan;
    struct plumb_error none;
    const enum plumb_code code = scan_folder(&scan, asking->folder, asking->sweep, &none);
    bool there = !code;
    pack_scan(&out, &scan, &there);
    reply->failed = reply->failed || code == PLUMB_E_NOMEM;
    scan_free(&scan);
}

static bool take(void *context, unsigned host, const void *reply, size_t size)
{
    struct asking *asking = context;
    struct pack pack = pack_reader(reply, size);
    struct scan scan = {0};
    bool there = false;
    if (size)
        pack_scan(&pack, &scan, &there);
    const bool fine = !size || pack_good(&pack);
    scan_free(&scan);
    if (fine && size)
        buf_append(&asking->told[host], reply, size);
    return fine && !asking->told[host].failed;
}

/* ---- Taking them together -------------------------------------------------------------------- */

static int by_path_and_host(const void *a, const void *b)
{
    const struct scan_file *left = a, *right = b;
    const int order = walk_compare(left->path, right->path);
    return order ? order : left->host < right->host ? -1 : left->host > right->host;
}

static bool is_same(const struct scan_file *a, const struct scan_file *b)
{
    return a->inode == b->inode && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

static void set_host(struct scan_file *file, unsigned host)
{
    file->hosts[host / 8] |= (uint8_t)(1u << host % 8);
}

bool hosts_have(const struct scan_file *file, unsigned host)
{
    return !file->hosts || (file->hosts[host / 8] >> host % 8 & 1);
}

/* Files of one path, on several hosts, as one where they are one. False when out of memory. */
static bool join_files(struct scan *scan, unsigned hosts)
{
    size_t kept = 0, first = 0;
    if (scan->file_count)
        qsort(scan->files, scan->file_count, sizeof *scan->files, by_path_and_host);
    for (size_t i = 0; i < scan->file_count; i++) {
        struct scan_file file = scan->files[i];
        if (kept && strcmp(scan->files[kept - 1].path, file.path) != 0)
            first = kept;
        size_t at = first;
        while (at < kept && !is_same(&scan->files[at], &file))
            at++;
        if (at == kept) {
            file.hosts = arena_array(&scan->arena, hosts / 8 + 1, 1);
            if (!file.hosts)
                return false;
            scan->files[kept++] = file;
        }
        set_host(&scan->files[at], file.host);
    }
    scan->file_count = kept;
    return true;
}

static bool knows_folder(const struct scan *scan, const char *path)
{
    for (size_t i = 0; i < scan->folder_count; i++)
        if (strcmp(scan->folders[i].path, path) == 0)
            return true;
    return false;
}

/* Adds what a host said; its texts stay where its own scan is. False when out of memory. */
static bool add_host(struct scan *scan, const struct scan *more, unsigned host)
{
    struct scan_file *files = arena_grow(&scan->arena, scan->files, scan->file_count,
                                         scan->file_count + more->file_count + 1, sizeof *files);
    if (!files)
        return false;
    scan->files = files;
    struct scan_folder *folders =
        arena_grow(&scan->arena, scan->folders, scan->folder_count,
                   scan->folder_count + more->folder_count + 1, sizeof *folders);
    if (!folders)
        return false;
    scan->folders = folders;
    for (size_t i = 0; i < more->file_count; i++) {
        struct scan_file *file = &files[scan->file_count++];
        *file = more->files[i];
        file->host = host;
        if (!(file->path = arena_copy(&scan->arena, file->path, strlen(file->path))))
            return false;
    }
    for (size_t i = 0; i < more->folder_count; i++) {
        const char *path = more->folders[i].path;
        if (knows_folder(scan, path))
            continue;
        if (!(path = arena_copy(&scan->arena, path, strlen(path))))
            return false;
        folders[scan->folder_count++] =
            (struct scan_folder){.path = path, .error = more->folders[i].error};
    }
    return true;
}

static enum plumb_code join(struct scan *scan, const struct asking *asking, bool *lost,
                            struct plumb_error *err)
{
    bool fine = true, any = false;
    for (unsigned host = 0; host < asking->count && fine; host++) {
        const struct buf *told = &asking->told[host];
        struct pack pack = pack_reader(told->data, told->size);
        struct scan more = {0};
        bool there = false;
        if (told->size)
            pack_scan(&pack, &more, &there);
        lost[host] = !told->size;
        any = any || there;
        fine = !there || (pack_good(&pack) && add_host(scan, &more, host));
        scan_free(&more);
    }
    if (!fine || !join_files(scan, asking->count))
        return plumb_no_memory(err);
    if (any)
        return PLUMB_OK;
    plumb_fail(err, PLUMB_E_IO, "no host can read this folder");
    plumb_error_in_file(err, asking->folder);
    return PLUMB_E_IO;
}

enum plumb_code hosts_scan(struct scan *scan, struct plumb_crew *crew,
                           const struct crew_hosts *hosts, const char *folder, bool sweep,
                           bool *lost, struct plumb_error *err)
{
    struct asking asking = {.folder = folder, .sweep = sweep, .count = hosts->count};
    *scan = (struct scan){0};
    asking.told = calloc(hosts->count, sizeof *asking.told);
    if (!asking.told)
        return plumb_no_memory(err);
    const struct crew_question question = {kind, &asking, ask, scan_here, take};
    enum plumb_code code = crew_ask_hosts(crew, &question, hosts->count, err);
    if (!code)
        code = join(scan, &asking, lost, err);
    for (unsigned host = 0; host < hosts->count; host++)
        buf_free(&asking.told[host]);
    free(asking.told);
    return code;
}
