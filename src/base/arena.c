/* Memory that is freed all at once. */
#include "base/arena.h"
#include "base/plain.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024, ALIGN = _Alignof(max_align_t) };

/* Blocks come from the front, aligned; texts, which need no alignment, from the back. */
struct arena_chunk {
    struct arena_chunk *next;
    size_t used, free; /* what is between them is neither */
    size_t capacity;
    _Alignas(max_align_t) unsigned char bytes[];
};

/* What lies in a chunk of its own is zeroed only when asked for; the others always are. */
static void *take(struct arena *arena, size_t size, bool zeroed)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;

    struct arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->free - chunk->used < size) {
        size_t capacity = size > CHUNK_BYTES / 4 ? size : CHUNK_BYTES;
        struct arena_chunk *fresh = zeroed || capacity != size ? calloc(1, sizeof *fresh + capacity)
                                                               : malloc(sizeof *fresh + capacity);
        if (!fresh)
            return NULL;
        *fresh = (struct arena_chunk){.free = capacity, .capacity = capacity};
        arena->bytes += capacity;
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
    while (*link && ((*link)->bytes != block || (*link)->capacity <= CHUNK_BYTES))
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
    struct arena_chunk *grown = realloc(*link, sizeof *grown + capacity);
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
        if (chunk->capacity > CHUNK_BYTES && !is_used(chunk, used, n)) {
            *link = chunk->next;
            arena->bytes -= chunk->capacity;
            free(chunk);
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
        free(chunk);
        chunk = next;
    }
    *arena = (struct arena){0};
}
