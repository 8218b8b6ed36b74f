/* Inputs and outputs by the names of records. */
#include "pair/role.h"

#include <string.h>

enum pair_role pair_role(const char *name, size_t *length)
{
    static const struct {
        const char *word;
        enum pair_role role;
    } words[] = {
        {".forward_input.", ROLE_INPUT},  {".forward_output.", ROLE_OUTPUT},
        {".backward_input.", ROLE_INPUT}, {".backward_output.", ROLE_OUTPUT},
        {".input.", ROLE_INPUT},          {".output.", ROLE_OUTPUT},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(name, words[i].word);
        if (!at)
            continue;
        /* forward and backward of one call are different operators */
        const char *direction = strchr(words[i].word, '_');
        *length = (size_t)(at - name) + (direction ? (size_t)(direction - words[i].word) : 0);
        return words[i].role;
    }
    return ROLE_NONE;
}
