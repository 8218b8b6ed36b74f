/* The options of compare, and the tables that describe them. */
#ifndef CLI_COMPARE_OPTIONS_H
#define CLI_COMPARE_OPTIONS_H

#include "cli/cli.h"

enum only { ONLY_FAIL, ONLY_SUSPICIOUS };
enum mode { MODE_AUTO, MODE_TORCHAIR };

struct compare_options {
    struct cli_view view;
    const char *words[3]; /* TARGET GOLDEN RESULT, or what of them no option gave */
    const char *target, *golden, *output, *report;
    bool xlsx, fuzzy, quiet, all, diff_analyze;
    int match, columns, equal_nan, only;
    const char *map, *standard, *metrics;
    int rules, mode;
    const char *cell_map, *data_map, *api_map, *layer_map;
    struct args_list set;
    double rtol, atol, gt, max_err, stat_limit;
    int verdict;
    const char *arithmetic, *memory, *baseline, *write_baseline;
    int64_t seed;
    const char *shards;
    struct args_list dims, parallel;
};

extern const struct args_set compare_sets[];
extern const struct args_example compare_examples[];

#endif
