/* Bytes as base64 text, and back. */
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *out, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += 3) {
        size_t n = size - i < 3 ? size - i : 3;
        uint32_t three = 0;
        for (size_t k = 0; k < 3; k++)
            three = three << 8 | (k < n ? bytes[i + k] : 0);
        char text[4];
        for (size_t k = 0; k < 4; k++)
            text[k] = k > n ? '=' : digits[three >> (18 - 6 * k) & 63];
        buf_append(out, text, sizeof text);
    }
}

static int value_of(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool base64_take(const char *text, size_t length, uint8_t *bytes, size_t size)
{
    if (length != (size + 2) / 3 * 4)
        return false;
    for (size_t i = 0; i < size; i += 3, text += 4) {
        size_t n = size - i < 3 ? size - i : 3;
        uint32_t three = 0;
        for (size_t k = 0; k < 4; k++) {
            int value = k > n ? (text[k] == '=' ? 0 : -1) : value_of(text[k]);
            if (value < 0)
                return false;
            three = three << 6 | (uint32_t)value;
        }
        for (size_t k = 0; k < n; k++)
            bytes[i + k] = (uint8_t)(three >> (16 - 8 * k));
        if (three & ((UINT32_C(1) << (24 - 8 * n)) - 1))
            return false; /* bits that belong to no byte */
    }
    return true;
}
