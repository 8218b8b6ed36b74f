/* What the judging of msProbe is made of. */
#ifndef MSPROBE_JUDGE_H
#define MSPROBE_JUDGE_H

#include "verdict/precheck_parts.h"

/* Float outputs; the same as struct precheck_judging has. */
enum plumb_code msprobe_judge_floats(const struct judge_pair *pair);

#endif
