/* Types of one byte, for kernels that read bfloat16, which has all of their values. */
#include "metric/bytes.h"

#include "plumb/dtype.h"

#include <pthread.h>
#include <string.h>

static struct byte_words words[PLUMB_DTYPE_COUNT];

/* Of a number that bfloat16 has. */
static uint16_t word_of(double value)
{
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void find_all(void)
{
    for (int dtype = 0; dtype < PLUMB_DTYPE_COUNT; dtype++)
        for (unsigned code = 0; code < 256 && plumb_dtype_info(dtype)->bits == 8; code++) {
            const uint8_t byte = (uint8_t)code;
            double value;
            plumb_to_f64((enum plumb_dtype)dtype, &byte, 0, 1, false, &value);
            const uint16_t word = word_of(value);
            words[dtype].word[code] = word;
            words[dtype].low[code] = (uint8_t)word;
            words[dtype].high[code] = (uint8_t)(word >> 8);
        }
}

const struct byte_words *bytes_words(enum plumb_dtype dtype)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (plumb_dtype_info(dtype)->bits != 8)
        return NULL;
    pthread_once(&once, find_all);
    return &words[dtype];
}
