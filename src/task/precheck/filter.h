/* -f: calls that repeat an earlier one are not checked again. */
#ifndef PRECHECK_FILTER_H
#define PRECHECK_FILTER_H

#include "dump/call.h"

/* keep, which has room for a flag a call, says which calls are the first of their kind. Two calls
 * are of a kind when they are of the same API and
 *  - their arguments differ in nothing but recorded values (statistics, checksums, names of payload
 *    files), and both have a backward or neither; or,
 *  - by_objects: the objects among the positional arguments are equal but for Max and Min, and the
 *    keyword arguments are equal; lists and nulls among the positional ones are not looked at.
 *
 * An entry that cannot be understood is kept. With by_objects, one without arguments is an error
 * (PLUMB_E_FORMAT) that names it. Memory is bounded by the number of calls and the largest call. */
enum plumb_code filter_repeats(const struct case_file *file, bool by_objects, bool *keep,
                               struct plumb_error *err);

#endif
