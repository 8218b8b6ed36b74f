/* Tensors that hold whatever the memory held: what torch.empty and its kin gave, and nobody wrote
 * to. Numbers there mean nothing, nor do those that are computed from them. */
#ifndef DUMP_UNINITIALISED_H
#define DUMP_UNINITIALISED_H

#include "dump/call.h"

/* The key of a tensor in dump.json that says so. plumb's captures write it. */
#define DUMP_UNINITIALISED "uninitialised"

/* The reason for not judging such a tensor. */
extern const char dump_uninitialised[];

/* Whether this call only takes memory: "Torch.empty_like.0.forward", "Tensor.new_empty.2". Length:
 * of the name. */
bool dump_takes_memory(const char *call, size_t length);

/* The first argument that is marked: "input 0", "input out"; NULL: there is none. Text in the
 * arena, "" when out of memory. */
const char *case_uninitialised(const struct check_case *call, struct arena *arena);

#endif
