/* The text of a pytest module: the tests of one operator. */
#ifndef UNITTEST_MODULE_H
#define UNITTEST_MODULE_H

#include "base/buf.h"
#include "task/unittest/calls.h"

/* What every module begins with, so that it is known again. */
#define MODULE_MARK "\"\"\"Recorded calls of "

/* Appends the module. A call that cannot be made again is a test that is skipped and says why.
 * False when out of memory. */
bool module_text(struct buf *out, const struct calls *calls, const struct call_group *group);

#endif
