/* The verdict on two checksums. */
#include "verdict/decide.h"
#include "verdict/recorded.h"

#include <math.h>
#include <string.h>
#include <strings.h>

bool recorded_is_xor(const char *checksum)
{
    return strncmp(checksum, "0x", 2) == 0;
}

enum recorded_checksums recorded_compare_checksums(const char *const sums[2],
                                                   const enum plumb_dtype dtypes[2])
{
    if (!sums[0] || !sums[1] || dtypes[0] != dtypes[1] || dtypes[0] == PLUMB_DTYPE_COUNT ||
        recorded_is_xor(sums[0]) != recorded_is_xor(sums[1]))
        return CHECKSUMS_UNKNOWN;
    return strcasecmp(sums[0], sums[1]) == 0 ? CHECKSUMS_EQUAL : CHECKSUMS_DIFFER;
}

void recorded_judge_checksums(const char *target, const char *golden,
                              struct recorded_judgement *out)
{
    bool same = strcasecmp(target, golden) == 0;
    out->distance = same ? 0 : INFINITY;
    out->max_rel = out->distance;
    if (same)
        verdict_decide(&out->verdict, PLUMB_NORMAL, "the checksums are equal");
    else if (recorded_is_xor(target) != recorded_is_xor(golden))
        verdict_decide(&out->verdict, PLUMB_FAILED,
                       "checksums of different kinds: %.40s against %.40s", target, golden);
    else
        verdict_decide(&out->verdict, PLUMB_FAILED, "the checksums differ: %.40s against %.40s",
                       target, golden);
}
