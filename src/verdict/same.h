/* Is a value after a change what it was before? Tensors are compared within a precision, everything
 * else exactly. */
#ifndef VERDICT_SAME_H
#define VERDICT_SAME_H

#include "plumb/op.h"
#include "plumb/verdict.h"

struct same_rule {
    struct plumb_standard *standard;
    struct plumb_metric_spec spec;
};

/* The rule is to be destroyed also after a failure. */
enum plumb_code same_rule_init(struct same_rule *rule, double precision, struct plumb_error *err);
void same_rule_destroy(struct same_rule *rule);

/* What is measured of tensors that were of that type before: of integers, which are counts and
 * places, rtol does not count. */
struct plumb_metric_spec same_spec(const struct same_rule *rule, enum plumb_dtype before);

struct same_verdict {
    struct plumb_verdict verdict; /* suspicious: NaN on both sides, which is equal here */
    bool measured;                /* there are metrics */
    struct plumb_metrics metrics;
};

/* Judges a pair; NULL stands for what a side does not have. Fails when tensors cannot be
 * measured. */
enum plumb_code same_judge(const struct same_rule *rule, const struct plumb_arg *before,
                           const struct plumb_arg *after, struct same_verdict *out,
                           struct plumb_error *err);

/* True of two Nones: there is nothing to say of such a pair. */
bool same_is_nothing(const struct plumb_arg *before, const struct plumb_arg *after);

/* "EQUAL" or "DIFFERENT": what is said of a whole check of which so many pairs failed. */
const char *same_word(size_t failed);

#endif
