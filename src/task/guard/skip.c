/* Which operators are never checked, and how operators are named. */
#include "task/guard/guard.h"

#include <string.h>

/* Base names. What an in-place operator of these does is what the operator does, so "x_" is skipped
 * with "x". */
static const char *const given_tensor = "writes into a given tensor";
static const struct {
    const char *why;
    const char *names; /* separated by blanks */
    bool computes;     /* so that somebody may wonder whether it was checked */
} skips[] = {
    {"moves or makes memory",
     " _copy_from _to_copy _unsafe_view clone contiguous copy empty empty_like empty_permuted "
     "empty_strided full lift lift_fresh new_empty new_empty_strided ones resize resize_as set "
     "zeros is_pinned "
     "_pin_memory pin_memory _local_scalar_dense item record_stream ",
     false},
    {"a view or a layout",
     " _reshape_alias _conj alias as_strided chunk detach diagonal expand expand_as flatten "
     "movedim narrow permute ravel real imag reshape select slice split split_with_sizes squeeze "
     "swapaxes swapdims t transpose unbind unflatten unfold unsqueeze view view_as view_as_complex "
     "view_as_real ",
     false},
    {"random",
     " bernoulli cauchy exponential geometric log_normal multinomial normal normal_functional "
     "poisson rand rand_like randint randint_like randn randn_like random randperm uniform "
     "binomial _sample_dirichlet _standard_gamma ",
     false},
    /* Equal values may come in any order; masked_fill_ is on the origin's list. */
    {"its order is free", " argsort sort topk ", true},
    {"on the origin's list", " masked_fill_ ", true},
};

static bool ends_in(const char *text, size_t length, const char *ending)
{
    const size_t tail = strlen(ending);
    return length >= tail && memcmp(text + length - tail, ending, tail) == 0;
}

static bool listed(const char *names, const char *base, size_t length)
{
    char word[96];
    if (length + 3 > sizeof word)
        return false;
    word[0] = ' ';
    memcpy(word + 1, base, length);
    memcpy(word + 1 + length, " ", 2);
    return strstr(names, word) != NULL;
}

const char *guard_short_name(const char *name, size_t *length)
{
    if (strncmp(name, "aten::", 6) == 0 || strncmp(name, "aten.", 5) == 0)
        name += name[4] == ':' ? 6 : 5;
    *length = strlen(name);
    if (ends_in(name, *length, ".default"))
        *length -= sizeof ".default" - 1;
    return name;
}

/* The part of a short name before the overload. */
static size_t base_length(const char *name, size_t length)
{
    const char *dot = memchr(name, '.', length);
    return dot ? (size_t)(dot - name) : length;
}

const char *plumb_guard_skips(const char *name)
{
    if (strncmp(name, "profiler::", 10) == 0)
        return "computes nothing";
    size_t length;
    const char *text = guard_short_name(name, &length);
    const size_t base = base_length(text, length);
    if (ends_in(text, length, ".out") || ends_in(text, length, "_out") ||
        ends_in(text, base, "_out"))
        return given_tensor;
    for (size_t k = 0; k < sizeof skips / sizeof *skips; k++)
        if (listed(skips[k].names, text, base) ||
            (base > 1 && text[base - 1] == '_' && listed(skips[k].names, text, base - 1)))
            return skips[k].why;
    return NULL;
}

bool plumb_guard_named(const char *full, const char *written)
{
    if (strcmp(full, written) == 0)
        return true;
    size_t length, wanted;
    const char *name = guard_short_name(full, &length);
    const char *other = guard_short_name(written, &wanted);
    if (length == wanted && memcmp(name, other, length) == 0)
        return true;
    return !memchr(other, '.', wanted) && base_length(name, length) == wanted &&
           memcmp(name, other, wanted) == 0;
}

bool guard_skip_is_told(const char *why)
{
    if (!why || strcmp(why, given_tensor) == 0)
        return true;
    for (size_t k = 0; k < sizeof skips / sizeof *skips; k++)
        if (strcmp(why, skips[k].why) == 0)
            return skips[k].computes;
    return false;
}
