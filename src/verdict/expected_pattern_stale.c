/* A result that is another tensor of its call: an input that came back as it was, the output that
 * belongs elsewhere. */
#include "verdict/expected_pattern.h"

#include "base/plain.h"
#include "verdict/stale.h"
#include "verdict/vary.h"

/* Whether got is that tensor, and the right result is not. */
static bool is_argument(const struct plumb_tensor *got, const struct plumb_tensor *argument,
                        const struct plumb_tensor *right)
{
    return pattern_is_stale(got, argument) && !(right && pattern_is_stale(right, argument));
}

/* The tensors of the arguments, by their names. */
static bool find_argument(const struct plumb_expected *e, const struct plumb_tensor *got,
                          const struct plumb_tensor *right, char *text)
{
    struct vary_list list;
    vary_read(e->op, &e->call, &list);
    for (size_t k = 0; k < list.n; k++) {
        const struct vary_parameter *p = &list.parameter[k];
        if (p->now.kind != PLUMB_ARG_TENSOR || !is_argument(got, p->now.tensor, right))
            continue;
        plain_print(text, PATTERN_TEXT,
                    "equal to the argument %.*s: all %llu elements are those that went in",
                    (int)p->length, p->name, (unsigned long long)got->count);
        return true;
    }
    for (size_t k = 0; k < e->call.n_grads; k++)
        if (e->call.grads[k] && is_argument(got, e->call.grads[k], right)) {
            plain_print(text, PATTERN_TEXT, "equal to the gradient of output %zu", k);
            return true;
        }
    return false;
}

bool pattern_other(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                   const struct off *f, char *text)
{
    static const char *const names[] = {"output", "gradient", "written argument"};
    _Static_assert(sizeof names / sizeof *names == EXPECTED_PARTS, "a name for each");
    const double relative = 64 * f->s->u; /* the reference is not what the device computed */
    if (find_argument(e, f->got, e->parts[part][k].reference, text))
        return true;
    for (unsigned p = 0; p < EXPECTED_PARTS; p++)
        for (size_t j = 0; j < e->n_parts[p]; j++) {
            const struct plumb_tensor *other = e->parts[p][j].reference;
            if ((p == (unsigned)part && j == k) || !other || !stale_within(f->got, other, relative))
                continue;
            plain_print(text, PATTERN_TEXT, "equal to %s %zu of the reference", names[p], j);
            return true;
        }
    return false;
}
