/* Which pieces of a loop are to be done, who has them, and which are finished. No thread is known
 * here: the caller has the lock. */
#ifndef CREW_PIECES_H
#define CREW_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PIECE_NOBODY = UINT32_MAX };
#define PIECE_NONE SIZE_MAX

struct piece {
    double given;    /* when */
    uint32_t holder; /* who had it last; PIECE_NOBODY: nobody yet */
    bool refused;    /* not everybody can do it; the caller knows who */
    bool out, done;
};

struct pieces {
    struct piece *list;
    size_t count, next, left; /* left: not done */
    size_t low;               /* all before it are done */
    size_t out;               /* given to somebody and not done */
    size_t *again; /* those that come again, the last first; may have some that are done */
    size_t again_count, again_capacity;
    double spent;   /* seconds, on those that are done */
    size_t returns; /* how often one came again */

    /* Whether a piece that not everybody can do may go to `who`. */
    bool (*may)(const void *context, size_t piece, unsigned who);
    const void *context;
};

/* choosy: from the beginning, not everybody can do all. False when out of memory. */
bool pieces_init(struct pieces *pieces, size_t count, bool choosy);
void pieces_free(struct pieces *pieces);

/* The next one for process `who`, marked as given to it; or PIECE_NONE. */
size_t pieces_give(struct pieces *pieces, unsigned who, double now);

/* Whether there is one that nobody has. */
bool pieces_waiting(const struct pieces *pieces);

/* The piece is taken from whoever has it, and comes again; refused: who had it cannot do it. */
void pieces_return(struct pieces *pieces, size_t piece, bool refused);

/* It is finished. False when it already was. */
bool pieces_done(struct pieces *pieces, size_t piece, double now);

/* All that process `who` has come again; their number. */
size_t pieces_return_all(struct pieces *pieces, unsigned who);

/* When all are out: the piece that has been so for longest among those that take far longer than
 * pieces do, and are not with `who`; it is given to `who`, and stays with whoever has it. Or
 * PIECE_NONE. */
size_t pieces_double(struct pieces *pieces, unsigned who, double now);

#endif
