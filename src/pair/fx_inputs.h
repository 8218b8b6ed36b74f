/* Which FX file belongs to which input of a GE file.
 *
 * An FX node leaves a file for every positional argument, also for numbers, lists, texts and None,
 * which GE has as attributes, as constants or not at all. */
#ifndef PAIR_FX_INPUTS_H
#define PAIR_FX_INPUTS_H

#include "pair/graph_pair.h"

struct fx_places {
    const struct air_fx_file **files; /* one a GE input; NULL: there is none */
    bool *loose;                      /* an argument that need not mean what the constant does */
    size_t count;
    const struct air_fx_file **left; /* files that are of no GE input */
    size_t left_count;
    const char *why; /* what to say of inputs that have no file */
};

/* Finds out what the file holds, once. What cannot be read counts as a tensor: its row will say
 * so. */
void fx_look(struct air_fx_file *file);

/* The inputs of a node beside those of one operator. */
struct fx_places fx_place(struct pairing *pairing, const struct graph_op *graph_op,
                          struct air_fx_list *list, const struct ge_file *ge);

/* The inputs that the parts of a fused operator take from outside it. */
struct fx_places fx_place_fused(struct pairing *pairing, const struct pair_parts *parts,
                                const struct ge_file *ge);

#endif
