/* Memory that is freed all at once. */
#define _GNU_SOURCE
#include "base/arena.h"
#include "base/plain.h"
#include "base/spares.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    FIRST_BYTES = 1024,
    CHUNK_BYTES = 64 * 1024,
    WIDE_BYTES = 512 * 1024,
    ALIGN = _Alignof(max_align_t)
};

/* From HUGE_LEAST bytes on a chunk begins at a large page: touching memory for the first time by
 * pages of 4 KiB costs more than computing with it. The sanitizers know only what malloc gave. */
#ifdef __SANITIZE_ADDRESS__
#define HUGE_LEAST SIZE_MAX
#else
#define HUGE_LEAST ((size_t)4 << 20)
#endif
/* Blocks come from the front, aligned; texts, which need no alignment, from the back. */
struct arena_chunk {
    struct arena_chunk *next;
    size_t used, free; /* what is between them is neither */
    size_t capacity;
    size_t mapped; /* bytes from the chunk on that are mapped; 0: malloc gave it */
    bool own;      /* it holds a single large block */
    _Alignas(max_align_t) unsigned char bytes[];
};

static struct arena_chunk *map_chunk(const struct arena *arena, size_t size, bool zeroed)
{
    size_t length;
    bool dirty;
    struct arena_chunk *chunk = spares_take(arena->spares, size, &length, &dirty);
    if (!chunk)
        return NULL;
    chunk->mapped = length;
    if (zeroed && dirty)
        memset(chunk->bytes, 0, size - sizeof *chunk);
    return chunk;
}

/* Has all pages made at once: one by one, as they are written to, they cost more than what is
 * written. Kernels that cannot do it leave it at that. */
static void touch(void *block, size_t size)
{
#ifdef MADV_POPULATE_WRITE
    const uintptr_t page = 4096, first = ((uintptr_t)block + page - 1) / page * page;
    madvise((void *)first, ((uintptr_t)block + size - first) / page * page, MADV_POPULATE_WRITE);
#else
    (void)block, (void)size;
#endif
}

static struct arena_chunk *new_chunk(const struct arena *arena, size_t capacity, bool zeroed)
{
    const size_t size = sizeof(struct arena_chunk) + capacity;
    struct arena_chunk *chunk = size >= HUGE_LEAST ? map_chunk(arena, size, zeroed)
                                : zeroed           ? calloc(1, size)
                                                   : malloc(size);
    if (chunk && capacity == WIDE_BYTES)
        touch(chunk, size);
    if (chunk)
        *chunk = (struct arena_chunk){.free = capacity,
                                      .capacity = capacity,
                                      .mapped = size >= HUGE_LEAST ? chunk->mapped : 0};
    return chunk;
}

static void free_chunk(const struct arena *arena, struct arena_chunk *chunk)
{
    if (chunk->mapped)
        spares_give(arena->spares, chunk, chunk->mapped);
    else
        free(chunk);
}

/* A chunk of that size, with what the old one held, which is gone; NULL: it is as it was. Pages go
 * to their new place without being copied, and that begins at a large page again. */
static struct arena_chunk *grow_chunk(const struct arena *arena, struct arena_chunk *old,
                                      size_t size)
{
    if (!old->mapped && size < HUGE_LEAST)
        return realloc(old, size);
    if (old->mapped >= size)
        return old;
    struct arena_chunk *grown = map_chunk(arena, size, false);
    if (!grown)
        return NULL;
    const size_t length = grown->mapped, before = old->mapped;
    if (!old->mapped) {
        memcpy(grown, old, sizeof *old + old->capacity);
        free(old);
    } else if (mremap(old, old->mapped, length, MREMAP_MAYMOVE | MREMAP_FIXED, grown) ==
               MAP_FAILED) {
        spares_give(arena->spares, grown, length);
        return NULL;
    } else {
        spares_shrunk(arena->spares, before);
    }
    grown->mapped = length;
    return grown;
}

/* Chunks grow with the arena: there are many that hold a few texts, one for each call of a run, and
 * few that hold very many. */
