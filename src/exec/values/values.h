/* Values for the tensors of a call: generated from the recorded limits, or read from the dump. */
#ifndef VALUES_VALUES_H
#define VALUES_VALUES_H

#include "dump/call.h"

enum input_kind { INPUTS_UNIFORM, INPUTS_NORMAL, INPUTS_ADVERSARIAL };

struct mt19937 {
    uint32_t state[624];
    unsigned next;
};

void mt19937_init(struct mt19937 *mt, uint32_t seed);
uint32_t mt19937_next(struct mt19937 *mt);

struct generate_options {
    enum input_kind inputs;
    uint64_t seed;      /* of the counter-based generator */
    bool msprobe;       /* as --rules msprobe: its recipe for uniform values, what it refuses, HF32
                             rounding for conv1d/conv2d */
    struct mt19937 *mt; /* --rng msprobe: the one generator of the run, for that recipe (inputs must
                             be uniform); NULL: counter-based */
    const char *data_dir; /* real data; NULL: generate everything */
    uint64_t memory; /* bytes that the tensors of a call may take; 0: a third of what a call may */
};

/* Fills a call from a case: args, kwargs, prefix, name; all memory from the arena. The
 * counter-based values depend on (seed, call name with its number, position) only, and are the
 * same on every machine. With mt, kwargs are drawn first, then args. draws is set up too (from
 * mt, or counter-based). Refused, with the position in the message ("forward.input.0.1: ..."):
 * limits that make no sense, types that plumb does not know, and (PLUMB_E_NOMEM) tensors that
 * together take more than options->memory. Thread-safe, but for what shares one mt. */
enum plumb_code generate_call(const struct check_case *from, const struct generate_options *options,
                              struct arena *arena, struct plumb_call *out, struct plumb_error *err);

/* The gradients for the backward run, one for each entry of the backward input; NULL where an entry
 * is null. */
enum plumb_code generate_grads(const struct check_case *from,
                               const struct generate_options *options, struct arena *arena,
                               const struct plumb_tensor *const **out, size_t *n,
                               struct plumb_error *err);

#endif
