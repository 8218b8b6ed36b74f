/* The headers of objects in HDF5 files (HDF5 File Format Specification, IV.A), which are lists of
 * messages. For h5plain.c, which gives up on anything that it does not expect. */
#ifndef FORMAT_H5HEADER_H
#define FORMAT_H5HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H5_NOWHERE UINT64_MAX /* an address that was never set */

struct h5_image {
    const uint8_t *data;
    size_t size;
    uint64_t patience; /* bytes that may still be looked at: links may lead in circles */
};

enum h5_message_type {
    H5_MESSAGE_NIL = 0x00,
    H5_MESSAGE_SPACE = 0x01,
    H5_MESSAGE_LINKS = 0x02,
    H5_MESSAGE_TYPE = 0x03,
    H5_MESSAGE_FILL = 0x05,
    H5_MESSAGE_LINK = 0x06,
    H5_MESSAGE_LAYOUT = 0x08,
    H5_MESSAGE_GROUP = 0x0a,
    H5_MESSAGE_ATTRIBUTE = 0x0c,
    H5_MESSAGE_GOES_ON = 0x10,
    H5_MESSAGE_SYMBOLS = 0x11,
    H5_MESSAGE_CHANGED = 0x12,
    H5_MESSAGE_ATTRIBUTES = 0x15
};

struct h5_message {
    unsigned type;
    const uint8_t *data;
    size_t size;
};

/* size bytes of the file at an address; NULL where there are none, or patience ends. */
const uint8_t *h5_image_at(struct h5_image *image, uint64_t address, uint64_t size);

/* Calls use(context, message) for every message of the header at an address. False when use was, or
 * when the header is not of the plain kind: damaged, shared, linked more than once. */
bool h5header_each(struct h5_image *image, uint64_t address,
                   bool (*use)(void *context, const struct h5_message *message), void *context);

#endif
