/* The general comparison of two dump trees (dump.json or debug.json), with rules and a table of its
 * own: which rows pair, which are left out, what the cells say, and what counts as an error. It
 * reproduces the tool that writes such dumps, columns, words and number formats included; what
 * plumb makes of the same trees is plumb_compare. */
#ifndef PLUMB_GENERAL_H
#define PLUMB_GENERAL_H

#include "plumb/progress.h"
#include "plumb/table.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_general_options {
    bool fuzzy;            /* pair rows whose names differ in the call number only */
    const char *cell_map;  /* YAML file of module names; "": Cell counts as Module; NULL: off */
    const char *data_map;  /* YAML file of row names; NULL: off */
    const char *layer_map; /* YAML: names of modules by the class that holds them; NULL: off */
    const char *api_map;   /* YAML: API names; "": MindSpore's become PyTorch's; NULL: off */
    bool plain_infinities; /* "inf" as in .xlsx files, not " inf" as in .csv files */
    unsigned threads;      /* 0: as many as there are processors */
    plumb_progress_fn *progress; /* NULL: none; counts rows, not bytes */
    void *progress_context;
};

struct plumb_general {
    struct plumb_table *table;
    size_t rows, unmatched;  /* rows of the table; those without a partner */
    size_t errors, warnings; /* rows by Result */
    char *notes;             /* what was odd about the files, a line each; NULL: nothing */
    char *mapping;           /* of the rows that a layer_map paired, as a data_map file; or NULL */
};

/* Compares the trees of two JSON files. Damaged payloads are rows; only files that are no dumps,
 * that were recorded by different tasks, or mapping files that cannot be read, fail the call. */
enum plumb_code plumb_general_compare(struct plumb_general *out, const char *target_json,
                                      const char *golden_json,
                                      const struct plumb_general_options *options,
                                      struct plumb_error *err);
void plumb_general_free(struct plumb_general *general);

/* What of two paths is to be compared: a pair of JSON files, or one such pair for each rank of two
 * step folders, in the order of the ranks; or those of every step that both have below a folder
 * "graph" or "pynative". */
struct plumb_general_place {
    const char *target, *golden; /* JSON files */
    const char *rank;            /* "rank0", "proc4711", or "" */
    bool debug;                  /* debug.json */
};
struct plumb_general_places {
    struct plumb_general_place *places;
    size_t count;
    void *memory;
};

/* PLUMB_E_UNSUPPORTED when one of them is no dump tree, PLUMB_E_ARG when their numbers of ranks
 * differ. */
enum plumb_code plumb_general_find(struct plumb_general_places *out, const char *target,
                                   const char *golden, struct plumb_error *err);
void plumb_general_places_free(struct plumb_general_places *places);

#ifdef __cplusplus
}
#endif
#endif
