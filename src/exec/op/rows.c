/* Rows that lie in one piece are used where they are. Others are copied, several at a time where
 * they interleave, so that memory is read by whole cache lines, and copied back. */
#include "exec/op/rows.h"
#include "exec/op/fold.h"

#include <string.h>

enum { TILE = 32, PIECE = 1024, IN = 3, OUT = 2 };

/* Where the elements of a tile are: channels [first, first + width) of [batch][channels][place]. */
struct tile {
    int64_t batch, channels, place, first;
    int width;
};

static void gather(const real *from, const struct tile *t, real *to)
{
    const int64_t n = t->batch * t->place;
    for (int64_t b = 0; b < t->batch; b++)
        for (int c = 0; c < t->width; c++) {
            const real *run = from + (b * t->channels + t->first + c) * t->place;
            for (int64_t k = 0; k < t->place; k++)
                to[c * n + b * t->place + k] = run[k];
        }
}

static void scatter(const real *from, const struct tile *t, real *to)
{
    const int64_t n = t->batch * t->place;
    for (int64_t b = 0; b < t->batch; b++)
        for (int c = 0; c < t->width; c++) {
            real *run = to + (b * t->channels + t->first + c) * t->place;
            for (int64_t k = 0; k < t->place; k++)
                run[k] = from[c * n + b * t->place + k];
        }
}

static void gather_ints(const int64_t *from, const struct tile *t, int64_t *to)
{
    const int64_t n = t->batch * t->place;
    for (int64_t b = 0; b < t->batch; b++)
        for (int c = 0; c < t->width; c++)
            memcpy(to + c * n + b * t->place, from + (b * t->channels + t->first + c) * t->place,
                   (size_t)t->place * sizeof *to);
}

static void scatter_ints(const int64_t *from, const struct tile *t, int64_t *to)
{
    const int64_t n = t->batch * t->place;
    for (int64_t b = 0; b < t->batch; b++)
        for (int c = 0; c < t->width; c++)
            memcpy(to + (b * t->channels + t->first + c) * t->place, from + c * n + b * t->place,
                   (size_t)t->place * sizeof *to);
}

/* Room for a tile of each array that is there. */
struct copies {
    real *in[IN], *out[OUT];
    int64_t *int_in, *int_out;
};

static bool copies_alloc(struct op *o, const struct row *arrays, int64_t n, struct copies *copies)
{
    *copies = (struct copies){0};
    for (int k = 0; k < IN; k++)
        if (arrays->in[k])
            copies->in[k] = op_alloc(o, n, sizeof(real));
    for (int k = 0; k < OUT; k++)
        if (arrays->out[k])
            copies->out[k] = op_alloc(o, n, sizeof(real));
    if (arrays->int_in)
        copies->int_in = op_alloc(o, n, sizeof(int64_t));
    if (arrays->int_out)
        copies->int_out = op_alloc(o, n, sizeof(int64_t));
    return !o->failed;
}

static void copies_fill(const struct copies *copies, const struct row *arrays, const struct tile *t)
{
    for (int k = 0; k < IN; k++)
        if (copies->in[k])
            gather(arrays->in[k], t, copies->in[k]);
    for (int k = 0; k < OUT; k++)
        if (copies->out[k] && !arrays->fresh)
            gather(arrays->out[k], t, copies->out[k]);
    if (copies->int_in)
        gather_ints(arrays->int_in, t, copies->int_in);
    if (copies->int_out && !arrays->fresh)
        gather_ints(arrays->int_out, t, copies->int_out);
}

static void copies_store(const struct copies *copies, const struct row *arrays,
                         const struct tile *t)
{
    for (int k = 0; k < OUT; k++)
        if (copies->out[k])
            scatter(copies->out[k], t, arrays->out[k]);
    if (copies->int_out)
        scatter_ints(copies->int_out, t, arrays->int_out);
}

