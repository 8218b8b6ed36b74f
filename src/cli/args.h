/* Command lines: one table of commands and options, from which parsing, help, man pages and shell
 * completion are all made. The rules are those of Python's argparse:
 *
 *     -o X   -oX   -tp X   -tp=X   --output_path X   --output_path=X   --out X (unambiguous prefix)
 *
 * Positional arguments may stand anywhere, "--" ends the options, a negative number is a value and
 * not an option, and an option given twice counts the last time. Beyond argparse, "-" and "_" are
 * the same inside a long name. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "base/arena.h"
#include "base/buf.h"
#include "plumb/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum args_kind {
    ARGS_FLAG,   /* bool */
    ARGS_HELP,   /* bool; parsing stops here, with success */
    ARGS_TEXT,   /* const char *; NULL when not given */
    ARGS_PATH,   /* the same; completed with file names */
    ARGS_INT,    /* int64_t; ARGS_UNSET when not given */
    ARGS_BITS,   /* the same, in any base of C: 3, 0x3 */
    ARGS_REAL,   /* double; NaN when not given */
    ARGS_CHOICE, /* int: the place in `choices`, from 0; -1 when not given */
};

enum args_arity {
    ARGS_ONE,   /* exactly one value; a positional of this arity is required */
    ARGS_MAYBE, /* one or none: without one the text is ""; a positional may be left out */
    ARGS_TWO,   /* exactly two values: struct args_list of text */
    ARGS_MANY,  /* one or more values: struct args_list of text */
    ARGS_EACH,  /* one value, may be repeated: struct args_list of text */
};

#define ARGS_UNSET INT64_MIN
#define ARGS_NAMES 3

struct args_list {
    const char **items;
    size_t count;
};

struct args_option {
    const char
        *names[ARGS_NAMES]; /* "-tp", "--target_path"; a name without a dash is a positional */
    enum args_kind kind;
    enum args_arity arity;
    size_t offset;       /* of the field in the command's options */
    const char *metavar; /* what help calls the value */
    const char *choices; /* "auto|exact|order" */
    const char *initial; /* the default, parsed like a value that was typed; or NULL */
    const char *help;
    double min, max; /* of numbers; both 0: no limit */
    bool dash_value; /* the value may begin with a dash */
};

struct args_set {
    const char *title;                 /* a heading in help; NULL ends the list */
    const struct args_option *options; /* ends with an option without names */
};

struct args_example {
    const char *line; /* NULL ends the list */
    const char *what;
};

struct args_command {
    const char *name;
    const char *summary; /* one line; NULL: a command that help does not list */
    const char *usage;   /* what follows the name, one form a line */
    const char *about;   /* paragraphs, separated by an empty line; {formats} is what plumb reads */
    const struct args_set *sets;
    const struct args_example *examples;
    const char *exits; /* "0 when ...", one code a line; or NULL */
    size_t size;       /* of the options struct */
    int (*run)(const void *options);
};

/* Fills options (command->size bytes, zeroed by the caller) from argv[0..argc-1], the words after
 * the command's name. Texts point into argv, lists live in the arena. PLUMB_E_ARG with one line
 * that says what is wrong with which word. */
enum plumb_code args_parse(const struct args_command *command, int argc, char **argv, void *options,
                           struct arena *arena, struct plumb_error *err);

/* The candidate nearest to text (edit distance, a swap counts one), or NULL when none is near
 * enough to be what was meant. candidates ends with NULL. */
const char *args_nearest(const char *text, const char *const *candidates);

/* True for options, false for positionals and for the end of a list. */
bool args_is_option(const struct args_option *option);

/* The help text of one command, wrapped to width. program is what the user types before the command
 * ("plumb"); NULL for the program itself, whose help then lists `commands`. */
void args_help(struct buf *out, const char *program, const struct args_command *command,
               const struct args_command *const *commands, unsigned width);

/* The man page of a command (program and commands as above), and the bash completion of all. */
void args_man(struct buf *out, const char *program, const struct args_command *command,
              const struct args_command *const *commands, const char *version);
void args_completion(struct buf *out, const struct args_command *root,
                     const struct args_command *const *commands);

#endif
