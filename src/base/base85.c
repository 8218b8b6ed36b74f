/* Bytes as base85 text, and back. */
#include "base/base85.h"

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                             "!#$%&()*+-;<=>?@^_`{|}~";
enum { BASE = sizeof digits - 1, NONE = 255 };
_Static_assert(BASE == 85, "85 characters");

void base85_put(struct buf *out, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i + 4 <= size; i += 4) {
        uint32_t four = (uint32_t)bytes[i] << 24 | (uint32_t)bytes[i + 1] << 16 |
                        (uint32_t)bytes[i + 2] << 8 | bytes[i + 3];
        char text[5];
        for (size_t k = 5; k--; four /= BASE)
            text[k] = digits[four % BASE];
        buf_append(out, text, sizeof text);
    }
}

bool base85_take(const char *text, size_t length, uint8_t *bytes, size_t size)
{
    uint8_t value[256];
    if (size % 4 || length != size / 4 * 5)
        return false;
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = NONE;
    for (size_t i = 0; i < BASE; i++)
        value[(unsigned char)digits[i]] = (uint8_t)i;
    for (size_t i = 0; i < size; i += 4, text += 5) {
        uint64_t four = 0;
        for (size_t k = 0; k < 5; k++) {
            const uint8_t digit = value[(unsigned char)text[k]];
            if (digit == NONE)
                return false;
            four = four * BASE + digit;
        }
        if (four > UINT32_MAX)
            return false;
        for (size_t k = 0; k < 4; k++)
            bytes[i + k] = (uint8_t)(four >> (24 - 8 * k));
    }
    return true;
}
