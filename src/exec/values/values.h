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

struct value_draws;

/* Fills a tensor with random values. out has dtype, shape and memory; tensor has the limits. */
typedef enum plumb_code value_recipe(const struct case_tensor *tensor, struct value_draws *draws,
                                     const struct plumb_tensor *out, void *data,
                                     struct plumb_error *err);

/* How a set of rules has the arguments of a call made. */
struct value_profile {
    const char *name;
    value_recipe *recipe; /* of uniform values, and of complex ones whatever the kind; NULL: plumb's
                             own */
    uint32_t seed;        /* of the one generator that this recipe may draw from */
    /* Says why a recorded argument, which is no tensor, stops the call; NULL: none does. */
    enum plumb_code (*refuse)(const struct case_arg *arg, struct plumb_error *err);
    /* The same for a keyword argument that is a list. */
    enum plumb_code (*refuse_list)(const struct case_arg *list, struct plumb_error *err);
    /* The last word on the values of a tensor, which may be written to; NULL: nothing to say. */
    void (*finish)(const char *api, const struct plumb_tensor *tensor, void *data);
    bool lists_need_no_grad; /* tensors in the list of a keyword argument */
    bool any_file;           /* a data file may hold another tensor than was recorded, and is
                                converted by its type alone; else the call is refused */
    bool files_only;         /* a tensor that names a data file needs a folder of them; else it is
                                generated without one */
    bool any_classes;        /* cross_entropy: no classes below 0, whatever their type */
    bool unsorted_offsets;   /* embedding_bag: bags start anywhere; else at ascending places */
};

/* plumb's own. */
extern const struct value_profile values_documented;

struct generate_options {
    enum input_kind inputs;
    uint64_t seed;                       /* of the counter-based generator */
    const struct value_profile *profile; /* NULL: values_documented */
    struct mt19937 *mt;              /* the one generator of the run (inputs must be uniform); NULL:
                           counter-based */
    const struct value_profile *rng; /* with mt: whose recipe draws from it */
    const char *data_dir;            /* real data; NULL: generate everything */
    bool recorded_only;              /* a tensor whose values were not recorded is refused */
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

/* What a call gave when it was recorded; kind is "forward.output" or "backward.output", for
 * messages. A tensor whose values were not recorded, or cannot be read, is of kind other, and its
 * text says why. Fails when memory runs out. */
enum plumb_code recorded_args(const struct check_case *from, const char *kind,
                              const struct case_arg *list, size_t n,
                              const struct generate_options *options, struct arena *arena,
                              struct plumb_arg **out, struct plumb_error *err);

#endif
