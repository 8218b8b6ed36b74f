/* Modules that plumb knows: which operator each is, and with which settings. */
#ifndef BLAME_MODULES_H
#define BLAME_MODULES_H

#include "dump/settings.h"
#include "plumb/op.h"

/* How a class is computed. Lists are words separated by blanks. */
struct known_class {
    const char *names;
    const char *op;       /* with a 0 in the place of the number of dimensions: "conv0d" */
    const char *tensors;  /* parameters and buffers that are keywords of it; with a ! behind those
                             that it cannot do without */
    const char *settings; /* keywords, "eps", or "eps=variance_epsilon" where the class has another
                             name for it, or "mode:reflect" where it is always that; with a ! behind
                             those that have no usual values */
    unsigned inputs;      /* tensors that it takes */
    bool foreign;         /* it is no class of PyTorch's own */
};

/* The class of that name, or NULL. *dimensions: the number in it (Conv2d: 2), or 0. */
const struct known_class *modules_find(const char *name, unsigned *dimensions);

/* What is known of a call of a module. */
struct module_facts {
    const struct known_class *class;
    unsigned dimensions;
    const struct setting_list *settings;                /* none: not recorded */
    const struct plumb_tensor *input, *output, *weight; /* the first of each, or NULL */
    bool buffers;                                       /* they are known */
};

/* One way in which the module may have been set up. */
struct module_try {
    struct plumb_kwarg *kwargs;
    size_t count;
    double eps; /* that was not recorded; else NaN */
};

struct module_tries {
    struct module_try *list; /* at least one, the likeliest first */
    size_t count;
    const char *guessed; /* settings that were not recorded, separated by commas; or NULL */
    bool complete;       /* there are no other ways, but for eps */
    bool any_eps;        /* and that was not recorded */
};

/* All ways that are worth trying. Everything lives in the arena. PLUMB_E_NOMEM;
 * PLUMB_E_UNSUPPORTED: it is set up as plumb's operator cannot be, and err says how. */
enum plumb_code modules_tries(const struct module_facts *facts, struct arena *arena,
                              struct module_tries *out, struct plumb_error *err);

#endif
