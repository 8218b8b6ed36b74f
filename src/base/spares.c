/* Large pages, mapped and kept for the next one. */
#define _GNU_SOURCE
#include "base/spares.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#define LARGE_PAGE ((size_t)2 << 20)

static void *map_pages(size_t size, size_t *length)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    *length = (size + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    unsigned char *wide = mmap(NULL, *length + LARGE_PAGE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (wide == MAP_FAILED)
        return NULL;
    const size_t before = (LARGE_PAGE - (uintptr_t)wide % LARGE_PAGE) % LARGE_PAGE;
    if (before)
        munmap(wide, before);
    munmap(wide + before + *length, LARGE_PAGE - before);
    madvise(wide + before, *length, MADV_HUGEPAGE); /* where there are none, small pages will do */
    return wide + before;
}

/* Never waited for: a process that was forked while another thread had the store would wait for
 * ever. Whoever does not get it goes to the system. */
static bool lock(struct spares *s)
{
    return s && pthread_mutex_trylock(&s->lock) == 0;
}

static struct spare take_out(struct spares *s, unsigned k)
{
    const struct spare found = s->of[k];
    s->n--;
    for (; k < s->n; k++)
        s->of[k] = s->of[k + 1];
    s->waiting -= found.length;
    return found;
}

/* The shortest that is long enough, and not twice as long; s->n: none. */
static unsigned find(const struct spares *s, size_t size)
{
    unsigned best = s->n;
    for (unsigned k = 0; k < s->n; k++)
        if (s->of[k].length >= size && s->of[k].length / 2 < size &&
            (best == s->n || s->of[k].length <= s->of[best].length))
            best = k;
    return best;
}

static void use(struct spares *s, size_t more)
{
    s->used += more;
    while (s->n && s->used + s->waiting > s->peak) {
        const struct spare oldest = take_out(s, 0);
        munmap(oldest.at, oldest.length);
    }
    if (s->used > s->peak)
        s->peak = s->used;
}

void *spares_take(struct spares *s, size_t size, size_t *length, _Bool *dirty)
{
    *dirty = false;
    if (lock(s)) {
        const unsigned k = find(s, size);
        if (k < s->n) {
            const struct spare found = take_out(s, k);
            s->used += found.length;
            pthread_mutex_unlock(&s->lock);
            *length = found.length;
            *dirty = true;
            return found.at;
        }
        pthread_mutex_unlock(&s->lock);
    }
    void *block = map_pages(size, length);
    if (block && lock(s)) {
        use(s, *length);
        pthread_mutex_unlock(&s->lock);
    }
    return block;
}

void spares_give(struct spares *s, void *block, size_t length)
{
    bool kept = false;
    if (lock(s)) {
        s->used -= length < s->used ? length : s->used;
        kept = length <= s->limit;
        while (kept && s->n && (s->n == SPARES_MOST || s->waiting + length > s->limit)) {
            const struct spare oldest = take_out(s, 0);
            munmap(oldest.at, oldest.length);
        }
        if (kept) {
            madvise(block, length, MADV_FREE);
            s->of[s->n++] = (struct spare){block, length};
            s->waiting += length;
        }
        pthread_mutex_unlock(&s->lock);
    }
    if (!kept)
        munmap(block, length);
}

void spares_shrunk(struct spares *s, size_t length)
{
    if (lock(s)) {
        s->used -= length < s->used ? length : s->used;
        pthread_mutex_unlock(&s->lock);
    }
}
