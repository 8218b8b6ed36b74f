/* What in a configuration may be misspelt: keys that are no settings, and entries of white_list and
 * black_list that fit no call of a dump. */
#ifndef PRECHECK_LIST_NOTES_H
#define PRECHECK_LIST_NOTES_H

#include "dump/call.h"
#include "task/precheck/config.h"

/* Tells each key that is no setting, with the nearest that is one. */
void key_notes(const struct check_config *config, void (*note)(void *context, const char *text),
               void *context);

/* Tells each entry that no call of the dump has, with the nearest name that one has; a few, then
 * how many more. `list` is what to call the list. */
void list_notes(const struct case_file *file, const char *list, const struct check_names *names,
                void (*note)(void *context, const char *text), void *context);

#endif
