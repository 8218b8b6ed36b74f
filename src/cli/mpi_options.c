/* What plumb-mpi takes. plumb has it, too: it writes the man page. */
#include "cli/mpi_options.h"

#include "cli/cli.h"

#include <stddef.h>

#define FIELD(name) .offset = offsetof(struct mpi_options, name)

static const struct args_option mpi_options[] = {
    {.names = {"--map"},
     .kind = ARGS_TEXT,
     .arity = ARGS_EACH,
     FIELD(map),
     .metavar = "RULE",
     .help = "HOST:FROM=TO, or a file of such lines: on HOST ('*': on all), files that the dumps "
             "call FROM/... are read as TO/..."},
    {.names = {"--scratch"},
     .kind = ARGS_PATH,
     FIELD(scratch),
     .metavar = "DIR",
     .help = "folder for the journal, from which the next start of the same command goes on when "
             "this one is killed (default: plumb-mpi-UID in $TMPDIR or /tmp)"},
    {.names = {"--patience"},
     .kind = ARGS_REAL,
     FIELD(patience),
     .metavar = "SECONDS",
     .min = 0.1,
     .max = 1e6,
     .help = "a process that takes longer over a piece is taken for dead (default: 60)"},
    {.names = {"--progress"},
     .kind = ARGS_FLAG,
     FIELD(progress),
     .help = "show how far all processes are together, on one line of stderr"},
    {.names = {"-h", "--help"}, .kind = ARGS_HELP, FIELD(help), .help = "show this help"},
    {.names = {NULL}},
};

static const struct args_set mpi_sets[] = {{"Options", mpi_options}, {NULL, NULL}};

static const struct args_example mpi_examples[] = {
    {"mpirun -n 8 plumb-mpi compare npu gpu", "two dumps, by eight processes"},
    {"srun plumb-mpi --scratch /shared/tmp compare npu gpu", "the same under Slurm"},
    {NULL, NULL},
};

const struct args_command mpi_root = {
    .name = "plumb-mpi",
    .summary = "plumb on several processes",
    .usage = "[options] COMMAND [arguments]",
    .about = "Runs a command of plumb on all processes that MPI has started, with the options, the "
             "output and the exit code of plumb. Process 0 reads what the command names, hands out "
             "the work in pieces and writes the result; every process has one thread for it, or as "
             "many as --threads of the command says. A process that dies or hangs costs its "
             "piece, which is done again elsewhere.",
    .sets = mpi_sets,
    .examples = mpi_examples,
    .size = sizeof(struct mpi_options),
};

const struct args_command *const mpi_commands[] = {
    &cmd_compare,        &cmd_summary,   &cmd_blame, &cmd_condense,
    &cmd_overflow_check, &cmd_acc_check, NULL};
