/* The search for the first difference, between its files. */
#ifndef RANKS_DIFF_H
#define RANKS_DIFF_H

#include "msprobe/compare.h"
#include "task/ranks/analyze.h"

/* Two trees of a rank, with their rows in pairs. */
struct diff {
    struct general general;
    bool checksums; /* compared, instead of statistics */
    const struct ranks_rules *rules;
    bool stacks; /* there is a stack.json */
};

/* The pairs of one API: [from, to). */
struct diff_api {
    const struct dump_api *api;
    size_t from, to;
};

enum plumb_code diff_open(struct diff *diff, const struct plumb_general_place *place,
                          const struct plumb_analyze_options *options,
                          const struct ranks_rules *rules, struct plumb_error *err);
void diff_close(struct diff *diff);

/* The next API after `at`; false at the end. Start with all zero. */
bool diff_next(const struct diff *diff, struct diff_api *at);

/* Whether an output of the API differs; the pair and its largest difference, in words, when out
 * parameters are given. From is where to begin looking, and moves on. */
bool diff_find(const struct diff *diff, const struct diff_api *api, size_t *from, char *words,
               size_t size);

/* Whether an input of the API differs already. */
bool diff_in_input(const struct diff *diff, const struct diff_api *api);

/* "input", "output", ... */
const char *diff_state(const struct dump_row *row);

/* {api: {"is_same", "op_items": [...]}} into a file of the folder; path is the caller's to free. */
enum plumb_code diff_write(const struct diff *diff, const char *folder, const char *rank,
                           char **path, struct plumb_error *err);

/* {"op_name", "data_info", "stack_info"} */
void diff_put_node(struct pretty *out, const struct diff *diff, const struct diff_api *api);

#endif
