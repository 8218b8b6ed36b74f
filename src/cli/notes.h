/* Lines about what was odd in the input. */
#ifndef CLI_NOTES_H
#define CLI_NOTES_H

/* Each line as a message; NULL is none. */
void notes_say(const char *notes);

#endif
