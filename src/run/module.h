/* Where in a model a call is. */
#ifndef RUN_MODULE_H
#define RUN_MODULE_H

#include <stddef.h>

/* The path of a module in the name of a call of it: "blocks.0.norm" of
 * "Module.blocks.0.norm.LayerNorm.forward.3" in a dump, and of "blocks.0.norm.LayerNorm.3.forward"
 * in a capture, whatever follows. Uses text, cut to size; "" for other names, and for the model as
 * a whole. */
const char *run_module(const char *call, char *text, size_t size);

#endif
