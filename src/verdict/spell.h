/* Calls and their outputs as people read them, and a walk over their tensors. */
#ifndef VERDICT_SPELL_H
#define VERDICT_SPELL_H

#include "base/buf.h"
#include "plumb/op.h"

/* "(2, 3):torch.float16" */
void spell_tensor(struct buf *out, const struct plumb_tensor *tensor);
void spell_shape(struct buf *out, const struct plumb_tensor *tensor);
/* What an output is: a tensor, "3", "None"; lists in brackets. */
void spell_arg(struct buf *out, const struct plumb_arg *arg);
/* A number as JSON has it: what is not finite as a string. */
void spell_json_number(struct buf *out, double value);
/* As Python's repr writes it. */
void spell_number(struct buf *out, double value);
/* Where a number of the tensor is: "[0, 3]"; of complex numbers the part is not said. */
void spell_place(struct buf *out, const struct plumb_tensor *tensor, uint64_t number);

/* Calls visit for every tensor of the arguments, lists opened, kwargs last. */
void call_tensors(const struct plumb_call *call,
                  void (*visit)(void *context, const struct plumb_tensor *tensor), void *context);

#endif
