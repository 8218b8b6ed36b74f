/* A call with one of its arguments changed, found by its name in the operator's signature. */
#ifndef VERDICT_VARY_H
#define VERDICT_VARY_H

#include "base/arena.h"
#include "plumb/op.h"

enum { VARY_MOST = 32 };

/* One parameter of the signature that the call fits, with what it is given. */
struct vary_parameter {
    const char *type, *name; /* "Tensor?", "bias"; the first of its names. Not terminated */
    size_t type_length, length;
    size_t at;            /* in args or kwargs; beyond them: not given */
    bool keyword;         /* in kwargs, or to be put there */
    struct plumb_arg now; /* the default where the call has none */
};

struct vary_list {
    size_t n;
    struct vary_parameter parameter[VARY_MOST];
};

/* The parameters of the first signature that has a place for each argument; none when there is
 * none. Their texts are those of the operator and of the call. */
void vary_read(const struct plumb_op *op, const struct plumb_call *call, struct vary_list *list);

/* Whether the type or the name is that one. */
bool vary_has_type(const struct vary_parameter *p, const char *type);
bool vary_has_name(const struct vary_parameter *p, const char *name);

/* The call with another value there, its arrays new in the arena. False when memory runs out. */
bool vary_set(struct arena *arena, struct plumb_call *call, const struct vary_parameter *p,
              const struct plumb_arg *value);

/* All floats of less than 32 bits as float32, which can then be changed by little. False when
 * memory runs out. */
bool vary_widen(struct arena *arena, struct plumb_call *call);

/* Tensors made of others, in the arena; NULL when memory runs out, or where it makes no sense. */

/* Zeros from index `first` of the axis on, n of them. */
const struct plumb_tensor *vary_zeroed(struct arena *arena, const struct plumb_tensor *from,
                                       unsigned axis, int64_t first, int64_t n);
/* Only the first n along the axis. */
const struct plumb_tensor *vary_cut(struct arena *arena, const struct plumb_tensor *from,
                                    unsigned axis, int64_t n);
const struct plumb_tensor *vary_rolled(struct arena *arena, const struct plumb_tensor *from,
                                       unsigned axis, int64_t by);
/* The last two axes exchanged. */
const struct plumb_tensor *vary_transposed(struct arena *arena, const struct plumb_tensor *from);
/* Complex numbers with imaginary parts of the other sign. */
const struct plumb_tensor *vary_conjugate(struct arena *arena, const struct plumb_tensor *from);
/* Each number times factor plus offset, rounded to the type. */
const struct plumb_tensor *vary_mapped(struct arena *arena, const struct plumb_tensor *from,
                                       double factor, double offset);

#endif
