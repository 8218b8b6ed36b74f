/* Man pages from the table of options. */
#define _GNU_SOURCE
#include "cli/args.h"

#include <ctype.h>
#include <string.h>

/* Text as troff takes it: dashes that stay dashes, no line that begins like a request. */
static void plain(struct buf *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n'))
            buf_text(out, "\\&");
        if (text[i] == '-')
            buf_text(out, "\\-");
        else if (text[i] == '\\')
            buf_text(out, "\\e");
        else
            buf_append(out, text + i, 1);
    }
}

static void plain_text(struct buf *out, const char *text)
{
    plain(out, text, strlen(text));
}

static void upper(struct buf *out, const char *text)
{
    for (; *text; text++) {
        char c = (char)toupper((unsigned char)*text);
        plain(out, &c, 1);
    }
}

/* Every line of text as one line of the page. */
static void lines(struct buf *out, const char *prefix, const char *text)
{
    while (text) {
        size_t length = strcspn(text, "\n");
        plain_text(out, prefix);
        plain(out, text, length);
        buf_text(out, "\n.br\n");
        text = text[length] ? text + length + 1 : NULL;
    }
}

static void paragraphs(struct buf *out, const char *text)
{
    while (text) {
        size_t length = strcspn(text, "\n");
        if (length)
            plain(out, text, length);
        else
            buf_text(out, ".PP");
        buf_text(out, "\n");
        text = text[length] ? text + length + 1 : NULL;
    }
}

static void option_entry(struct buf *out, const struct args_option *option)
{
    buf_text(out, ".TP\n");
    for (size_t i = 0; i < ARGS_NAMES && option->names[i]; i++) {
        buf_text(out, i ? ", \\fB" : "\\fB");
        plain_text(out, option->names[i]);
        buf_text(out, "\\fR");
    }
    if (args_is_option(option) && option->kind != ARGS_FLAG && option->kind != ARGS_HELP) {
        bool maybe = option->arity == ARGS_MAYBE;
        buf_text(out, maybe ? " [\\fI" : " \\fI");
        plain_text(out, option->metavar ? option->metavar : option->choices);
        buf_text(out, maybe ? "\\fR]" : "\\fR");
    }
    buf_text(out, "\n");
    plain_text(out, option->help);
    if (option->initial) {
        buf_text(out, " (default: ");
        plain_text(out, option->initial);
        buf_text(out, ")");
    }
    buf_text(out, "\n");
}

static void see_also(struct buf *out, const char *program, const struct args_command *command,
                     const struct args_command *const *commands)
{
    /* A program such as plumb-mpi has the commands of plumb, and their pages. */
    const char *name = program ? program : command->name, *separator = "";
    const int length = (int)strcspn(name, "-");
    buf_text(out, ".SH SEE ALSO\n");
    if (program || name[length]) {
        buf_printf(out, "\\fB%.*s\\fR(1)", length, name);
        separator = ", ";
    }
    for (; *commands; commands++) {
        if (!(*commands)->summary || !strcmp((*commands)->name, command->name))
            continue;
        buf_printf(out, "%s\\fB%.*s\\-%s\\fR(1)", separator, length, name, (*commands)->name);
        separator = ", ";
    }
    buf_text(out, "\n");
}

void args_man(struct buf *out, const char *program, const struct args_command *command,
              const struct args_command *const *commands, const char *version)
{
    const char *first = program ? program : "", *dash = program ? "-" : "";
    struct buf title = {0}, typed = {0};
    buf_printf(&title, "%s%s%s", first, dash, command->name);
    buf_printf(&typed, "%s%s%s ", first, program ? " " : "", command->name);
    if (title.failed || typed.failed) {
        out->failed = true;
        goto out;
    }
    buf_text(out, ".TH \"");
    upper(out, title.data);
    buf_printf(out, "\" 1 \"\" \"plumb %s\" \"plumb manual\"\n.SH NAME\n", version);
    plain_text(out, title.data);
    buf_text(out, " \\- ");
    plain_text(out, command->summary ? command->summary : "");
    buf_text(out, "\n.SH SYNOPSIS\n");
    lines(out, typed.data, command->usage);
    buf_text(out, ".SH DESCRIPTION\n");
    paragraphs(out, command->about);
    if (!program) {
        buf_text(out, ".SH COMMANDS\n");
        for (const struct args_command *const *each = commands; *each; each++) {
            if (!(*each)->summary)
                continue;
            buf_printf(out, ".TP\n\\fB%s\\fR\n", (*each)->name);
            plain_text(out, (*each)->summary);
            buf_text(out, "\n");
        }
    }
    for (const struct args_set *set = command->sets; set->title; set++) {
        buf_text(out, ".SH ");
        upper(out, set->title);
        buf_text(out, "\n");
        for (const struct args_option *option = set->options; option->names[0]; option++)
            option_entry(out, option);
    }
    if (command->exits) {
        buf_text(out, ".SH EXIT STATUS\n");
        lines(out, "", command->exits);
    }
    if (command->examples) {
        buf_text(out, ".SH EXAMPLES\n");
        for (const struct args_example *example = command->examples; example->line; example++) {
            buf_text(out, ".TP\n\\fB");
            plain_text(out, example->line);
            buf_text(out, "\\fR\n");
            plain_text(out, example->what);
            buf_text(out, "\n");
        }
    }
    see_also(out, program, command, commands);
out:
    buf_free(&title);
    buf_free(&typed);
}
