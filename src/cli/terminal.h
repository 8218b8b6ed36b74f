/* The terminal at the other end, if there is one. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>

/* Columns of the terminal on fd: COLUMNS if set, else what the terminal says; 0 when it is none. */
unsigned terminal_width(int fd);

/* True for a terminal that shows colours, unless NO_COLOR is set or TERM is "dumb". */
bool terminal_colour(int fd);

#endif
