/* CRC-32 of bytes that arrive in pieces. */
#include "metric/crc.h"

/* Polynomials modulo the CRC-32 polynomial, bit-reflected: bit 31 is x^0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? b >> 1 ^ 0xEDB88320u : b >> 1;
    }
    return product;
}

/* Appending n bytes multiplies by x^(8n). */
uint32_t crc_contribution(uint32_t crc, uint64_t after)
{
    uint32_t power = UINT32_C(1) << 23; /* x^8 */
    for (; after; after >>= 1) {
        if (after & 1)
            crc = multiply(power, crc);
        power = multiply(power, power);
    }
    return crc;
}
