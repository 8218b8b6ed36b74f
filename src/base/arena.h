/* Memory that is freed all at once. Not thread-safe; one owner at a time. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;
struct spares;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    size_t bytes;               /* that they take */
    struct spares *spares;      /* where large blocks come from and go to; NULL: the system */
};

/* size bytes, zeroed, aligned for any type; NULL when out of memory. size 0 gives a valid
 * pointer. */
void *arena_alloc(struct arena *arena, size_t size);

/* count elements, zeroed; NULL when out of memory or when the product overflows. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* The same, not zeroed: for large arrays that are filled anyway. */
void *arena_room(struct arena *arena, size_t count, size_t size);

/* A block of arena_room made longer, `count` elements of which are in use; what follows them is not
 * zeroed. One that is large stays where it is as a rule, and is never there twice: that is what
 * arrays of unknown length are for. NULL when out of memory, and the block is as it was. A block of
 * NULL is a new one. */
void *arena_grow(struct arena *arena, void *block, size_t count, size_t more, size_t size);

/* A copy of length bytes plus a terminating NUL; NULL when out of memory. */
char *arena_copy(struct arena *arena, const char *text, size_t length);

/* Formatted text; NULL when out of memory. */
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Frees the large blocks that none of the pointers leads into; what is small stays. */
void arena_keep(struct arena *arena, const void *const *used, size_t n);

void arena_free(struct arena *arena);

#endif
