/* Adding numbers to a sketch, tile by tile, in the words of a sketch_LEVEL.h, which includes this:
 * sketch_tile() adds a whole tile, sketch_some() one of which some numbers are not there, which are
 * 0. */
#ifndef METRIC_SKETCH_TILES_H
#define METRIC_SKETCH_TILES_H

/* Signs and places of all tiles that a block may touch, from a multiple of eight tiles on: made
 * side by side, and read by byte. */
enum { TILES_KNOWN = (KERNEL_SKETCH_TILES + 7 + 7) / 8 * 8 };

static void sketch(const double *x, size_t n, uint64_t first, double *sums, double (*fold)[4])
{
    enum { TILE = KERNEL_SKETCH_TILE };
    _Alignas(64) uint64_t signs[TILES_KNOWN], words[TILES_KNOWN / 8];
    const uint8_t *places = (const uint8_t *)words;
    const uint64_t begin = first / TILE / 8 * 8, end = (first + n + TILE - 1) / TILE;
    for (size_t k = 0; begin + k < end; k += 8) {
        for (size_t i = k; i < k + 8; i++)
            signs[i] = kernel_sketch_signs(begin + i);
        words[k / 8] = kernel_sketch_places(begin + k);
    }
    size_t k = (size_t)(first / TILE - begin);
    const size_t lane = first % TILE;
    if (lane) {
        const size_t m = n < TILE - lane ? n : TILE - lane;
        sketch_some(x, lane, m, &signs[k], places[k], sums, *fold++);
        x += m;
        n -= m;
        k++;
    }
    for (; n >= TILE; n -= TILE, x += TILE, k++)
        sketch_tile(x, &signs[k], places[k], sums, *fold++);
    if (n)
        sketch_some(x, 0, n, &signs[k], places[k], sums, *fold);
}

#endif