/* The arrays from one element on. */
static struct row row_from(const struct row *arrays, int64_t from, int64_t n, int64_t at)
{
    struct row row = {.fresh = arrays->fresh, .n = n, .at = at};
    for (int k = 0; k < IN; k++)
        row.in[k] = arrays->in[k] ? arrays->in[k] + from : NULL;
    for (int k = 0; k < OUT; k++)
        row.out[k] = arrays->out[k] ? arrays->out[k] + from : NULL;
    row.int_in = arrays->int_in ? arrays->int_in + from : NULL;
    row.int_out = arrays->int_out ? arrays->int_out + from : NULL;
    return row;
}

/* Rows in one piece, as many at a time from what is unread as come to a small piece of it. */
static bool walk_along(struct op *o, int64_t rows, int64_t n, const struct row *arrays, row_fn *fn,
                       void *context)
{
    const bool unread = arrays->x && !arrays->x->f;
    const int64_t most = unread && n < PIECE ? PIECE / (n ? n : 1) : 1;
    real *room = unread ? op_room(o, most * n, sizeof *room) : NULL;
    const real *from = NULL;
    for (int64_t k = 0; k < rows && !o->failed; k++) {
        struct row row = row_from(arrays, k * n, n, k);
        if (unread && k % most == 0)
            from = val_piece(arrays->x, k * n, (rows - k < most ? rows - k : most) * n, room);
        if (unread)
            row.in[0] = from + k % most * n;
        fn(&row, context);
    }
    return !o->failed;
}

/* The channels of `outer` blocks, one block after the other, numbered on. */
static bool walk(struct op *o, int64_t outer, struct tile tile, const struct row *given, row_fn *fn,
                 void *context)
{
    const bool in_one_piece = tile.batch == 1 || tile.channels == 1;
    struct row all = *given, *arrays = &all;
    if (all.x && !in_one_piece && !val_read(o, all.x))
        return false;
    if (all.x)
        all.in[0] = all.x->f;
    if (o->failed)
        return false;
    const int64_t n = size_times(tile.batch, tile.place);
    /* Rows of nothing can be absurdly many. If they had results of their own, those were
     * allocated. */
    if (n == 0 && (arrays->out[0] || arrays->int_out))
        return true;
    if (in_one_piece)
        return walk_along(o, outer * tile.channels, n, arrays, fn, context);
    const int64_t most = tile.place < TILE ? TILE : 1;
    struct copies copies;
    if (outer * tile.channels == 0 || !copies_alloc(o, arrays, most * n, &copies))
        return !o->failed;
    struct row copied = {
        .int_in = copies.int_in, .int_out = copies.int_out, .fresh = arrays->fresh};
    for (int k = 0; k < IN; k++)
        copied.in[k] = copies.in[k];
    for (int k = 0; k < OUT; k++)
        copied.out[k] = copies.out[k];
    for (int64_t k = 0; k < outer; k++) {
        struct row block = row_from(arrays, k * n * tile.channels, n, 0);
        for (tile.first = 0; tile.first < tile.channels; tile.first += most) {
            const int64_t left = tile.channels - tile.first;
            tile.width = (int)(left < most ? left : most);
            copies_fill(&copies, &block, &tile);
            for (int c = 0; c < tile.width; c++) {
                struct row row = row_from(&copied, c * n, n, k * tile.channels + tile.first + c);
                fn(&row, context);
            }
            copies_store(&copies, &block, &tile);
        }
    }
    return !o->failed;
}

bool each_row(struct op *o, struct span3 span, const struct row *arrays, row_fn *fn, void *context)
{
    return walk(o, span.outer, (struct tile){span.length, span.inner, 1, 0, 0}, arrays, fn,
                context);
}

bool each_channel(struct op *o, int64_t batch, int64_t channels, int64_t place,
                  const struct row *arrays, row_fn *fn, void *context)
{
    return walk(o, 1, (struct tile){batch, channels, place, 0, 0}, arrays, fn, context);
}
