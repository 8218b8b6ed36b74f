/* A dump tree: what the PyTorch or MindSpore capture of a step and rank wrote as dump.json (or
 * debug.json), with stack.json and construct.json beside it and payloads in dump_tensor_data.
 *
 * The tree is rows, one a leaf: a tensor, a scalar, a None. It keeps the values as the file has
 * them, because tables show them that way. Nothing of the payloads is read. */
#ifndef DUMP_DUMP_H
#define DUMP_DUMP_H

#include "base/arena.h"
#include "base/map.h"
#include "base/number.h"
#include "plumb/error.h"

#include <stdbool.h>
#include <stdint.h>

enum dump_task { DUMP_TENSOR, DUMP_STATISTICS, DUMP_MD5 }; /* MD5: statistics with checksums */

/* What debug.json holds counts as output. Buffers are in plumb's own captures only. */
enum dump_section { DUMP_INPUT, DUMP_PARAMETERS, DUMP_OUTPUT, DUMP_GRADIENTS, DUMP_BUFFERS };

/* A value of the file. text is what Python prints for it: "3", "True", "None", or the string
 * itself. There is none of a statistic that is no integer: dump_value_text makes it of the
 * number. */
struct dump_value {
    enum { DUMP_ABSENT, DUMP_NUMBER, DUMP_WORD } kind; /* NaN and infinities are numbers */
    bool integer;                                      /* written without point or exponent */
    double number;
    const char *text; /* NULL when absent */
};

/* What Python prints for it, "0.1", "nan" and "-inf" included; NULL when it is absent. The text is
 * the value's or lies in `text`. */
const char *dump_value_text(const struct dump_value *value, char text[NUMBER_BYTES]);

enum dump_statistic { DUMP_MAX, DUMP_MIN, DUMP_MEAN, DUMP_NORM, DUMP_STATISTICS_COUNT };

struct dump_row {
    size_t api; /* number of the API it belongs to */
    enum dump_section section;
    unsigned depth;        /* path components below the section: 1 for a direct element */
    const char *name;      /* data_name without its ending where there is one, else api + path */
    const char *path_name; /* api + section + path, always */
    const char *type;      /* "torch.Tensor", "int", ...; NULL for a None argument */
    bool tensor;           /* has dtype and shape of its own */
    const char *dtype, *shape; /* as shown: "torch.float32", "[4, 10]", "<class 'int'>", "[]" */
    size_t ndim;
    const int64_t *dims; /* of tensors */
    struct dump_value statistic[DUMP_STATISTICS_COUNT];
    const char *value;             /* of a leaf that is no tensor, as Python prints it; or NULL */
    const char *requires_grad;     /* "True", "False", or NULL */
    bool uninitialised;            /* nobody has written to it: marked, or what empty() gave */
    const char *md5;               /* as recorded, or NULL */
    const char *data_name;         /* file name, or NULL */
    const char *group_ranks;       /* of a ProcessGroup leaf, as text; else NULL */
    const char *p2p_op, *p2p_peer; /* of a P2POp leaf, else NULL */
    bool spread;                   /* a part of a tensor that several processes have */
    const char *dtensor;           /* how, as dump.json has it; or NULL */
};

struct dump_api {
    const char *name;      /* "Functional.linear.0.forward" */
    size_t first, count;   /* its rows, of all of the tree */
    uint64_t offset, size; /* of its value in the file, for those who want the text as it is */
    size_t stack;          /* number + 1 of its stack among stacks, or 0 */
    const char *parent;    /* from construct.json, or NULL */
    int64_t order;         /* of what ranks exchange: counted as they began; -1: not recorded */
    const char *group;     /* ranks of its process group, "[0, 1]"; NULL: not recorded */
    bool cut;              /* the file is damaged inside it, and rows may be missing */
};

/* Where in the tree the API of a name is. */
struct dump_slot {
    uint32_t hash, number; /* + 1; 0: none */
};
struct dump_names {
    struct dump_slot *slots;
    size_t count, capacity;
};

struct dump_tree {
    struct arena arena;
    const char *folder; /* that dump.json lies in */
    int64_t step, rank; /* for whoever opened it */
    const char *path;   /* of dump.json or debug.json */
    enum dump_task task;
    bool debug;                                /* debug.json */
    const char *task_text, *level, *framework; /* framework "pytorch" when the file does not say */
    struct dump_api *apis;
    size_t api_count;
    struct dump_row *rows;
    size_t row_count;
    const char *const **stacks; /* each a NULL-terminated list of lines */
    size_t stack_count;
    struct dump_names names; /* of the APIs: dump_named */
    bool cut;                /* the file is damaged, and entries from there on are missing */
    char **warnings;         /* entries that could not be understood, a line each */
    size_t warning_count;
};

/* Reads a tree. Odd entries become warnings and rows of what could be read; only a file that is not
 * such a JSON object at all is an error. stack.json and construct.json may be missing or damaged
 * (a warning). Memory is bounded by the size of the files. */
enum plumb_code dump_open(struct dump_tree *tree, const char *json_path, struct plumb_error *err);

/* Takes the rows of an entry, which are gone when it returns; their texts stay with the tree. What
 * it returns but PLUMB_OK ends the reading: PLUMB_E_NOMEM. */
typedef enum plumb_code dump_take(void *context, const struct dump_tree *tree,
                                  const struct dump_row *rows, size_t count);

/* The same for trees of which nobody needs all rows at once: each entry's are handed on, in order,
 * and the tree keeps none. On failure some may have been taken already. */
enum plumb_code dump_stream(struct dump_tree *tree, const char *json_path, dump_take *take,
                            void *context, struct plumb_error *err);
void dump_close(struct dump_tree *tree);

/* The API of that name, the last one where it is there twice; NULL: none. */
struct dump_api *dump_named(const struct dump_tree *tree, const char *name, size_t length);

/* The payload file of that data_name in path; false when there is none or it leads out of the
 * folder. */
bool dump_payload(const struct dump_tree *tree, const char *data_name, char *path, size_t size);

/* Where the trees of a step are: one for each rank folder (rank, rank0, rank1, ... by number; or
 * the single proc* folder), or the one that a path to a file, or a folder with dump.json, names. */
struct dump_place {
    const char *json; /* path of dump.json or debug.json */
    const char *rank; /* "rank0", "proc123", or "" */
};
struct dump_places {
    struct arena arena;
    struct dump_place *places;
    size_t count;
    const char *strays; /* files beside rank folders that are none, in a line for people; or NULL */
};
enum plumb_code dump_find(struct dump_places *places, const char *path, struct plumb_error *err);
void dump_places_free(struct dump_places *places);

#endif
