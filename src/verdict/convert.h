/* A call with its floating-point tensors in other types. */
#ifndef VERDICT_CONVERT_H
#define VERDICT_CONVERT_H

#include "base/arena.h"
#include "plumb/op.h"

/* A call raised for a benchmark: float16 and bfloat16 become float32, float32
 * becomes float64; where types are mixed everything becomes float32; conv1d and conv2d in float32
 * and type_as stay as they are; 8-bit floats become float32. The gradients are raised by their own
 * type. */
enum plumb_code convert_raise(const struct plumb_call *from, struct arena *arena,
                              struct plumb_call *out, struct plumb_error *err);

/* A gradient raised the same way. */
enum plumb_code convert_raise_tensor(const struct plumb_tensor *from, struct arena *arena,
                                     const struct plumb_tensor **out, struct plumb_error *err);

/* What autocast did when the call was recorded: a matrix product, convolution or the like of
 * float32 tensors whose result was float16 or bfloat16 ("torch.bfloat16") ran in that type. With
 * `mixed` also where only some of the operands were float32, and operators that autocast runs in
 * float32 get that when it was the type of the result. Leaves other calls alone. */
enum plumb_code convert_autocast(struct plumb_call *call, const char *recorded_output, bool mixed,
                                 struct arena *arena, struct plumb_error *err);

/* Switches dropout off inside operators that compute something else (attention, recurrent layers),
 * which can then be compared. *changed says whether there was any. */
enum plumb_code convert_still(struct plumb_call *call, bool *changed, struct arena *arena,
                              struct plumb_error *err);

#endif
