/* What a host sees of dumps. */
#define _GNU_SOURCE
#include "run/look.h"

#include "base/mapped.h"
#include "crew/journal.h"
#include "run/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 16 };

static uint64_t mix(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return sum ^ sum >> 29;
}

struct looking {
    const char *path, *here; /* by its name, and where it is on this host */
    struct looks looks;
    struct arena *arena;
    size_t side;
    const struct look_request *request;
    uint64_t *contents; /* of what is wanted */
};

size_t look_place(const void *list, size_t count, size_t size, int64_t rank)
{
    size_t low = 0;
    for (size_t high = count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (*(const int64_t *)((const char *)list + middle * size) < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *look_make_room(struct arena *arena, void *list, size_t *count, size_t *capacity, size_t at,
                     size_t size)
{
    if (*count == *capacity) {
        const size_t more = *capacity ? *capacity * 2 : 64;
        list = arena_grow(arena, list, *count, more, size);
        if (!list)
            return NULL;
        *capacity = more;
    }
    char *place = (char *)list + at * size;
    memmove(place + size, place, (*count - at) * size);
    memset(place, 0, size);
    ++*count;
    return list;
}

static bool see(void *context, int64_t rank, const char *json)
{
    struct looking *looking = context;
    struct looks *looks = &looking->looks;
    const char *name = json + strlen(looking->here);
    const size_t at = look_place(looks->list, looks->count, sizeof *looks->list, rank);
    struct stat st;
    if (at == looks->count || looks->list[at].rank != rank) {
        struct look *list = look_make_room(looking->arena, looks->list, &looks->count,
                                           &looks->capacity, at, sizeof *list);
        if (!list)
            return false;
        looks->list = list;
        list[at].rank = rank;
        list[at].json = arena_printf(looking->arena, "%s%s", looking->path, name);
        if (!list[at].json)
            return false;
    }
    struct look *look = &looks->list[at];
    if (stat(json, &st) != 0 || !S_ISREG(st.st_mode))
        return true;
    look->files++;
    look->form = mix(mix(look->form, crew_hash(name, strlen(name))), (uint64_t)st.st_size);
    look->stamp = mix(mix(look->stamp, (uint64_t)st.st_mtim.tv_sec), (uint64_t)st.st_mtim.tv_nsec);
    return true;
}

/* Names and sizes of all files below a folder, in any order. */
static uint64_t tree_sum(int parent, const char *name, uint64_t above, unsigned depth)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    uint64_t sum = 0;
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return 1;
    }
    for (const struct dirent *entry; (entry = readdir(folder));) {
        struct stat st = {0};
        const char *file = entry->d_name;
        if (strcmp(file, ".") == 0 || strcmp(file, "..") == 0)
            continue;
        const uint64_t called = mix(above, crew_hash(file, strlen(file)));
        const bool there = fstatat(dirfd(folder), file, &st, 0) == 0;
        if (there && S_ISDIR(st.st_mode) && depth < MAX_DEPTH)
            sum += tree_sum(dirfd(folder), file, called, depth + 1);
        else
            sum += mix(called, there ? (uint64_t)st.st_size : UINT64_MAX);
    }
    closedir(folder);
    return sum;
}

/* What a dump.json says. One that cannot be read is as good as none. */
static uint64_t file_sum(const char *path)
{
    struct mapped in;
    struct plumb_error err;
    uint64_t sum = 0;
    if (mapped_open(&in, path, &err))
        return 0;
    sum = crew_hash(in.file.data, (size_t)in.file.size);
    return mapped_close(&in, PLUMB_OK, &err) ? 0 : sum;
}

static bool see_contents(void *context, int64_t rank, const char *json)
{
    struct looking *looking = context;
    for (size_t i = 0; i < looking->request->count; i++) {
        const struct look_wanted *wanted = &looking->request->wanted[i];
        if (wanted->side != looking->side || wanted->rank != rank)
            continue;
        char *folder = strdup(json);
        if (!folder)
            return false;
        folder[strrchr(folder, '/') ? strrchr(folder, '/') - folder : 0] = 0;
        looking->contents[i] = mix(mix(looking->contents[i], file_sum(json)),
                                   tree_sum(AT_FDCWD, strchr(json, '/') ? folder : ".", 0, 0));
        free(folder);
    }
    return true;
}

void look_pack_request(struct pack *pack, struct look_request *request, struct arena *arena)
{
    bool contents = request->wanted;
    pack_size(pack, &request->sides);
    pack_check(pack, request->sides <= LOOK_SIDES);
    for (size_t k = 0; k < request->sides && !pack->bad; k++) {
        pack_text(pack, &request->paths[k], arena);
        pack_check(pack, request->paths[k]);
    }
    pack_bool(pack, &contents);
    pack_size(pack, &request->count);
    struct look_wanted *list = (struct look_wanted *)(uintptr_t)request->wanted;
    if (!pack->out && pack_check(pack, request->count <= pack->left))
        pack_check(pack, (list = arena_array(arena, request->count, sizeof *list)));
    for (size_t i = 0; i < request->count && !pack->bad; i++) {
        pack_size(pack, &list[i].side);
        pack_i64(pack, &list[i].rank);
    }
    request->wanted = contents ? list : NULL;
}

void look_pack(struct pack *pack, struct looks *looks, struct arena *arena)
{
    pack_size(pack, &looks->count);
    if (!pack->out && pack_check(pack, looks->count <= pack->left))
        pack_check(pack, (looks->list = arena_array(arena, looks->count, sizeof *looks->list)));
    for (size_t i = 0; i < looks->count && !pack->bad; i++) {
        struct look *look = &looks->list[i];
        pack_i64(pack, &look->rank);
        pack_text(pack, &look->json, arena);
        pack_size(pack, &look->files);
        pack_u64(pack, &look->form);
        pack_u64(pack, &look->stamp);
        pack_check(pack, look->json && (!i || look->rank > look[-1].rank));
    }
}

bool look_answer(const struct crew_places *places, const void *bytes, size_t size,
                 struct buf *reply)
{
    struct arena arena = {0};
    struct pack in = pack_reader(bytes, size), out = pack_writer(reply);
    struct look_request request = {0};
    struct plumb_error err;
    look_pack_request(&in, &request, &arena);
    bool fine = pack_good(&in);
    uint64_t *contents = arena_array(&arena, request.count, sizeof *contents);
    fine = fine && contents;
    for (size_t side = 0; side < request.sides && fine; side++) {
        struct looking looking = {.path = request.paths[side],
                                  .here = crew_places_here(places, request.paths[side], &arena),
                                  .arena = &arena,
                                  .side = side,
                                  .request = &request,
                                  .contents = contents};
        fine = looking.here &&
               !dumps_look(looking.here, true, request.wanted ? see_contents : see, &looking, &err);
        if (fine && !request.wanted)
            look_pack(&out, &looking.looks, NULL);
    }
    for (size_t i = 0; i < request.count && fine; i++)
        pack_u64(&out, &contents[i]);
    arena_free(&arena);
    return fine && pack_good(&out);
}
