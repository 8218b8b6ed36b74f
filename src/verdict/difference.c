/* How far apart two values are that were written down as text. */
#define _GNU_SOURCE
#include "base/number.h"
#include "verdict/recorded.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct plumb_value recorded_value(const struct plumb_value *written)
{
    static const struct {
        const char *word;
        double number;
    } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"infinity", INFINITY}};
    bool word = written->kind == PLUMB_VALUE_WORD && written->text;
    bool negative = word && *written->text == '-';
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(written->text + negative, words[i].word) == 0)
            return (struct plumb_value){.kind = PLUMB_VALUE_NUMBER,
                                        .number = negative ? -words[i].number : words[i].number};
    return *written;
}

/* True and False stand for 1 and 0 where the other side has a number. */
static bool as_number(const struct plumb_value *value, double *number)
{
    *number = value->number;
    if (value->kind == PLUMB_VALUE_NUMBER)
        return true;
    bool is_true = value->text && strcmp(value->text, "True") == 0;
    *number = is_true;
    return is_true || (value->text && strcmp(value->text, "False") == 0);
}

/* Integers that float64 may not hold: the difference of what was written down. */
static bool difference_of_integers(const struct plumb_value *target,
                                   const struct plumb_value *golden, double *difference)
{
    const struct plumb_value *values[2] = {target, golden};
    bool negative[2];
    uint64_t size[2];
    for (int i = 0; i < 2; i++) {
        const char *text = values[i]->text;
        if (!text || fabs(values[i]->number) > 0x1p64)
            return false;
        negative[i] = *text == '-';
        text += negative[i];
        if (!*text || text[strspn(text, "0123456789")])
            return false;
        errno = 0;
        size[i] = strtoull(text, NULL, 10);
        if (errno)
            return false;
    }
    if (negative[0] != negative[1]) {
        *difference = target->number - golden->number;
        return true;
    }
    bool less = size[0] < size[1];
    double apart = (double)(less ? size[1] - size[0] : size[0] - size[1]);
    *difference = less != negative[0] ? -apart : apart;
    return true;
}

static const char *written_text(const struct plumb_value *value, char text[NUMBER_BYTES])
{
    if (!value->written)
        return value->text;
    if (isnan(value->number))
        memcpy(text, "nan", 4);
    else
        number_exact(value->number, true, text);
    return text;
}

struct recorded_difference recorded_difference(const struct plumb_value *target,
                                               const struct plumb_value *golden)
{
    double t, g;
    if (target->kind == PLUMB_VALUE_NONE || golden->kind == PLUMB_VALUE_NONE)
        return (struct recorded_difference){.kind = DIFFERENCE_NONE};
    if (!as_number(target, &t) || !as_number(golden, &g)) {
        char texts[2][NUMBER_BYTES];
        const char *left = written_text(target, texts[0]), *right = written_text(golden, texts[1]);
        const bool same = left && right && strcmp(left, right) == 0;
        return (struct recorded_difference){same ? DIFFERENCE_NUMBER : DIFFERENCE_WORD, 0,
                                            same ? 0 : INFINITY};
    }
    double apart = t - g;
    bool same = t == g || (isnan(t) && isnan(g));
    if ((fabs(t) >= 0x1p53 || fabs(g) >= 0x1p53) && difference_of_integers(target, golden, &apart))
        same = apart == 0;
    if (same)
        return (struct recorded_difference){DIFFERENCE_NUMBER, 0, 0};
    if (isnan(t) || isnan(g))
        return (struct recorded_difference){DIFFERENCE_NUMBER, NAN, NAN};
    double relative = isinf(t) || isinf(g) || g == 0 ? INFINITY : fabs(apart / g);
    return (struct recorded_difference){DIFFERENCE_NUMBER, apart, relative};
}
