/* Options of all commands that give a second opinion; field is where the value goes:
 * .offset = offsetof(...). */
#ifndef CLI_OPINION_OPTIONS_H
#define CLI_OPINION_OPTIONS_H

#include "cli/args.h"

#define CLI_ARITHMETIC_OPTION(field)                                                               \
    {                                                                                              \
        .names = {"--arithmetic"}, .kind = ARGS_TEXT, field, .metavar = "LIST",                    \
        .help = "cheaper arithmetic that is meant, such as tf32,bf16-store; docs/VERDICTS.md has " \
                "the names"                                                                        \
    }

#define CLI_PERTURBATION_SEED_OPTION(field)                                                        \
    {                                                                                              \
        .names = {"--seed"}, .kind = ARGS_INT, field, .metavar = "N", .min = 0,                    \
        .max = 9007199254740992.0, .help = "seed of the perturbations (default: 1234)"             \
    }

#define CLI_BASELINE_OPTION(field)                                                                 \
    {                                                                                              \
        .names = {"--baseline"}, .kind = ARGS_PATH, field, .metavar = "FILE",                      \
        .help = "deviations that are accepted, a file of --write-baseline: only what is new or "   \
                "worse fails"                                                                      \
    }

#define CLI_WRITE_BASELINE_OPTION(field)                                                           \
    {                                                                                              \
        .names = {"--write-baseline"}, .kind = ARGS_PATH, field, .metavar = "FILE",                \
        .help = "accept all faults and cheaper arithmetic that are found, and write them there; "  \
                "without --baseline none of them fails"                                            \
    }

#define CLI_CALL_MEMORY_OPTION(field)                                                              \
    {                                                                                              \
        .names = {"--memory"}, .kind = ARGS_TEXT, field, .metavar = "SIZE",                        \
        .help = "what all calls together may take, such as 16G (default: three quarters of the "   \
                "machine, or of the container)"                                                    \
    }

#endif
