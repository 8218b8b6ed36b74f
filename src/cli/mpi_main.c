/* plumb-mpi: the commands of plumb whose work several processes share. Process 0 runs the command,
 * the others do pieces for it. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/mpi_options.h"
#include "cli/mpi_transport.h"
#include "cli/progress.h"
#include "crew/crew.h"
#include "run/seen.h"
#include "task/compare/spread.h"
#include "task/condense/hosts.h"
#include "task/condense/spread.h"
#include "task/ranks/finding.h"
#include "task/ranks/reading.h"
#include "verdict/calls_spread.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool takes_value(const char *word)
{
    static const char *const flags[] = {"-h", "--help", "--progress"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(word, flags[i]) == 0)
            return false;
    return !strchr(word, '=');
}

/* The words of plumb-mpi itself, before the command. */
static int own_words(int argc, char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-')
        i += 1 + takes_value(argv[i]);
    return i < argc ? i : argc;
}

static bool is_spread(const struct args_command *command)
{
    for (const struct args_command *const *at = mpi_commands; *at; at++)
        if (*at == command)
            return true;
    return false;
}

static void note(void *context, const char *text)
{
    (void)context;
    if (progress_always || isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    cli_message("%s", text);
}

/* Two starts are the same when their words are, and where they were said. */
static void put_identity(struct buf *out, int argc, char **argv)
{
    char here[4096];
    buf_printf(out, "%s%c%s%c", plumb_version(), 0, getcwd(here, sizeof here) ? here : "", 0);
    for (int i = 1; i < argc; i++)
        buf_append(out, argv[i], strlen(argv[i]) + 1);
}

/* A folder of this user alone; NULL: no journal is kept. */
static const char *own_scratch(struct arena *arena)
{
    const char *base = getenv("TMPDIR");
    struct stat st;
    const char *path =
        arena_printf(arena, "%s/plumb-mpi-%ld", base && *base ? base : "/tmp", (long)getuid());
    if (!path || (mkdir(path, 0700) != 0 && errno != EEXIST))
        return NULL;
    const bool own = lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() &&
                     !(st.st_mode & 022);
    return own ? path : NULL;
}

struct start {
    struct crew_transport transport;
    struct mpi_options options;
    struct crew_places places;
    struct arena arena;
    unsigned lanes;
    int argc; /* of the command's words, after the program's name */
    char **argv;
};

/* The journal is a help: where none can be kept by default, the work is done without. */
static enum plumb_code make_crew(struct start *start, struct plumb_error *err)
{
    struct buf identity = {0};
    put_identity(&identity, start->argc, start->argv);
    const bool asked = start->options.scratch;
    struct crew_options options = {
        .lanes = start->lanes,
        .patience = isnan(start->options.patience) ? 0 : start->options.patience,
        .scratch = asked ? start->options.scratch : own_scratch(&start->arena),
        .places = &start->places,
        .identity = identity.data,
        .identity_size = identity.size,
        .note = note};
    enum plumb_code code = identity.failed ? plumb_no_memory(err)
                                           : crew_new(&cli_crew, &start->transport, &options, err);
    if (code && !asked && options.scratch) {
        cli_message("no journal is kept: %s", err->message);
        options.scratch = NULL;
        code = crew_new(&cli_crew, &start->transport, &options, err);
    }
    buf_free(&identity);
    return code;
}

/* Open MPI gives process 0 a terminal for stdout, whatever mpirun itself writes to. Results must
 * not look as if a person read them there: they go through a file in memory. -1: they need not. */
static int hide_terminal(void)
{
    if (!isatty(STDOUT_FILENO))
        return -1;
    const int terminal = dup(STDOUT_FILENO), hidden = memfd_create("stdout", MFD_CLOEXEC);
    if (terminal >= 0 && hidden >= 0 && dup2(hidden, STDOUT_FILENO) >= 0) {
        close(hidden);
        return terminal;
    }
    close(terminal);
    close(hidden);
    return -1;
}

/* False when the terminal does not take it. */
static bool show_hidden(int terminal)
{
    char bytes[65536];
    ssize_t got, put = 0;
    if (terminal < 0)
        return true;
    lseek(STDOUT_FILENO, 0, SEEK_SET);
    while ((got = read(STDOUT_FILENO, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0; at < got && put >= 0; at += put)
            put = write(terminal, bytes + at, (size_t)(got - at));
    close(terminal);
    return put >= 0;
}

static int lead(struct start *start)
{
    struct plumb_error err;
    int status = CLI_UNUSABLE;
    progress_always = start->options.progress;
    if (make_crew(start, &err)) {
        cli_report(&err);
        mpi_end(start->transport.count == 1, false, status);
        return status;
    }
    const int terminal = hide_terminal();
    status = cli_main(start->argc, start->argv);
    if (fflush(stdout) != 0 || !show_hidden(terminal))
        status = CLI_UNUSABLE;
    /* Whoever chose the ways to speak may have chosen the network on one host, too. */
    const bool hosts =
        crew_has_hosts(cli_crew) || (start->transport.count > 1 && getenv("UCX_TLS"));
    mpi_end(crew_free(cli_crew, true), hosts, status);
    return status;
}

/* The process ends, in order where process 0 said so. Threads may still hang in a read that is not
 * wanted any more, so nothing is freed. */
static _Noreturn void end_serving(const struct start *start, const struct plumb_error *err)
{
    if (err) {
        cli_message("process %u ends: %s", start->transport.me, err->message);
        _Exit(CLI_UNUSABLE); /* nobody is left to end MPI with */
    }
    mpi_end(true, false, CLI_OK); /* process 0 may end it first */
    _Exit(CLI_OK);
}

/* Commands that have to prepare for their part do so, and serve themselves, unheard. */
static bool prepares(const struct args_command *command)
{
    return command == &cmd_acc_check || command == &cmd_compare;
}

static bool serve_prepared(struct start *start, const struct crew_serving *serving,
                           struct plumb_error *err)
{
    struct plumb_helping helping = {.transport = &start->transport, .serving = *serving};
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0)
        dup2(nowhere, STDOUT_FILENO);
    cli_helping = &helping;
    plumb_fail(err, PLUMB_E_IO, "process 0 is not heard any more");
    const int status = cli_main(start->argc, start->argv);
    if (helping.begun)
        return status == CLI_OK;
    /* It cannot help, and waits for the end. */
    return crew_serve(&start->transport, &(struct crew_serving){.lanes = 0}, err) == PLUMB_OK;
}

static _Noreturn void serve(struct start *start, const struct args_command *command)
{
    struct plumb_error err;
    struct spread_desk *walks = spread_desk_new(&start->places);
    struct calls_desk *calls = calls_desk_new(&start->places);
    if (!walks || !calls)
        plumb_no_memory(&err), end_serving(start, &err);
    const struct crew_handler handlers[] = {spread_handler(walks),
                                            calls_handler(calls),
                                            rank_handler(&start->places),
                                            finding_handler(&start->places),
                                            seen_handler(&start->places),
                                            condense_handler(&start->places),
                                            hosts_scan_handler(&start->places)};
    const struct crew_serving serving = {
        .handlers = handlers, .count = sizeof handlers / sizeof *handlers, .lanes = start->lanes};
    setenv("OPENBLAS_NUM_THREADS", "1", 1); /* or it starts threads that wait in a loop */
    const bool served = prepares(command) ? serve_prepared(start, &serving, &err)
                                          : !crew_serve(&start->transport, &serving, &err);
    end_serving(start, served ? NULL : &err);
}

/* What only has to be said, process 0 says. */
static int say(const struct start *start, int (*speak)(const struct start *start))
{
    const int status = start->transport.me == 0 ? speak(start) : CLI_OK;
    mpi_end(true, false, status);
    return status;
}

static int say_plain(const struct start *start)
{
    return cli_main(start->argc, start->argv);
}

static int say_refusal(const struct start *start)
{
    return cli_usage(&mpi_root, "'%s' is not a command that processes share; plumb %s does it",
                     start->argv[1], start->argv[1]);
}

static int say_help(const struct start *start)
{
    (void)start;
    struct buf text = {0};
    args_help(&text, NULL, &mpi_root, mpi_commands, 80);
    const bool fine = !text.failed && cli_print(text.data);
    buf_free(&text);
    return fine ? CLI_OK : CLI_UNUSABLE;
}

/* The threads that the command is told to use; false when its words cannot be understood. */
static bool find_lanes(struct start *start, const struct args_command *command)
{
    struct plumb_error err;
    struct cli_common *options = arena_alloc(&start->arena, command->size);
    if (!options ||
        args_parse(command, start->argc - 2, start->argv + 2, options, &start->arena, &err) ||
        options->help)
        return false;
    start->lanes = options->threads > 0 ? (unsigned)options->threads : 1;
    if (options->cpu_mask != ARGS_UNSET)
        plumb_cpu_mask((unsigned)options->cpu_mask);
    return true;
}

static enum plumb_code read_map(struct start *start, struct plumb_error *err)
{
    char host[256] = "";
    enum plumb_code code = PLUMB_OK;
    gethostname(host, sizeof host - 1);
    for (size_t i = 0; i < start->options.map.count && !code; i++)
        code = crew_places_add(&start->places, start->options.map.items[i], host, err);
    return code;
}

int main(int argc, char **argv)
{
    struct start start = {0};
    struct plumb_error err;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGUSR1, SIG_IGN); /* how MPICH says that a process has died: it is told apart below */
    if (!mpi_begin(&start.transport))
        return CLI_UNUSABLE;
    const int own = own_words(argc, argv);
    enum plumb_code code =
        args_parse(&mpi_root, own - 1, argv + 1, &start.options, &start.arena, &err);
    if (!code)
        code = read_map(&start, &err);
    if (code) {
        if (start.transport.me == 0)
            cli_report(&err);
        mpi_end(true, false, CLI_UNUSABLE);
        return start.transport.me == 0 ? CLI_UNUSABLE : CLI_OK;
    }
    if (start.options.help)
        return say(&start, say_help);
    argv[own - 1] = argv[0];
    start.argc = argc - own + 1;
    start.argv = argv + own - 1;
    const struct args_command *command = start.argc > 1 ? cli_find(start.argv[1]) : NULL;
    if (command && !is_spread(command) && command != &cmd_help)
        return say(&start, say_refusal);
    if (!command || command == &cmd_help || !find_lanes(&start, command))
        return say(&start, say_plain);
    if (start.transport.me == 0)
        return lead(&start);
    serve(&start, command);
}