static size_t next_capacity(const struct arena *arena, size_t size)
{
    size_t usual = arena->bytes > 4 * size ? arena->bytes : 4 * size;
    if (size > CHUNK_BYTES / 4)
        return size;
    if (arena->bytes >= 4 * WIDE_BYTES)
        return WIDE_BYTES;
    usual = (usual + ALIGN - 1) / ALIGN * ALIGN;
    return usual < FIRST_BYTES ? FIRST_BYTES : usual > CHUNK_BYTES ? CHUNK_BYTES : usual;
}

/* What lies in a chunk of its own is zeroed only when asked for; the others always are. */
static void *take(struct arena *arena, size_t size, bool zeroed)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;

    struct arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->free - chunk->used < size) {
        size_t capacity = next_capacity(arena, size);
        struct arena_chunk *fresh = new_chunk(arena, capacity, zeroed || capacity != size);
        if (!fresh)
            return NULL;
        arena->bytes += capacity;
        fresh->own = capacity == size;
        /* A large block gets a chunk of its own, behind the one that still has room. */
        if (chunk && capacity == size) {
            fresh->next = chunk->next;
            chunk->next = fresh;
        } else {
            fresh->next = chunk;
            arena->chunks = fresh;
        }
        chunk = fresh;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += size;
    return memory;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return take(arena, size, true);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    return size && count > SIZE_MAX / size ? NULL : take(arena, count * size, true);
}

void *arena_room(struct arena *arena, size_t count, size_t size)
{
    return size && count > SIZE_MAX / size ? NULL : take(arena, count * size, false);
}

/* The link to the chunk that holds nothing but this block, as those of more than the usual size do;
 * or NULL. */
static struct arena_chunk **own_chunk(struct arena *arena, const void *block)
{
    struct arena_chunk **link = &arena->chunks;
    while (*link && ((*link)->bytes != block || !(*link)->own))
        link = &(*link)->next;
    return *link ? link : NULL;
}

void *arena_grow(struct arena *arena, void *block, size_t count, size_t more, size_t size)
{
    if (size && more > SIZE_MAX / 2 / size)
        return NULL;
    struct arena_chunk **link = block ? own_chunk(arena, block) : NULL;
    if (!link) {
        void *fresh = take(arena, more * size, false);
        if (fresh && count)
            memcpy(fresh, block, count * size);
        return fresh;
    }
    const size_t capacity = (more * size + ALIGN - 1) / ALIGN * ALIGN;
    struct arena_chunk *grown = grow_chunk(arena, *link, sizeof *grown + capacity);
    if (!grown)
        return NULL;
    arena->bytes += capacity - grown->capacity;
    grown->used = grown->free = grown->capacity = capacity;
    *link = grown;
    return grown->bytes;
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
    struct arena_chunk *chunk = arena->chunks;
    char *copy;
    if (chunk && length < chunk->free - chunk->used) {
        chunk->free -= length + 1;
        copy = (char *)chunk->bytes + chunk->free;
    } else {
        copy = length < SIZE_MAX ? arena_alloc(arena, length + 1) : NULL;
    }
    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    char brief[256];
    va_list args;
    va_start(args, format);
    int length = plain_vprint(brief, sizeof brief, format, args);
    va_end(args);
    if (length < 0)
        return NULL;
    if ((size_t)length < sizeof brief)
        return arena_copy(arena, brief, (size_t)length);
    char *text = arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    plain_vprint(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

static bool is_used(const struct arena_chunk *chunk, const void *const *used, size_t n)
{
    const uintptr_t first = (uintptr_t)chunk->bytes;
    for (size_t i = 0; i < n; i++)
        if ((uintptr_t)used[i] >= first && (uintptr_t)used[i] < first + chunk->capacity)
            return true;
    return false;
}

void arena_keep(struct arena *arena, const void *const *used, size_t n)
{
    struct arena_chunk **link = &arena->chunks;
    while (*link) {
        struct arena_chunk *chunk = *link;
        if (chunk->own && chunk->capacity > CHUNK_BYTES && !is_used(chunk, used, n)) {
            *link = chunk->next;
            arena->bytes -= chunk->capacity;
            free_chunk(arena, chunk);
        } else {
            link = &chunk->next;
        }
    }
}

void arena_free(struct arena *arena)
{
    struct arena_chunk *chunk = arena->chunks;
    while (chunk) {
        struct arena_chunk *next = chunk->next;
        free_chunk(arena, chunk);
        chunk = next;
    }
    *arena = (struct arena){.spares = arena->spares};
}
