/* The options of plumb-mpi itself, and the commands that it has. */
#ifndef CLI_MPI_OPTIONS_H
#define CLI_MPI_OPTIONS_H

#include "cli/args.h"

struct mpi_options {
    bool help, progress;
    struct args_list map;
    const char *scratch;
    double patience;
};

extern const struct args_command mpi_root;
extern const struct args_command *const mpi_commands[]; /* the last is NULL */

#endif
