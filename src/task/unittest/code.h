/* Python source made of what a stranger's file says: quoted, cleaned, or refused. */
#ifndef UNITTEST_CODE_H
#define UNITTEST_CODE_H

#include "base/buf.h"
#include "base/json.h"

/* A string literal in ASCII whose value is exactly that text; bytes that are no UTF-8 stand for
 * themselves as characters below 256. */
void code_string(struct buf *out, const char *text, size_t length);

/* The text with everything but ASCII letters, digits and the characters of `also` replaced by an
 * underscore, cut to `most` characters. */
void code_clean(struct buf *out, const char *text, size_t length, const char *also, size_t most);

/* The expression that makes a recorded argument again, json standing right behind event. False when
 * it cannot be made again, with a reason for people in `refused`; what was appended by then is to
 * be thrown away. */
enum { CODE_REASON = 160 };
bool code_argument(struct buf *out, struct json *json, enum json_event event,
                   char refused[CODE_REASON]);

#endif
