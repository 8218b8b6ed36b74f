/* Writing JSON. */
#ifndef BASE_JSON_PUT_H
#define BASE_JSON_PUT_H

#include "base/buf.h"

/* A string with its quotes: valid UTF-8 whatever the text is (U+FFFD stands for what is none), and
 * harmless on a terminal. */
void json_put_string(struct buf *out, const char *text);

#endif
