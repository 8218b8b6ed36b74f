/* Myers' greedy algorithm: the fewest insertions and deletions that turn one list into the other,
 * found one more at a time. What equals at both ends is taken off first. */
#include "pair/align.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_EDITS = 3000 }; /* the trace takes the square of this many bytes times two */

struct problem {
    const uint32_t *a, *b;
    int32_t n, m;
};

/* Row d of the trace holds, for diagonals -d, -d+2, ..., d, how far in a one can get. */
static size_t row_start(int32_t d)
{
    return (size_t)d * ((size_t)d + 1) / 2;
}

static int32_t at(const int32_t *trace, int32_t d, int32_t k)
{
    return trace[row_start(d) + (size_t)(k + d) / 2];
}

/* Whether the best path to diagonal k with d edits ends with an insertion. */
static bool inserts(const int32_t *trace, int32_t d, int32_t k)
{
    return k == -d || (k != d && at(trace, d - 1, k - 1) < at(trace, d - 1, k + 1));
}

/* The number of edits, or -1 when there are more than fit. */
static int32_t search(const struct problem *p, int32_t *trace, int32_t most)
{
    for (int32_t d = 0; d <= most; d++)
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t x = 0;
            if (d)
                x = inserts(trace, d, k) ? at(trace, d - 1, k + 1) : at(trace, d - 1, k - 1) + 1;
            while (x >= 0 && x < p->n && x - k >= 0 && x - k < p->m && p->a[x] == p->b[x - k])
                x++;
            trace[row_start(d) + (size_t)(k + d) / 2] = x;
            if (x >= p->n && x - k >= p->m)
                return d;
        }
    return -1;
}

static void walk_back(const struct problem *p, const int32_t *trace, int32_t d, size_t *partner)
{
    int32_t x = p->n, y = p->m;
    for (;; d--) {
        int32_t k = x - y, from_x = 0;
        bool insertion = false;
        if (d) {
            insertion = inserts(trace, d, k);
            from_x = insertion ? at(trace, d - 1, k + 1) : at(trace, d - 1, k - 1);
        }
        int32_t start = d ? from_x + !insertion : 0;
        while (x > start) {
            x--;
            y--;
            if (x < p->n && y >= 0 && y < p->m)
                partner[x] = (size_t)y;
        }
        if (!d)
            return;
        y = from_x - (insertion ? k + 1 : k - 1);
        x = from_x;
    }
}

/* Too different: each takes the next equal one, as long as one is near. */
static void take_next(const struct problem *p, size_t *partner)
{
    enum { NEAR = 2000 };
    int32_t y = 0;
    for (int32_t x = 0; x < p->n; x++)
        for (int32_t k = y; k < p->m && k - y < NEAR; k++)
            if (p->a[x] == p->b[k]) {
                partner[x] = (size_t)k;
                y = k + 1;
                break;
            }
}

bool match_align(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count,
                 size_t *partner)
{
    for (size_t i = 0; i < a_count; i++)
        partner[i] = SIZE_MAX;
    if (a_count > INT32_MAX / 2 || b_count > INT32_MAX / 2)
        return true;
    size_t head = 0, tail = 0;
    while (head < a_count && head < b_count && a[head] == b[head]) {
        partner[head] = head;
        head++;
    }
    while (tail < a_count - head && tail < b_count - head &&
           a[a_count - 1 - tail] == b[b_count - 1 - tail]) {
        partner[a_count - 1 - tail] = b_count - 1 - tail;
        tail++;
    }
    struct problem p = {a + head, b + head, (int32_t)(a_count - head - tail),
                        (int32_t)(b_count - head - tail)};
    if (!p.n || !p.m)
        return true;
    int32_t most = p.n + p.m < MAX_EDITS ? p.n + p.m : MAX_EDITS;
    int32_t *trace = malloc(row_start(most + 1) * sizeof *trace);
    if (!trace)
        return false;
    int32_t edits = search(&p, trace, most);
    if (edits >= 0)
        walk_back(&p, trace, edits, partner + head);
    else
        take_next(&p, partner + head);
    for (size_t i = head; i < a_count - tail; i++)
        if (partner[i] != SIZE_MAX)
            partner[i] += head;
    free(trace);
    return true;
}
