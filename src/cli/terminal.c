/* How wide a terminal is, and whether it shows colours. */
#define _GNU_SOURCE
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

unsigned terminal_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    if (columns && *columns) {
        char *end;
        unsigned long width = strtoul(columns, &end, 10);
        if (!*end && width > 0 && width < 100000)
            return (unsigned)width;
    }
    struct winsize size;
    if (isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col)
        return size.ws_col;
    return 0;
}

bool terminal_colour(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}
