/* JSON values as Python prints them: tables show what the origin shows. */
#ifndef DUMP_PYTHON_H
#define DUMP_PYTHON_H

#include "base/buf.h"
#include "base/json.h"
#include "base/number.h"

/* Appends the text of the value that begins with event, and leaves the parser behind it. A string
 * appears as it is (str), strings inside lists and dicts in quotes (repr). False when the JSON is
 * damaged. */
bool python_text(struct json *json, enum json_event event, struct buf *out);

/* The parser's last number and its text; true when it is an integer. One of more digits than any
 * type has becomes a float. */
bool python_number(const struct json *json, double *value, char text[NUMBER_BYTES]);

/* A number that is no integer as Python prints it. */
void python_float(double value, char text[NUMBER_BYTES]);

/* A string as Python's repr writes it, quotes included. */
void python_quote(const char *text, size_t length, struct buf *out);

/* The last key or string of the parser, unescaped; half of a surrogate pair leaves it as written.
 */
void python_string(const struct json *json, struct buf *out);

#endif
