/* What the elementwise operators are made with: broadcasting, and loops written once per formula.
 *
 * A formula becomes a pair of loops over whole arrays (value, and what an output gradient g is
 * worth to an input), so that the compiler sees the arithmetic and can vectorise it. Within a
 * formula x (or a and b) is the input, y the result, g the gradient of y, and p the operator's own
 * parameters. */
#ifndef OP_ELEM_H
#define OP_ELEM_H

#include "exec/op/op.h"

/* ---- One operand ----------------------------------------------------------------------------- */

enum { ELEM_PARAMS = 6 };

/* How devices usually compute a function that is one formula here: which step they round, and what
 * may cancel then. Only calls with noise ask. */
enum elem_usual {
    USUAL_ONE,       /* in one step */
    USUAL_Y_1,       /* in one step, and the slope from the result y: y + 1 */
    USUAL_1_Y_Y,     /* (1 - y) y */
    USUAL_1_YY,      /* 1 - y y */
    USUAL_TIMES_X,   /* x times something */
    USUAL_HALF_X,    /* x / 2 times (1 + something) */
    USUAL_MINUS_ONE, /* something - 1 */
    USUAL_FROM_X,    /* x - something */
};

struct elem_unary {
    void (*value)(const real *restrict xs, real *restrict ys, int64_t n, const real *p);
    void (*slope)(const real *restrict xs, const real *restrict ys, const real *restrict gs,
                  real *restrict out, int64_t n, const real *p);
    /* For operators that keep integers as they are; NULL: integers are raised to float. */
    void (*integers)(const int64_t *restrict xs, int64_t *restrict ys, int64_t n);
    enum elem_usual usual;
};

/* Defines `static const struct elem_unary name_fn`. formula: of x and p; derivative: of g, x, y
 * and p. */
#define ELEM_UNARY(name, formula, derivative)                                                      \
    ELEM_UNARY_ALL(name, formula, derivative, NULL, USUAL_ONE)
#define ELEM_UNARY_INT(name, formula, derivative, integer_loop)                                    \
    ELEM_UNARY_ALL(name, formula, derivative, integer_loop, USUAL_ONE)
#define ELEM_UNARY_AS(usual, name, formula, derivative)                                            \
    ELEM_UNARY_ALL(name, formula, derivative, NULL, usual)
#define ELEM_UNARY_ALL(name, formula, derivative, integer_loop, usual)                             \
    static void name##_value(const real *restrict xs, real *restrict ys, int64_t n, const real *p) \
    {                                                                                              \
        (void)p;                                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const real x = xs[k];                                                                  \
            ys[k] = (formula);                                                                     \
        }                                                                                          \
    }                                                                                              \
    static void name##_slope(const real *restrict xs, const real *restrict ys,                     \
                             const real *restrict gs, real *restrict out, int64_t n,               \
                             const real *p)                                                        \
    {                                                                                              \
        (void)p;                                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const real x = xs[k], y = ys[k], g = gs[k];                                            \
            (void)x, (void)y, (void)g;                                                             \
            out[k] += (derivative);                                                                \
        }                                                                                          \
    }                                                                                              \
    static const struct elem_unary name##_fn = {name##_value, name##_slope, integer_loop, usual}

/* fn of every element of x; p: up to ELEM_PARAMS parameters, copied, or NULL. */
struct val *elem_unary(struct op *o, struct val *x, const struct elem_unary *fn, const real *p,
                       size_t n_params);

/* ---- Broadcasting ---------------------------------------------------------------------------- */

/* How up to three operands run along their common shape, with neighbouring dimensions joined where
 * all operands allow it. Strides are in elements; 0 where an operand repeats. */
struct elem_plan {
    unsigned out_rank; /* of the result, not joined */
    int64_t out_shape[OP_RANK];
    unsigned rank; /* joined, outermost first; at least 1 */
    int64_t shape[OP_RANK];
    unsigned operands;
    int64_t stride[3][OP_RANK];
};

/* False (and failed) when the shapes do not go together or an operand is NULL. */
bool elem_plan(struct op *o, unsigned operands, struct val *const *in, struct elem_plan *plan);

/* A place in a plan: the start of an innermost run. */
struct elem_place {
    int64_t index[OP_RANK];
    int64_t offset[3]; /* of each operand */
    int64_t at;        /* of the result */
};

/* To the next run; false after the last. */
bool elem_next(const struct elem_plan *plan, struct elem_place *place);

/* Adds `full`, a gradient in the shape of the result, to the gradient of operand x, adding up where
 * x was repeated without losing accuracy. */
void elem_gather(struct op *o, const struct elem_plan *plan, unsigned operand, const real *full,
                 struct val *x);

/* x for use in an operation of that dtype. Numbers keep the value that they were written with. */
struct val *elem_operand(struct op *o, struct val *x, enum plumb_dtype dtype);

/* The number (or 0-d tensor) as torch sees it next to a tensor of that dtype: rounded to it, in the
 * raised mode too, so that a comparison decides there as it decides on a device. */
real elem_rounded(enum plumb_dtype dtype, real v);

/* Returns out; for an in-place form of the operator (add_, __iadd__) in the type of self. */
void elem_return(struct op *o, const struct val *self, struct val *out);

/* An operator X_backward: runs the forward operator, whose arguments the call gives under the same
 * names, and returns what "grad_output" is worth to each of up to two inputs (a list that ends with
 * NULL). Has no gradient itself. */
