/* The text of a condensed file. Its reader is format/condensed.c; docs/FORMATS.md describes it. */
#ifndef CONDENSE_TEXT_H
#define CONDENSE_TEXT_H

#include "base/buf.h"
#include "plumb/run.h"
#include "task/condense/measure.h"

/* file: the original's name without its folder. */
void text_begin(struct buf *out, const char *file, const char *format, uint64_t bytes);
void text_tensor(struct buf *out, const struct plumb_record *record,
                 const struct plumb_tensor *tensor, const struct measured *measured, unsigned keep,
                 bool first);
void text_end(struct buf *out);

#endif
