/* Replies that are finished, in a file: what a next start of the same command need not do again. */
#ifndef CREW_JOURNAL_H
#define CREW_JOURNAL_H

#include "base/buf.h"
#include "plumb/error.h"

#include <stdint.h>

struct crew_entry {
    uint64_t job, piece;
    uint64_t request; /* a hash of it: the piece is the same only when it is */
    uint64_t at, size;
};

/* All zero: none is kept. */
struct crew_journal {
    char *path;
    int fd;
    uint64_t end;
    struct crew_entry *entries; /* of earlier starts, in their order */
    size_t count, capacity;
    bool open;
};

uint64_t crew_hash(const void *bytes, size_t size);

/* Opens the journal of an identity in a folder, which is made; what an earlier start left is
 * listed, and what it left half-written is cut off. PLUMB_E_ARG when another process has it. */
enum plumb_code crew_journal_open(struct crew_journal *journal, const char *folder,
                                  const void *identity, size_t size, struct plumb_error *err);

/* Fails when the disk is full; the journal is closed then, and the work goes on without. */
enum plumb_code crew_journal_add(struct crew_journal *journal, const struct crew_entry *entry,
                                 const void *reply, struct plumb_error *err);

/* The reply of an entry, appended to an empty buf. False when it cannot be read. */
bool crew_journal_read(const struct crew_journal *journal, const struct crew_entry *entry,
                       struct buf *reply);

/* done: it has served, and is removed. */
void crew_journal_close(struct crew_journal *journal, bool done);

#endif
