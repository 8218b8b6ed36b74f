/* The calls of a dump.json: found once, parsed one at a time when a worker gets to them, so memory
 * does not grow with the dump. */
#ifndef DUMP_CALL_H
#define DUMP_CALL_H

#include "base/arena.h"
#include "plumb/call.h"

/* A recorded statistic: Max, Min and the like may be absent, null, or of several types. */
enum case_limit_kind { LIMIT_ABSENT, LIMIT_NULL, LIMIT_INT, LIMIT_FLOAT, LIMIT_BOOL, LIMIT_OTHER };

struct case_limit {
    enum case_limit_kind kind;
    int64_t integer; /* int (the nearest int64 when it does not fit), bool */
    double number;   /* the value of int, float and bool */
};

/* What was recorded about a tensor instead of its values. */
struct case_tensor {
    enum plumb_dtype dtype; /* PLUMB_DTYPE_COUNT when plumb does not know the name */
    const char *dtype_name; /* "torch.float32"; "" when the file has none */
    unsigned rank;
    const int64_t *shape;
    struct case_limit min, max;               /* "Min", "Max" */
    struct case_limit min_finite, max_finite; /* "Min_except_inf_nan", "Max_except_inf_nan" */
    bool requires_grad;
    bool uninitialised;    /* nobody has written to it yet */
    const char *data_name; /* "datapath" or "data_name"; NULL when absent */
};

/* An argument: a tensor's description, a list of arguments, or a plain value.
 *
 * What was recorded as {"type", "value"} is its value, whatever the type is called, but for slice,
 * ellipsis, torch.dtype (of a type that plumb knows) and torch.device. A memory format is none, as
 * it does not change values. Everything else that is no value any more is PLUMB_ARG_OTHER, its text
 * the type's name (NULL when there is none), or the digits of an integer that does not fit. */
struct case_arg {
    struct plumb_arg value; /* tensor and items are not set here */
    const struct case_tensor *tensor;
    struct case_arg *items; /* list, slice */
    size_t n_items;
    bool named_tuple_or_dict; /* an object without a type: kind other, items are its values */
    bool numpy;               /* recorded as a numpy scalar or array */
    bool bare; /* a JSON number or string that stood without {"type", "value"} around it */
};

struct case_kwarg {
    const char *name;
    struct case_arg value;
};

struct check_case {
    const char *name;   /* "Torch.linalg.inv.0" */
    const char *prefix; /* "Torch" */
    const char *api;    /* "linalg.inv" */
    size_t index;       /* position among the forward calls */
    struct case_arg *args;
    size_t n_args;
    struct case_kwarg *kwargs;
    size_t n_kwargs;
    bool has_backward;
    struct case_arg *grads; /* the backward entry's "input" */
    size_t n_grads;
    const char *output_dtype; /* of output[0] when it is a tensor ("torch.bfloat16"), else NULL */
    const char *
        *output_dtypes; /* of all up to the first list or dict among them; NULL: no tensor */
    size_t n_output_dtypes;
    bool all_outputs; /* those are all that were recorded */
};

/* What the call gave when it was recorded. */
struct case_results {
    struct case_arg *outputs;
    size_t n_outputs;
    struct case_arg *grads; /* the backward entry's "output" */
    size_t n_grads;
};

/* Where a forward call and its backward stand in the file. */
struct case_place {
    const char *name; /* without ".forward" */
    const char *call; /* what is called: the name, but "Aten.add.0" for the operator "00004-aten" */
    uint64_t forward, forward_size, backward, backward_size; /* bytes; backward_size 0: none */
};

struct case_file;

/* Opens a dump.json. Refuses one that is damaged anywhere, has no data or framework, or an entry
 * that is neither forward nor backward nor an operator, "00004-aten" (PLUMB_E_FORMAT), and says
 * where; and other frameworks (PLUMB_E_UNSUPPORTED). Entries of modules, and backwards without
 * forwards, are left out. The places are in file order. Whether a call is to be checked, select.h
 * says. */
enum plumb_code case_file_open(const char *path, struct case_file **out, struct plumb_error *err);

/* The same for bytes in memory, which must outlive the file; path says where its folder is. */
enum plumb_code case_file_parse(const void *bytes, size_t size, const char *path,
                                struct case_file **out, struct plumb_error *err);
void case_file_close(struct case_file *file);

size_t case_count(const struct case_file *file);
const struct case_place *case_place(const struct case_file *file, size_t i);

/* "<folder of dump.json>/dump_tensor_data" when the dump says it has payloads, else NULL; "dump"
 * for one of operators. */
const char *case_data_dir(const struct case_file *file);

/* Parses call i. Everything lives in the arena, but the name. Missing arguments are none. Errors
 * concern this call only: shapes that no tensor has, lists nested too deeply or too long, entries
 * of the wrong kind. Thread-safe for different arenas. */
enum plumb_code case_parse(const struct case_file *file, size_t i, struct arena *arena,
                           struct check_case *out, struct plumb_error *err);

/* The same for what it gave. */
enum plumb_code case_parse_results(const struct case_file *file, size_t i, struct arena *arena,
                                   struct case_results *out, struct plumb_error *err);

#endif
