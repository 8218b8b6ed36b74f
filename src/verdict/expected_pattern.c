/* What a fault looks like, from what explains all of it to what only describes it. */
#include "verdict/expected_pattern.h"

#include "base/plain.h"

#include <inttypes.h>

/* What the numbers tell by themselves. *sure: nothing else is behind it. */
static bool find_simple(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                        const struct off *f, const struct system_part *system, bool *sure,
                        char *text)
{
    char where[120];
    off_say_place(f, where, sizeof where);
    *sure = f->n == f->of || *where;
    if (pattern_replaced(f, text))
        return true;
    *sure = true;
    if ((e && pattern_other(e, part, k, f, text)) || pattern_moved(f, text))
        return true;
    *sure = f->n && *where;
    if (!*where && pattern_system(f, system, text))
        return true;
    if (pattern_scaled(f, text) || pattern_turned(f, text))
        return true;
    *sure = false;
    return pattern_system(f, system, text) || pattern_groups(f, text);
}

/* What is left to say of a fault that nothing explains. */
static void describe(const struct off *f, const struct system_part *system, uint64_t left,
                     char *text)
{
    enum { SO_FEW = 50 };
    char where[120], subject[160], tile[60];
    off_say_place(f, where, sizeof where);
    off_say_subject(f, subject, sizeof subject);
    off_say_tile(f, tile, sizeof tile);
    if (pattern_rank(f, text))
        return;
    if (f->n == 1)
        plain_print(text, PATTERN_TEXT, "%s wrong, all others are right", subject);
    else if (*where && f->n)
        plain_print(text, PATTERN_TEXT, "%s wrong%s", subject, tile);
    else if (system->found && f->n * SO_FEW <= f->s->n)
        plain_print(text, PATTERN_TEXT, "%s", system->text);
    else if (left)
        plain_print(text, PATTERN_TEXT,
                    "no simple pattern (%" PRIu64 " other ways to compute it were not tried, for "
                    "their cost)",
                    left);
}

void pattern_find(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                  const struct plumb_tensor *got, const struct sample *s,
                  const struct system_part *system, struct plumb_opinion *opinion)
{
    struct off f;
    char simple[PATTERN_TEXT] = "", cause[PATTERN_TEXT] = "";
    bool sure;
    uint64_t left = 0;
    if (!s->n || !off_find(&f, got, s, opinion->limit))
        return;
    const bool found = find_simple(e, part, k, &f, system, &sure, simple);
    if (e && !(found && sure))
        pattern_cause(e, part, k, &f, system, found, false, cause, &left);
    if (found || *cause)
        plain_print(opinion->pattern, sizeof opinion->pattern, "%s%s%s", simple,
                    found && *cause ? ", " : "", cause);
    else
        describe(&f, system, left, opinion->pattern);
}

bool pattern_explains(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                      const struct plumb_tensor *got, const struct sample *s,
                      const struct system_part *system, struct plumb_opinion *opinion)
{
    struct off f;
    char text[PATTERN_TEXT] = "";
    uint64_t left = 0;
    if (!s->n || !off_find(&f, got, s, opinion->limit))
        return false;
    if (!pattern_other(e, part, k, &f, text) && !pattern_moved(&f, text) &&
        !pattern_turned(&f, text))
        pattern_cause(e, part, k, &f, system, false, true, text, &left);
    plain_print(opinion->pattern, sizeof opinion->pattern, "%s", text);
    return *text;
}
