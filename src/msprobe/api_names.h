/* The APIs that msProbe pre-checks: api_names.txt. */
#ifndef MSPROBE_API_NAMES_H
#define MSPROBE_API_NAMES_H

#include <stdbool.h>
#include <stddef.h>

extern const char *const api_names[]; /* "Functional.conv2d", ... in the order of strcmp */
extern const size_t api_names_count;

/* Whether the API is on the list of that prefix: "Functional", "Tensor", "Torch" or "NPU". */
bool api_name_listed(const char *prefix, const char *api);

/* Whether it is on any. */
bool api_name_listed_anywhere(const char *api);

#endif
