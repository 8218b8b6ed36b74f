/* A finished API for another process, and back (base/pack.h). */
#ifndef PRECHECK_ENTRY_PACK_H
#define PRECHECK_ENTRY_PACK_H

#include "base/pack.h"
#include "task/precheck/journal.h"

/* Read, everything lives in the arena. */
void entry_pack(struct pack *pack, struct journal_entry *entry, struct arena *arena);

#endif
