/* JSON for people and programs: one value a line, indented by one space a level, as Python's
 * json.dump(..., indent=1) lays it out. */
#ifndef RANKS_PRETTY_H
#define RANKS_PRETTY_H

#include "base/buf.h"

#include <stdint.h>

struct pretty {
    struct buf text;
    unsigned depth, indent; /* indent: blanks a level */
    bool first;             /* nothing was put into the open list or object yet */
};

void pretty_open(struct pretty *out, char bracket); /* '{' or '[' */
void pretty_close(struct pretty *out, char bracket);
void pretty_key(struct pretty *out, const char *key);

/* The place for a value inside a list; after a key there is no need. */
void pretty_item(struct pretty *out);

void pretty_string(struct pretty *out, const char *text);
void pretty_word(struct pretty *out, const char *word); /* null, true, NaN, 1.5 */

/* Values as dump.json has them: the text of one JSON value, laid out anew. False (and null is
 * written) when it is damaged. */
bool pretty_value(struct pretty *out, const void *bytes, size_t size);

#endif
