/* The bash completion script, made from the tables of all commands. */
#define _GNU_SOURCE
#include "cli/args.h"

#include <string.h>

static void choice_words(struct buf *out, const char *choices)
{
    for (; *choices; choices++)
        buf_append(out, *choices == '|' ? " " : choices, 1);
}

/* All options with a dash; and a case label for each option that takes a value. */
static void option_words(struct buf *out, const struct args_command *command)
{
    for (const struct args_set *set = command->sets; set->title; set++)
        for (const struct args_option *option = set->options; option->names[0]; option++)
            for (size_t i = 0; i < ARGS_NAMES && option->names[i] && args_is_option(option); i++)
                buf_printf(out, "%s ", option->names[i]);
}

static void value_cases(struct buf *out, const struct args_command *command)
{
    for (const struct args_set *set = command->sets; set->title; set++) {
        for (const struct args_option *option = set->options; option->names[0]; option++) {
            if (!args_is_option(option) || option->kind == ARGS_FLAG || option->kind == ARGS_HELP)
                continue;
            buf_text(out, "        ");
            for (size_t i = 0; i < ARGS_NAMES && option->names[i]; i++)
                buf_printf(out, "%s'%s %s'", i ? "|" : "", command->name, option->names[i]);
            buf_text(out, ")");
            if (option->choices) {
                buf_text(out, " words='");
                choice_words(out, option->choices);
                buf_text(out, option->kind == ARGS_PATH ? "' files=1;;\n" : "';;\n");
            } else if (option->kind == ARGS_PATH) {
                buf_text(out, " files=1;;\n");
            } else {
                buf_text(out, " return;;\n");
            }
        }
    }
}

static void choice_positionals(struct buf *out, const struct args_command *command)
{
    for (const struct args_set *set = command->sets; set->title; set++) {
        for (const struct args_option *option = set->options; option->names[0]; option++) {
            if (args_is_option(option) || !option->choices)
                continue;
            buf_printf(out, "            %s) words='", command->name);
            choice_words(out, option->choices);
            buf_text(out, "';;\n");
        }
    }
}

void args_completion(struct buf *out, const struct args_command *root,
                     const struct args_command *const *commands)
{
    buf_printf(out, "# bash completion for %s; made from its table of options\n", root->name);
    buf_printf(out, "_%s()\n{\n", root->name);
    buf_text(out, "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                  "    local command=${COMP_WORDS[1]} words='' files=''\n"
                  "    COMPREPLY=()\n"
                  "    if ((COMP_CWORD == 1)); then\n"
                  "        COMPREPLY=($(compgen -W '");
    for (const struct args_command *const *each = commands; *each; each++)
        if ((*each)->summary)
            buf_printf(out, "%s ", (*each)->name);
    option_words(out, root);
    buf_text(out, "' -- \"$cur\"))\n"
                  "        return\n"
                  "    fi\n"
                  "    case \"$command $prev\" in\n");
    for (const struct args_command *const *each = commands; *each; each++)
        if ((*each)->summary)
            value_cases(out, *each);
    buf_text(out, "    esac\n"
                  "    if [[ -z $words && -z $files && $cur == -* ]]; then\n"
                  "        case $command in\n");
    for (const struct args_command *const *each = commands; *each; each++) {
        if (!(*each)->summary)
            continue;
        buf_printf(out, "            %s) words='", (*each)->name);
        option_words(out, *each);
        buf_text(out, "';;\n");
    }
    buf_text(out, "        esac\n"
                  "    elif [[ -z $words && -z $files ]]; then\n"
                  "        case $command in\n");
    for (const struct args_command *const *each = commands; *each; each++)
        if ((*each)->summary)
            choice_positionals(out, *each);
    buf_text(out, "            *) files=1;;\n"
                  "        esac\n"
                  "    fi\n"
                  "    if [[ -n $files ]]; then\n"
                  "        compopt -o filenames 2>/dev/null\n"
                  "        mapfile -t COMPREPLY < <(compgen -f -W \"$words\" -- \"$cur\")\n"
                  "    else\n"
                  "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                  "    fi\n"
                  "}\n");
    buf_printf(out, "complete -F _%s %s\n", root->name, root->name);
}
