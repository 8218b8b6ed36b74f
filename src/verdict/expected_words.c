/* The names of cheaper arithmetic: for users to allow it, and in sentences. */
#include "verdict/expected_parts.h"

#include "verdict/expected_search.h"

#include <string.h>

static const struct {
    const char *word; /* as users allow it */
    const char *text; /* as a verdict says it */
} names[] = {
    {"truncation", "results are truncated"},
    {"flush", "numbers below the smallest normal one are flushed to zero"},
    {"function", "a function of a few units in the last place"},
    {"number", "numbers among the arguments were rounded to the type"},
    {"f32-result", "the result was rounded to float32"},
    {"f16-result", "the result was rounded to float16"},
    {"bf16-result", "the result was rounded to bfloat16"},
    {"f32-input", "inputs of 24 bits (float32)"},
    {"tf32", "inputs of 11 bits (TF32 or float16)"},
    {"bf16-input", "inputs of 8 bits (bfloat16)"},
    {"f16-accumulator", "a sum kept in 11 bits (float16)"},
    {"bf16-accumulator", "a sum kept in 8 bits (bfloat16)"},
    {"f16-store", "results on the way rounded to float16"},
    {"bf16-store", "results on the way rounded to bfloat16"},
};
enum { NAMES = sizeof names / sizeof *names };

const char *arithmetic_text(const char *word)
{
    for (size_t k = 0; k < NAMES; k++)
        if (strcmp(names[k].word, word) == 0)
            return names[k].text;
    return word;
}

bool arithmetic_allowed(const char *list, const char *found)
{
    for (size_t k = 0; list && k < NAMES; k++) {
        if (strcmp(names[k].text, found) != 0)
            continue;
        const size_t length = strlen(names[k].word);
        for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
            if (strcspn(at, ",") == length && strncmp(at, names[k].word, length) == 0)
                return true;
    }
    return false;
}

const char *plumb_arithmetic_word(const char *found)
{
    for (size_t k = 0; k < NAMES; k++)
        if (strcmp(names[k].text, found) == 0)
            return names[k].word;
    return "";
}

enum plumb_code plumb_arithmetic_check(const char *list, struct plumb_error *err)
{
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t length = strcspn(at, ",");
        bool known = false;
        for (size_t k = 0; k < NAMES; k++)
            known |= strlen(names[k].word) == length && strncmp(at, names[k].word, length) == 0;
        if (!known)
            return plumb_fail(
                err, PLUMB_E_ARG,
                "'%.*s' is no arithmetic that plumb knows; there are truncation, "
                "flush, function, number, f32-result, f16-result, bf16-result, f32-input, "
                "tf32, bf16-input, f16-accumulator, bf16-accumulator, f16-store "
                "and bf16-store",
                (int)length, at);
    }
    return PLUMB_OK;
}
