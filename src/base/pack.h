/* Values as bytes for another process, and back.
 *
 * One function describes a struct for both directions: it is called with a pack that writes or with
 * one that reads, so the two cannot come apart. What is read is checked like any input: after the
 * first thing that cannot be right `bad` stays true and everything read is zero or empty, so a
 * caller checks once at the end. Not for files that other versions read. */
#ifndef BASE_PACK_H
#define BASE_PACK_H

#include "base/arena.h"
#include "base/buf.h"
#include "plumb/error.h"

#include <stdbool.h>
#include <stdint.h>

struct pack {
    struct buf *out;     /* written to; NULL: this one reads */
    const uint8_t *from; /* what is left to read */
    size_t left;
    bool bad;
};

struct pack pack_writer(struct buf *out);
struct pack pack_reader(const void *bytes, size_t size);

/* True when all was read and nothing was wrong with it; of a writer, when memory was enough. */
bool pack_good(const struct pack *pack);

/* Marks what was read as wrong unless `holds`; returns whether all is well so far. */
bool pack_check(struct pack *pack, bool holds);

void pack_u64(struct pack *pack, uint64_t *value); /* small numbers take few bytes */
void pack_i64(struct pack *pack, int64_t *value);
void pack_u32(struct pack *pack, uint32_t *value);
void pack_size(struct pack *pack, size_t *value);
void pack_bool(struct pack *pack, bool *value);
void pack_real(struct pack *pack, double *value); /* all bits of it */

/* A number below end. Of an enum: read it into an unsigned and convert. */
void pack_below(struct pack *pack, unsigned *value, unsigned end);

/* Text that may be NULL. Read, it lives in the arena. */
void pack_text(struct pack *pack, const char **text, struct arena *arena);

/* Bytes with their number. Read, they are those of the message itself. */
void pack_bytes(struct pack *pack, const void **bytes, size_t *size);

void pack_error(struct pack *pack, struct plumb_error *err);

#endif
