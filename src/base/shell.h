/* Command lines that people copy into a shell. */
#ifndef BASE_SHELL_H
#define BASE_SHELL_H

#include "base/buf.h"

/* A text as a shell takes it for one word. */
void shell_word(struct buf *out, const char *word);

/* The command that takes a call, the first bytes of a name, out of a dump and judges it alone. */
void shell_capsule(struct buf *out, const char *dump, const char *call, size_t length);

#endif
