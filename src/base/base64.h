/* Bytes as text, after RFC 4648 with padding. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

#include <stdint.h>

void base64_put(struct buf *out, const uint8_t *bytes, size_t size);

/* Exactly `size` bytes from exactly their text. */
bool base64_take(const char *text, size_t length, uint8_t *bytes, size_t size);

#endif
