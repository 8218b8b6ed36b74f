/* Writing rule sets. */
#include "verdict/ladder_rules.h"

#include "base/number.h"
#include "verdict/ladder_names.h"
#include "verdict/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 96 };

/* Small powers of two as such, the rest in the fewest decimals; either reads back the same. */
static void print_value(struct buf *out, double value)
{
    int exponent;
    if (value < 1 && frexp(value, &exponent) == 0.5 && exponent < -4) {
        buf_printf(out, "0x1p%d", exponent - 1);
        return;
    }
    char text[NUMBER_BYTES];
    buf_append(out, text, number_exact(value, false, text));
}

static void print_numbers(struct buf *out, const struct standard_set *set)
{
    struct rules_number number;
    for (size_t i = 0; rules_number(i, &number); i++) {
        double value;
        memcpy(&value, (const char *)set + number.offset, sizeof value);
        if (number.about)
            buf_printf(out, *number.about ? "\n# %s\n" : "\n", number.about);
        buf_printf(out, "set %s ", number.name);
        print_value(out, value);
        buf_text(out, "\n");
    }
}

static void print_names(struct buf *out, const char *statement, const char *word,
                        const char *const *names)
{
    size_t used = 0;
    for (; *names; names++) {
        size_t length = strlen(*names);
        if (used && used + 1 + length > WIDTH) {
            buf_text(out, "\n");
            used = 0;
        }
        if (!used) {
            buf_printf(out, "%s %s", statement, word);
            used = strlen(statement) + 1 + strlen(word);
        }
        buf_printf(out, " %s", *names);
        used += 1 + length;
    }
    if (used)
        buf_text(out, "\n");
}

/* What the base has on a list and the set on none. */
static void print_dropped(struct buf *out, const struct standard_set *set)
{
    const struct standard_set *base = set->profile->standards;
    for (int i = 0; i < STANDARD_LEVELS; i++)
        for (const char *const *name = base->level_apis[i]; *name; name++)
            if (standard_level_of(set, *name) == &set->levels[0])
                buf_printf(out, "level %s %s\n", set->levels[0].name, *name);
    for (int i = 0; i < STANDARD_COUNT; i++)
        for (const char *const *name = base->apis[i]; *name; name++)
            if (standard_of_api(set, *name) == STANDARD_BENCHMARK)
                buf_printf(out, "use %s %s\n", rules_standard_word(STANDARD_BENCHMARK), *name);
}

void rules_print(struct buf *out, const struct standard_set *set)
{
    buf_printf(out,
               "# Rules of the pre-check: a file that --rules of acc_check and\n"
               "# api_precision_compare takes. Lines that are left out are as in the base.\n"
               "base %s\n",
               set->profile->name);
    print_numbers(out, set);
    buf_text(out, "\n# The level of an API; all others are L0.\n");
    for (int i = 1; i < STANDARD_LEVELS; i++)
        print_names(out, "level", set->levels[i].name, set->level_apis[i]);
    const bool by_benchmark = set->profile->judge->floats_by_benchmark;
    buf_text(out,
             by_benchmark
                 ? "\n# All floats are held to the benchmark standard, whatever the API.\n"
                 : "\n# The standard of an API; all others are held to the benchmark standard.\n");
    for (int i = 0; i < STANDARD_COUNT && !by_benchmark; i++)
        if (rules_standard_word((enum check_standard)i))
            print_names(out, "use", rules_standard_word((enum check_standard)i), set->apis[i]);
    print_dropped(out, set);
}
