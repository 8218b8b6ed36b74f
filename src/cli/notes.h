/* Lines of the library for people: what was odd in the input, and what was found. */
#ifndef CLI_NOTES_H
#define CLI_NOTES_H

#include <stdio.h>

/* Each line as a message; NULL is none. */
void notes_say(const char *notes);

/* The closing lines as they are, with nothing that a terminal would obey; NULL is none. */
void notes_close(const char *closing, FILE *out);

#endif
