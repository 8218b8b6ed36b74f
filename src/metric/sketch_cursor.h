/* Going through a tensor run by run: numbers that lie in one block of every axis. */
#ifndef METRIC_SKETCH_CURSOR_H
#define METRIC_SKETCH_CURSOR_H

#include "metric/sketch.h"

/* To number `index`. */
void cursor_seek(struct sketch_cursor *cursor, const struct sketch_frame *frame, uint64_t index);

/* How many of the next `most` numbers lie in the same blocks as the first; then on by so many. */
size_t cursor_run(const struct sketch_cursor *cursor, const struct sketch_frame *frame,
                  size_t most);
void cursor_advance(struct sketch_cursor *cursor, const struct sketch_frame *frame, size_t n);

#endif
