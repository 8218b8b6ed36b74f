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

void notes_close(const char *closing, FILE *out)
{
    if (!closing || !*closing)
        return;
    for (const char *c = closing; *c; c++)
        fputc((unsigned char)*c < 0x20 && *c != '\n' ? '?' : *c, out);
    if (closing[strlen(closing) - 1] != '\n')
        fputc('\n', out);
}
