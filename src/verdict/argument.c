/* The verdict on arguments that are no tensors, and on their flags. */
#include "base/plain.h"
#include "verdict/decide.h"
#include "verdict/recorded.h"
#include "verdict/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_device(const struct plumb_recorded *recorded)
{
    static const char *const words[] = {"npu", "cpu", "cuda", "xpu", "gpu"};
    if (recorded->type && strcmp(recorded->type, "torch.device") == 0)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(recorded->value, words[i], length) == 0 &&
            (!recorded->value[length] || recorded->value[length] == ':'))
            return true;
    }
    return false;
}

/* How much of a text stands before an address; 0: it is none. */
static size_t class_length(const char *text)
{
    const char *at = *text == '<' ? strstr(text, " object at 0x") : NULL;
    return at ? (size_t)(at - text) : 0;
}

bool recorded_hides(const char *a, const char *b)
{
    const size_t length = class_length(a), other = class_length(b);
    return length && other ? length == other && memcmp(a, b, length) == 0 : length || other;
}

void recorded_judge_argument(const struct plumb_standard *standard,
                             const struct plumb_recorded *target,
                             const struct plumb_recorded *golden, struct plumb_verdict *verdict)
{
    const struct standard_rule *rule = standard_find_rule(standard, RULE_ARGUMENT, PLUMB_FAILED);
    const char *t = target->value ? target->value : "None";
    const char *g = golden->value ? golden->value : "None";
    char *end[2];
    double a = plain_number(t, &end[0]), b = plain_number(g, &end[1]);
    bool numbers = end[0] != t && !*end[0] && end[1] != g && !*end[1];
    if (strcmp(t, g) == 0)
        verdict_decide(verdict, PLUMB_NORMAL, "the same argument: %.100s", t);
    else if (is_device(target) && is_device(golden))
        verdict_decide(verdict, PLUMB_NORMAL, "devices, not compared: %.50s against %.50s", t, g);
    else if (recorded_hides(t, g))
        verdict_decide(verdict, PLUMB_NORMAL, "addresses, not compared: %.50s against %.50s", t, g);
    else if (numbers && a == b)
        verdict_decide(verdict, PLUMB_NORMAL, "equal arguments: %.50s and %.50s", t, g);
    else if (numbers && fabs(a - b) <= rule->limit * fabs(b))
        verdict_decide(verdict, PLUMB_SUSPICIOUS,
                       "arguments that nearly agree: %.50s against %.50s", t, g);
    else
        verdict_decide(verdict, PLUMB_FAILED, "the arguments differ: %.60s against %.60s", t, g);
}

void recorded_judge_gradient(const struct plumb_record *target, const struct plumb_record *golden,
                             struct plumb_verdict *verdict)
{
    if (verdict->severity != PLUMB_NORMAL || target->requires_grad < 0 ||
        golden->requires_grad < 0 || target->requires_grad == golden->requires_grad)
        return;
    verdict_decide(verdict, PLUMB_SUSPICIOUS, "requires_grad is %s, in the golden %s",
                   target->requires_grad ? "True" : "False",
                   golden->requires_grad ? "True" : "False");
}
