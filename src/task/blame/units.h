/* Calls whose parts are records of a run: modules of a dump or of a capture, nodes of a graph. */
#ifndef BLAME_UNITS_H
#define BLAME_UNITS_H

#include "dump/settings.h"
#include "task/blame/parts.h"

/* What a record is to its call. Gradients come in for its outputs, and go out to its inputs. */
enum piece_role {
    PIECE_INPUT,
    PIECE_OUTPUT,
    PIECE_PARAMETER,
    PIECE_BUFFER,
    PIECE_GRAD_IN,
    PIECE_GRAD_OUT,
    PIECE_PARAMETER_GRAD,
    PIECE_ROLES
};

struct piece {
    const char *place; /* "0", "weight"; "0.1" inside a list */
    size_t record;     /* number in the run */
};

struct pieces {
    struct piece *list;
    size_t count;
};

enum unit_kind {
    UNIT_MODULE,
    UNIT_FUNCTION, /* of PyTorch, in a capture of modules: arguments that are no tensors are not
                      there */
    UNIT_NODE,     /* of a graph: the same for keyword arguments */
};

struct unit {
    enum unit_kind kind;
    const char *class; /* "LayerNorm"; of a function its name, "linear" */
    const char *path;  /* of the module: "blocks.0.norm1"; of a function its prefix, "Torch" */
    const char *name;  /* of the forward call, as modules.json has it */
    uint64_t number;   /* which call of the module it is, as far as names say */
    int64_t step, rank;
    size_t first; /* number of the first call of the same module in this step and rank */
    size_t calls; /* of the first: how many calls there are */
    bool inside;  /* it has modules in it */
    struct pieces of[PIECE_ROLES];
    size_t sites[LOCAL_DIRECTIONS]; /* number + 1; 0: there is none */
};

struct units {
    struct unit *list;
    size_t count, capacity;
    struct map calls;   /* "path.Class/number/step/rank" to number + 1 */
    struct map modules; /* "path.Class/step/rank" to the number + 1 of its first call */
    struct map parents; /* names of modules that have modules in them */
    struct arena arena;
};

/* Finds the units of a run; sites are those of the same run. */
enum plumb_code units_list(struct units *units, const struct sites *sites,
                           const struct plumb_run *run, struct plumb_error *err);
void units_free(struct units *units);

/* ---- Judging --------------------------------------------------------------------------------- */

struct weights;

/* Opens a file of parameters by their names in the model. */
enum plumb_code weights_open(const char *path, struct weights **out, struct plumb_error *err);
void weights_close(struct weights *weights); /* NULL is fine */

/* The record of a parameter of a module, whatever stands before the names in the file or in the
 * capture; false: there is none, or several. */
bool weights_find(const struct weights *weights, const char *module, const char *parameter,
                  size_t *record);
const struct plumb_run *weights_run(const struct weights *weights);

/* What lies beside a run: modules.json of each of its dumps or captures, and the file of
 * parameters that was given. */
struct extras {
    struct settings **settings; /* one for each tree of a dump, or file of a capture; some NULL */
    const char **files;         /* of a capture: the files that they are about */
    size_t count;
    struct weights *weights;
};

/* weights may be NULL. A modules.json that is damaged counts as none. */
enum plumb_code extras_open(struct extras *extras, const struct plumb_run *run, const char *weights,
                            struct plumb_error *err);
void extras_close(struct extras *extras);

/* What is known of the unit's modules, or NULL. */
const struct settings *extras_settings(const struct extras *extras, const struct plumb_run *run,
                                       const struct unit *unit);

struct unit_options {
    struct local_options local; /* its file is not used */
    const struct plumb_run *run;
    const struct units *units;
    const struct settings *settings; /* NULL: there are none */
    const struct weights *weights;   /* NULL: none were given */
};

/* The same for a node of a graph. */
enum plumb_code node_judge(const struct unit_options *options, const struct unit *unit,
                           struct arena *arena, struct local_verdict out[LOCAL_DIRECTIONS],
                           struct plumb_error *err);

/* Judges a unit; as local_judge. */
enum plumb_code unit_judge(const struct unit_options *options, const struct unit *unit,
                           struct arena *arena, struct local_verdict out[LOCAL_DIRECTIONS],
                           struct plumb_error *err);

#endif
