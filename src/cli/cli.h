/* What the commands share: common options, messages, and where results go. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/args.h"
#include "plumb/compare.h"
#include "plumb/run.h"
#include "plumb/table.h"

enum cli_exit { CLI_OK = 0, CLI_BAD = 1, CLI_UNUSABLE = 2 };

/* The first member of every command's options. */
struct cli_common {
    bool help, no_color;
    int64_t threads, cpu_mask;
};

/* The first member of the options of commands that show a table. */
struct cli_view {
    struct cli_common common;
    int format; /* enum plumb_table_format, without xlsx; or CLI_JUNIT */
    bool wide;
    const char *sort;
    int64_t limit;
};

/* JUnit XML, of rows that pass or fail; in the place of xlsx, which is never printed. */
enum { CLI_JUNIT = PLUMB_TABLE_XLSX };

extern const struct args_option cli_common_options[], cli_view_options[];
extern const struct args_option cli_judged_view_options[]; /* with CLI_JUNIT */

extern const struct args_command cmd_compare, cmd_convert, cmd_info, cmd_standard, cmd_summary;
extern const struct args_command cmd_blame, cmd_capsule;
extern const struct args_command cmd_config_check, cmd_merge_result;
extern const struct args_command cmd_condense;
extern const struct args_command cmd_overflow_check;
extern const struct args_command cmd_replay, cmd_plot, cmd_report;
extern const struct args_command cmd_api_precision_compare;
extern const struct args_command cmd_acc_check, cmd_multi_acc_check, cmd_ops;
extern const struct args_command cmd_jprof, cmd_summary_diff_check;
extern const struct args_command cmd_numeric_check;
extern const struct args_command cmd_help, cmd_man, cmd_completion;

extern const struct args_command cli_root;
extern const struct args_command *const cli_commands[]; /* ends with NULL */

/* The whole program; returns the exit code. */
int cli_main(int argc, char **argv);

/* The processes that share the work of plumb-mpi, led by this one; NULL in plumb. */
extern struct plumb_crew *cli_crew;

/* In another process of plumb-mpi, of a command that prepares for its part itself; else NULL. */
extern struct plumb_helping *cli_helping;

/* PLUMB_E_IO when a rank of one of these dumps, two at most, is on another host of plumb-mpi and
 * not here, or is another one there. */
enum plumb_code cli_check_hosts(const char *const *paths, size_t count, struct plumb_error *err);

/* The command of that name, or NULL. */
const struct args_command *cli_find(const char *name);

/* Prints the help of a command, or of the program for &cli_root; returns the exit code. */
int cli_help(const struct args_command *command);

/* "plumb: ..." on stderr, one line, control characters made harmless. */
void cli_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_report(const struct plumb_error *err);

/* A message, a pointer to the command's help, and the exit code for wrong usage. */
int cli_usage(const struct args_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* True when text ends in `ending`. */
bool cli_ends_with(const char *text, const char *ending);

/* The number of threads asked for; 0 means all processors. */
unsigned cli_threads(const struct cli_common *common);

/* Blocks of up to 32 MiB are used again, for tensors that are unpacked one after the other: the
 * system would clear their pages each time. */
void cli_keep_blocks(void);

/* Tensors come and go by the thousand, and a page from the system costs more than most
 * operators. So memory that was used once stays with the process, and comes in large pages: a
 * range is asked for and given back before anything is in it, which only settles how the system
 * will back it. */
void cli_keep_memory(void);

/* Writes text to stdout. False (after a message, unless the reader has gone) when that fails. */
bool cli_print(const char *text);

/* Since the program started. */
double cli_seconds(void);

/* Whether nobody reads stdout any more. `plumb ... | head` is no error: the reader has what it
 * wanted. */
bool cli_reader_has_gone(void);

/* True for formats that other programs read: people's lines then go to stderr. */
bool cli_is_machine_format(int format);

/* Sorts and cuts the table as asked for. */
enum plumb_code cli_arrange(struct plumb_table *table, const struct cli_view *view,
                            struct plumb_error *err);

/* Prints the table to stdout as asked for; PLUMB_OK also when the reader has gone. */
enum plumb_code cli_show(const struct plumb_table *table, const struct cli_view *view,
                         struct plumb_error *err);

/* Writes the table to a file; the ending of its name chooses the format. */
enum plumb_code cli_save(const struct plumb_table *table, const char *path,
                         const struct cli_view *view, struct plumb_error *err);

/* What was odd about the files of a run, on stderr. */
void cli_say_warnings(const struct plumb_run *run);

/* Files beside the rank folders of a dump, on stderr; for whoever opens no run. NULL is fine. */
void cli_say_strays(const char *path);

/* The note about a file that cli_save wrote. */
void cli_say_written(const struct plumb_table *table, const char *path);
void cli_say_rows(size_t rows, const char *path);

/* PLUMB_E_ARG, listing the endings, for a path that cli_save would refuse. */
enum plumb_code cli_check_ending(const char *path, struct plumb_error *err);

#endif