void elem_pullback(struct op *o, void (*forward)(struct op *o), const char *const *inputs);

/* ---- Two operands ---------------------------------------------------------------------------- */

struct elem_binary {
    /* sa and sb are 0 or 1, not both 0. */
    void (*value)(const real *a, int64_t sa, const real *b, int64_t sb, real *y, int64_t n,
                  const real *p);
    /* The gradients, added to ga and gb (in the shape of the result); either may be NULL. No slope:
     * the result has no gradient. */
    void (*slope)(const real *a, int64_t sa, const real *b, int64_t sb, const real *y,
                  const real *g, real *ga, real *gb, int64_t n, const real *p);
    void (*integers)(const int64_t *a, int64_t sa, const int64_t *b, int64_t sb, int64_t *y,
                     int64_t n);
};

#define ELEM_INLINE static inline __attribute__((always_inline))

/* Runs call(..., SA, SB) with the strides as constants, for one loop each. */
#define ELEM_STRIDES(sa, sb, loop, ...)                                                            \
    do {                                                                                           \
        if ((sa) && (sb))                                                                          \
            loop(1, 1, __VA_ARGS__);                                                               \
        else if (sa)                                                                               \
            loop(1, 0, __VA_ARGS__);                                                               \
        else                                                                                       \
            loop(0, 1, __VA_ARGS__);                                                               \
    } while (0)

/* Defines `static void name_loop`: formula of a and b over arrays of the type. */
#define ELEM_LOOP(name, from, to, formula)                                                         \
    ELEM_INLINE void name##_each(int64_t sa, int64_t sb, const from as[], const from bs[],         \
                                 to ys[], int64_t n, const real *p)                                \
    {                                                                                              \
        (void)p;                                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const from a = as[k * sa], b = bs[k * sb];                                             \
            ys[k] = (formula);                                                                     \
        }                                                                                          \
    }

/* Defines name_integers: formula of int64 a and b. */
#define ELEM_INTEGERS(name, formula)                                                               \
    ELEM_LOOP(name##_int, int64_t, int64_t, formula)                                               \
    static void name##_integers(const int64_t *a, int64_t sa, const int64_t *b, int64_t sb,        \
                                int64_t *y, int64_t n)                                             \
    {                                                                                              \
        ELEM_STRIDES(sa, sb, name##_int_each, a, b, y, n, NULL);                                   \
    }

/* Defines `static const struct elem_binary name_fn`. formula: of a, b and p; by_a and by_b: of a,
 * b, y, g and p. */
#define ELEM_BINARY(name, formula, by_a, by_b) ELEM_BINARY_INT(name, formula, by_a, by_b, NULL)
#define ELEM_BINARY_INT(name, formula, by_a, by_b, integer_loop)                                   \
    ELEM_LOOP(name, real, real, formula)                                                           \
    static void name##_value(const real *a, int64_t sa, const real *b, int64_t sb, real *y,        \
                             int64_t n, const real *p)                                             \
    {                                                                                              \
        ELEM_STRIDES(sa, sb, name##_each, a, b, y, n, p);                                          \
    }                                                                                              \
    ELEM_INLINE void name##_grads(int64_t sa, int64_t sb, const real *as, const real *bs,          \
                                  const real *ys, const real *gs, real *ga, real *gb, int64_t n,   \
                                  const real *p)                                                   \
    {                                                                                              \
        (void)p;                                                                                   \
        for (int64_t k = 0; ga && k < n; k++) {                                                    \
            const real a = as[k * sa], b = bs[k * sb], y = ys[k], g = gs[k];                       \
            (void)a, (void)b, (void)y, (void)g;                                                    \
            ga[k] += (by_a);                                                                       \
        }                                                                                          \
        for (int64_t k = 0; gb && k < n; k++) {                                                    \
            const real a = as[k * sa], b = bs[k * sb], y = ys[k], g = gs[k];                       \
            (void)a, (void)b, (void)y, (void)g;                                                    \
            gb[k] += (by_b);                                                                       \
        }                                                                                          \
    }                                                                                              \
    static void name##_slope(const real *a, int64_t sa, const real *b, int64_t sb, const real *y,  \
                             const real *g, real *ga, real *gb, int64_t n, const real *p)          \
    {                                                                                              \
        ELEM_STRIDES(sa, sb, name##_grads, a, b, y, g, ga, gb, n, p);                              \
    }                                                                                              \
    static const struct elem_binary name##_fn = {name##_value, name##_slope, integer_loop}

/* The same without a gradient. */
#define ELEM_FLAT(name, formula, integer_loop)                                                     \
    ELEM_LOOP(name, real, real, formula)                                                           \
    static void name##_value(const real *a, int64_t sa, const real *b, int64_t sb, real *y,        \
                             int64_t n, const real *p)                                             \
    {                                                                                              \
        ELEM_STRIDES(sa, sb, name##_each, a, b, y, n, p);                                          \
    }                                                                                              \
    static const struct elem_binary name##_fn = {name##_value, NULL, integer_loop}

/* fn of a and b, broadcast, in the given dtype. Integers go through fn->integers and are wrapped;
 * where that is NULL the dtype must be a float. */
struct val *elem_binary(struct op *o, struct val *a, struct val *b, enum plumb_dtype dtype,
                        const struct elem_binary *fn, const real *p, size_t n_params);

#endif
