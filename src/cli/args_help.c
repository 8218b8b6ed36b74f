/* The help of a command, wrapped to the width of the terminal. */
#define _GNU_SOURCE
#include "cli/args.h"

#include <string.h>

#define INDENT 2
#define HELP_COLUMN 30

/* Appends text wrapped to width; every line but the first is indented by `indent`. column is where
 * the first line begins. Keeps the newlines of the text. */
static void wrap(struct buf *out, const char *text, size_t indent, size_t column, size_t width)
{
    size_t at = column;
    while (*text) {
        if (*text == '\n') {
            buf_text(out, "\n");
            if (text[1] && text[1] != '\n')
                buf_repeat(out, ' ', indent);
            at = indent;
            text++;
            continue;
        }
        size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " \n");
        if (at + blanks + word > width && at > indent) {
            buf_text(out, "\n");
            buf_repeat(out, ' ', indent);
            at = indent;
        } else {
            buf_repeat(out, ' ', blanks);
            at += blanks;
        }
        buf_append(out, text + blanks, word);
        at += word;
        text += blanks + word;
    }
    buf_text(out, "\n");
}

static void option_value(struct buf *out, const struct args_option *option)
{
    if (option->kind == ARGS_FLAG || option->kind == ARGS_HELP)
        return;
    const char *shown = option->metavar ? option->metavar : option->choices;
    if (option->arity == ARGS_MAYBE)
        buf_printf(out, " [%s]", shown);
    else if (option->arity == ARGS_MANY)
        buf_printf(out, " %s...", shown);
    else
        buf_printf(out, " %s", shown);
}

static void option_names(struct buf *out, const struct args_option *option)
{
    for (size_t i = 0; i < ARGS_NAMES && option->names[i]; i++)
        buf_printf(out, "%s%s", i ? ", " : "", option->names[i]);
    if (args_is_option(option))
        option_value(out, option);
}

static void option_help(struct buf *out, const struct args_option *option)
{
    buf_text(out, option->help);
    if (option->initial)
        buf_printf(out, " (default: %s)", option->initial);
}

static void entry(struct buf *out, const char *left, const char *right, size_t width)
{
    size_t used = INDENT + strlen(left);
    buf_repeat(out, ' ', INDENT);
    buf_text(out, left);
    if (used + 2 > HELP_COLUMN) {
        buf_text(out, "\n");
        used = 0;
    }
    buf_repeat(out, ' ', HELP_COLUMN - used);
    wrap(out, right, HELP_COLUMN, HELP_COLUMN, width);
}

static void usage(struct buf *out, const char *program, const struct args_command *command)
{
    const char *form = command->usage;
    for (bool first = true; form; first = false) {
        size_t length = strcspn(form, "\n");
        buf_text(out, first ? "Usage: " : "       ");
        if (program)
            buf_printf(out, "%s ", program);
        buf_printf(out, "%s %.*s\n", command->name, (int)length, form);
        form = form[length] ? form + length + 1 : NULL;
    }
}

void args_help(struct buf *out, const char *program, const struct args_command *command,
               const struct args_command *const *commands, unsigned width)
{
    usage(out, program, command);
    buf_text(out, "\n");
    wrap(out, command->about, 0, 0, width);
    if (!program) {
        buf_text(out, "\nCommands:\n");
        for (; *commands; commands++)
            if ((*commands)->summary)
                entry(out, (*commands)->name, (*commands)->summary, width);
    }
    for (const struct args_set *set = command->sets; set->title; set++) {
        buf_printf(out, "\n%s:\n", set->title);
        for (const struct args_option *option = set->options; option->names[0]; option++) {
            struct buf left = {0}, right = {0};
            option_names(&left, option);
            option_help(&right, option);
            if (left.failed || right.failed)
                out->failed = true;
            else
                entry(out, left.data, right.data, width);
            buf_free(&left);
            buf_free(&right);
        }
    }
    if (command->exits) {
        buf_text(out, "\nExit code:\n  ");
        wrap(out, command->exits, INDENT, INDENT, width);
    }
    if (command->examples) {
        buf_text(out, "\nExamples:\n");
        for (const struct args_example *example = command->examples; example->line; example++)
            buf_printf(out, "  %s\n      %s\n", example->line, example->what);
    }
}
