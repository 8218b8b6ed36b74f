/* Notes of the library as messages, line by line. */
#include "cli/notes.h"

#include "cli/cli.h"

#include <string.h>

void notes_say(const char *notes)
{
    for (const char *line = notes; line && *line;) {
        size_t length = strcspn(line, "\n");
        cli_message("%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
}
