/* Inputs and outputs by the names of records. */
#include "pair/role.h"

#include <string.h>

enum pair_role pair_role(const char *name, size_t *length)
{
#define WORD(text) text, sizeof(text) - 1
    static const struct {
        const char *word;
        size_t length, direction; /* forward and backward of one call are different operators */
        enum pair_role role;
    } words[] = {
        {WORD(".forward_input."), sizeof ".forward" - 1, ROLE_INPUT},
        {WORD(".forward_output."), sizeof ".forward" - 1, ROLE_OUTPUT},
        {WORD(".backward_input."), sizeof ".backward" - 1, ROLE_INPUT},
        {WORD(".backward_output."), sizeof ".backward" - 1, ROLE_OUTPUT},
        {WORD(".input."), 0, ROLE_INPUT},
        {WORD(".output."), 0, ROLE_OUTPUT},
    };
#undef WORD
    enum { WORDS = sizeof words / sizeof *words };
    size_t best = WORDS; /* of several the first of this list counts, wherever it is */
    const char *at = NULL;
    for (const char *dot = name; (dot = strchr(dot, '.')); dot++)
        for (size_t i = 0; i < best; i++)
            if (dot[1] == words[i].word[1] && strncmp(dot, words[i].word, words[i].length) == 0) {
                best = i;
                at = dot;
            }
    if (best == WORDS)
        return ROLE_NONE;
    *length = (size_t)(at - name) + words[best].direction;
    return words[best].role;
}
