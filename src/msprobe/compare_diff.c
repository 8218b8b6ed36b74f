/* Differences of recorded statistics. */
#include "msprobe/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, IS_NAN, POSITIVE, NEGATIVE, DEVICE, MISSING, OTHER };

/* What the origin takes a shown value for; NULL: there is no partner. */
static enum kind kind_of(const struct dump_value *value)
{
    if (!value)
        return MISSING;
    if (value->kind == DUMP_NUMBER)
        return isnan(value->number)                        ? IS_NAN
               : isinf(value->number) && value->number > 0 ? POSITIVE
               : isinf(value->number)                      ? NEGATIVE
                                                           : NUMBER;
    if (value->kind == DUMP_WORD &&
        (strstr(value->text, "npu") || strstr(value->text, "cpu") || strstr(value->text, "cuda")))
        return DEVICE;
    return OTHER;
}

static const char *word_for(enum kind target, enum kind golden)
{
    if (target == MISSING || golden == MISSING || (target == DEVICE && golden == DEVICE))
        return "N/A";
    if (target == DEVICE || golden == DEVICE || target == OTHER || golden == OTHER)
        return "Diff";
    if (target == IS_NAN || golden == IS_NAN)
        return "Nan";
    if (target == POSITIVE || target == NEGATIVE)
        return target == POSITIVE ? "inf" : "-inf";
    return golden == POSITIVE ? "-inf" : "inf";
}

static struct general_value word(const char *text)
{
    return (struct general_value){.kind = GENERAL_WORD, .word = text};
}

/* The origin reads its numbers back from their text with a reader that is not exact: it takes at
 * most 17 digits, leading zeros included, rounds at every digit, and scales once. The last digits
 * of its differences come from there, and where values nearly cancel they are all digits there are.
 */
static double reread(const char *text)
{
#define TEN(tens)                                                                                  \
    1e##tens##0, 1e##tens##1, 1e##tens##2, 1e##tens##3, 1e##tens##4, 1e##tens##5, 1e##tens##6,     \
        1e##tens##7, 1e##tens##8
#define TENS(tens) TEN(tens), 1e##tens##9
    static const double power[] = {
        TENS(),   TENS(1),  TENS(2),  TENS(3),  TENS(4),  TENS(5),  TENS(6),  TENS(7),
        TENS(8),  TENS(9),  TENS(10), TENS(11), TENS(12), TENS(13), TENS(14), TENS(15),
        TENS(16), TENS(17), TENS(18), TENS(19), TENS(20), TENS(21), TENS(22), TENS(23),
        TENS(24), TENS(25), TENS(26), TENS(27), TENS(28), TENS(29), TEN(30)};
    enum { DIGITS = 17, MAX_EXPONENT = sizeof power / sizeof power[0] - 1 };
    bool negative = *text == '-';
    const char *p = text + negative;
    double number = 0;
    int digits = 0, exponent = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (digits < DIGITS) {
            number = number * 10 + (*p - '0');
            digits++;
        } else {
            exponent++;
        }
    }
    if (*p == '.') {
        for (p++; *p >= '0' && *p <= '9'; p++) {
            if (digits < DIGITS) {
                number = number * 10 + (*p - '0');
                digits++;
                exponent--;
            }
        }
    }
    if (*p == 'e' || *p == 'E')
        exponent += (int)fmin(fmax(strtod(p + 1, NULL), -9999), 9999);
    if (exponent > MAX_EXPONENT)
        number = HUGE_VAL;
    else if (exponent > 0)
        number *= power[exponent];
    else if (exponent < -MAX_EXPONENT)
        number = exponent < -2 * MAX_EXPONENT
                     ? 0
                     : number / power[-MAX_EXPONENT - exponent] / power[MAX_EXPONENT];
    else
        number /= power[-exponent];
    return negative ? -number : number;
}

static void difference(const struct dump_value *target, const struct dump_value *golden,
                       struct general_value *diff, struct general_value *relative)
{
    char texts[2][NUMBER_BYTES];
    const char *left = dump_value_text(target, texts[0]);
    const char *right = golden ? dump_value_text(golden, texts[1]) : "N/A";
    left = left ? left : "None";
    right = right ? right : "None";
    enum kind a = kind_of(target), b = kind_of(golden);
    if (strcmp(left, right) == 0) {
        *diff = *relative = word("0");
    } else if (golden && a == NUMBER && b == NUMBER) {
        double npu = reread(left), bench = reread(right), distance = npu - bench;
        *diff = (struct general_value){.kind = GENERAL_NUMBER,
                                       .number = distance,
                                       .integer = target->integer && golden->integer};
        *relative =
            (struct general_value){.kind = GENERAL_PERCENT, .number = fabs(distance / bench * 100)};
        if (bench == 0)
            *relative = word("inf");
    } else {
        *diff = *relative = word(word_for(a, b));
    }
}

void general_differences(struct general *general)
{
    for (size_t i = 0; i < general->count; i++) {
        struct general_pair *pair = &general->pairs[i];
        const struct dump_row *target = &general->target.rows[pair->target];
        const struct dump_row *golden =
            pair->golden == GENERAL_NONE ? NULL : &general->golden.rows[pair->golden];
        for (size_t k = 0; k < DUMP_STATISTICS_COUNT; k++)
            difference(&target->statistic[k], golden ? &golden->statistic[k] : NULL,
                       &pair->value[k], &pair->value[GENERAL_RELATIVE + k]);
    }
}
