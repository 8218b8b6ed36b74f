/* What a fault looks like. */
#include "verdict/expected_parts.h"

enum plumb_code pattern_find(const struct plumb_expected *e, const struct plumb_tensor *got,
                             const struct sample *s, struct plumb_opinion *opinion,
                             struct plumb_error *err)
{
    (void)e, (void)got, (void)s, (void)opinion, (void)err;
    return PLUMB_OK;
}
