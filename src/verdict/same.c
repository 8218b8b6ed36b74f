/* Values before and after a change of the program: within a precision, or else different. */
#include "verdict/same.h"

#include "base/plain.h"

#include <math.h>
#include <string.h>

/* ---- The rule -------------------------------------------------------------------------------- */

enum plumb_code same_rule_init(struct same_rule *rule, double precision, struct plumb_error *err)
{
    static const char *const names[] = {"rtol", "atol"};
    *rule = (struct same_rule){0};
    enum plumb_code code = plumb_standard_load(&rule->standard, "allclose", err);
    if (!code)
        code = plumb_standard_override(rule->standard, "equal_nan=yes", err);
    for (size_t k = 0; k < sizeof names / sizeof *names && !code; k++) {
        char text[64];
        plain_print(text, sizeof text, "%s=%.17g", names[k], precision);
        code = plumb_standard_override(rule->standard, text, err);
    }
    if (code)
        return code;
    plumb_metric_spec_init(&rule->spec);
    rule->spec.groups = PLUMB_G_ALL & ~(unsigned)(PLUMB_G_HISTOGRAM | PLUMB_G_CRC);
    plumb_standard_spec(rule->standard, &rule->spec);
    return PLUMB_OK;
}

void same_rule_destroy(struct same_rule *rule)
{
    plumb_standard_free(rule->standard);
    *rule = (struct same_rule){0};
}

struct plumb_metric_spec same_spec(const struct same_rule *rule, enum plumb_dtype before)
{
    struct plumb_metric_spec spec = rule->spec;
    const enum plumb_kind kind = plumb_dtype_info(before)->kind;
    /* The next integer to a large one is another. */
    if (kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX)
        spec.rtol = 0;
    return spec;
}

/* ---- One pair -------------------------------------------------------------------------------- */

static void differ(struct same_verdict *out, const char *reason)
{
    out->verdict.severity = PLUMB_FAILED;
    plain_print(out->verdict.rule, sizeof out->verdict.rule, "%s", reason);
}

static bool same_shape(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static enum plumb_code judge_tensors(const struct same_rule *rule,
                                     const struct plumb_tensor *before,
                                     const struct plumb_tensor *after, struct same_verdict *out,
                                     struct plumb_error *err)
{
    const struct plumb_metric_spec spec = same_spec(rule, before->dtype);
    if (!same_shape(before, after)) {
        differ(out, "the shape changed");
        return PLUMB_OK;
    }
    enum plumb_code code = plumb_metric_pair(&spec, after, before, &out->metrics, err);
    if (code)
        return code;
    out->measured = true;
    plumb_standard_judge(rule->standard, &out->metrics, &out->verdict);
    if (before->dtype != after->dtype)
        differ(out, "the type changed");
    return PLUMB_OK;
}

/* Numbers that operators return beside tensors. */
static bool same_value(const struct plumb_arg *a, const struct plumb_arg *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == PLUMB_ARG_FLOAT)
        return a->number == b->number || (isnan(a->number) && isnan(b->number));
    if (a->kind == PLUMB_ARG_INT || a->kind == PLUMB_ARG_BOOL)
        return a->integer == b->integer;
    if (a->kind == PLUMB_ARG_TEXT || a->kind == PLUMB_ARG_DEVICE)
        return a->text && b->text && strcmp(a->text, b->text) == 0;
    return a->kind != PLUMB_ARG_DTYPE || a->dtype == b->dtype;
}

static bool is_none(const struct plumb_arg *arg)
{
    return arg && arg->kind == PLUMB_ARG_NONE;
}

bool same_is_nothing(const struct plumb_arg *before, const struct plumb_arg *after)
{
    return is_none(before) && is_none(after);
}

enum plumb_code same_judge(const struct same_rule *rule, const struct plumb_arg *before,
                           const struct plumb_arg *after, struct same_verdict *out,
                           struct plumb_error *err)
{
    out->verdict = (struct plumb_verdict){.severity = PLUMB_NORMAL};
    out->measured = false;
    if (!before || !after)
        differ(out, before ? "only before" : "only after");
    else if (is_none(before) != is_none(after))
        differ(out, is_none(before) ? "None before" : "None after");
    else if (before->kind == PLUMB_ARG_TENSOR && after->kind == PLUMB_ARG_TENSOR)
        return judge_tensors(rule, before->tensor, after->tensor, out, err);
    else if (!same_value(before, after))
        differ(out, "the value changed");
    return PLUMB_OK;
}

const char *same_word(size_t failed)
{
    return failed ? "DIFFERENT" : "EQUAL";
}
