/* The options of acc_check and multi_acc_check, and the tables that describe them. */
#ifndef CLI_CHECK_OPTIONS_H
#define CLI_CHECK_OPTIONS_H

#include "cli/cli.h"

struct check_options {
    struct cli_common common;
    const char *dump, *dump_option, *folder, *csv_path, *config;
    bool save_error_data, jit, filter, quiet;
    struct args_list devices;
    const char *rules;
    int rng, inputs;
    int64_t seed, splits;
    struct args_list imports;
    double timeout;
    int64_t torch_threads;
    bool no_torch;
    const char *memory, *arithmetic, *baseline, *write_baseline, *report;
    int verdict, format;
};

extern const struct args_set check_sets[], multi_check_sets[];

#endif
