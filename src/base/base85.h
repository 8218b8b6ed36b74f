/* Bytes as text with the 85 characters of RFC 1924, as Python's base64.b85encode writes them: five
 * for each four bytes, the first of which counts most. None of them is special in JSON. */
#ifndef BASE_BASE85_H
#define BASE_BASE85_H

#include "base/buf.h"

#include <stdint.h>

/* size is a multiple of 4. */
void base85_put(struct buf *out, const uint8_t *bytes, size_t size);

/* Exactly `size` bytes, a multiple of 4, from exactly their text. */
bool base85_take(const char *text, size_t length, uint8_t *bytes, size_t size);

#endif
