/* Which pieces are to be done, and who has them. */
#include "crew/pieces.h"

#include <stdlib.h>

/* A piece that takes so much longer than others, and longer than that, is given out twice. */
#define SLOW_TIMES 20
#define SLOW_SECONDS 2.0

bool pieces_init(struct pieces *pieces, size_t count, bool choosy)
{
    *pieces = (struct pieces){.count = count, .left = count};
    pieces->list = calloc(count ? count : 1, sizeof *pieces->list);
    for (size_t i = 0; pieces->list && i < count; i++)
        pieces->list[i] = (struct piece){.holder = PIECE_NOBODY, .refused = choosy};
    return pieces->list;
}

void pieces_free(struct pieces *pieces)
{
    free(pieces->list);
    free(pieces->again);
    *pieces = (struct pieces){0};
}

static size_t give(struct pieces *pieces, size_t i, unsigned who, double now)
{
    struct piece *piece = &pieces->list[i];
    pieces->out += !piece->out;
    piece->out = true;
    piece->holder = who;
    piece->given = now;
    return i;
}

static bool is_free(const struct piece *piece)
{
    return !piece->out && !piece->done;
}

static bool may(const struct pieces *pieces, size_t i, unsigned who)
{
    return !pieces->list[i].refused || !pieces->may || pieces->may(pieces->context, i, who);
}

size_t pieces_give(struct pieces *pieces, unsigned who, double now)
{
    for (size_t k = pieces->again_count; k--;) {
        const size_t i = pieces->again[k];
        if (is_free(&pieces->list[i]) && !may(pieces, i, who))
            continue;
        pieces->again[k] = pieces->again[--pieces->again_count];
        if (is_free(&pieces->list[i]))
            return give(pieces, i, who, now);
    }
    while (pieces->next < pieces->count && !is_free(&pieces->list[pieces->next]))
        pieces->next++;
    for (size_t i = pieces->next; i < pieces->count; i++)
        if (is_free(&pieces->list[i]) && may(pieces, i, who))
            return give(pieces, i, who, now);
    return PIECE_NONE;
}

bool pieces_waiting(const struct pieces *pieces)
{
    return pieces->left > pieces->out;
}

void pieces_return(struct pieces *pieces, size_t i, bool refused)
{
    struct piece *piece = &pieces->list[i];
    if (piece->done || !piece->out)
        return;
    piece->out = false;
    pieces->out--;
    piece->refused = piece->refused || refused;
    pieces->returns++;
    if (pieces->again_count == pieces->again_capacity) {
        const size_t capacity = pieces->again_capacity ? pieces->again_capacity * 2 : 64;
        size_t *grown = realloc(pieces->again, capacity * sizeof *grown);
        if (!grown) { /* found again from the beginning */
            pieces->next = i < pieces->next ? i : pieces->next;
            return;
        }
        pieces->again = grown;
        pieces->again_capacity = capacity;
    }
    pieces->again[pieces->again_count++] = i;
}

bool pieces_done(struct pieces *pieces, size_t i, double now)
{
    struct piece *piece = &pieces->list[i];
    if (piece->done)
        return false;
    if (piece->out) {
        pieces->out--;
        pieces->spent += now - piece->given;
    }
    piece->done = true;
    piece->out = false;
    pieces->left--;
    while (pieces->low < pieces->count && pieces->list[pieces->low].done)
        pieces->low++;
    return true;
}

size_t pieces_return_all(struct pieces *pieces, unsigned who)
{
    size_t count = 0;
    for (size_t i = pieces->low; i < pieces->count && pieces->out; i++)
        if (pieces->list[i].out && pieces->list[i].holder == who) {
            pieces_return(pieces, i, false);
            count++;
        }
    return count;
}

size_t pieces_double(struct pieces *pieces, unsigned who, double now)
{
    const size_t done = pieces->count - pieces->left;
    double limit = done ? SLOW_TIMES * pieces->spent / (double)done : 0;
    limit = limit > SLOW_SECONDS ? limit : SLOW_SECONDS;
    size_t oldest = PIECE_NONE;
    for (size_t i = pieces->low; i < pieces->count && !pieces_waiting(pieces); i++) {
        const struct piece *piece = &pieces->list[i];
        if (piece->out && piece->holder != who && now - piece->given > limit &&
            may(pieces, i, who) &&
            (oldest == PIECE_NONE || piece->given < pieces->list[oldest].given))
            oldest = i;
    }
    return oldest == PIECE_NONE ? oldest : give(pieces, oldest, who, now);
}
