/* What run.c and load.c need of squares.c. */
#ifndef OP_SQUARES_H
#define OP_SQUARES_H

#include "exec/op/op.h"

op_form_fn op_form;

struct form_word {
    char text[48]; /* a parameter, or a sign */
    bool list;     /* its items are meant */
};

/* The next word, or sign, of a form; false at its end. */
bool form_next(const char **form, struct form_word *word);

/* A call whose arguments fit its signature, about to run on squares: looks up in the form which
 * argument is multiplied with which. False, and failed, when the form does not say it of all. */
bool squares_begin(struct op *o, const char *form);

/* An argument as it was loaded, and the gradients of the outputs: squared in place. */
void squares_input(struct op *o, size_t leaf);
void squares_grad(struct op *o, struct val *grad);

/* The root mean square changes that follow, for output number k and for the gradient of a leaf.
 * NULL when memory ran out. */
const real *squares_output(struct op *o, const struct val *x);
const real *squares_leaf(struct op *o, size_t leaf);

#endif
