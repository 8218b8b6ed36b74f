/* An operator whose outputs are much further off than its inputs were is where to look. */
#include "base/map.h"
#include "compare/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum role { ROLE_NONE, ROLE_INPUT, ROLE_OUTPUT };

/* Cuts "block.norm.LayerNorm.0.forward_output.0" into the operator's call and the role. */
static enum role role_of(const char *name, size_t *length)
{
    static const struct {
        const char *word;
        enum role role;
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

enum plumb_code compare_jumps(struct comparison *comparison, struct plumb_error *err)
{
    double limit = plumb_standard_jump(comparison->standard);
    size_t count = comparison->matching.count;
    struct map worst = {0}; /* operator -> pair with its worst input, plus one */
    enum plumb_code code = PLUMB_OK;
    if (!(limit > 0))
        return PLUMB_OK;

    for (size_t i = 0; i < count; i++) {
        const char *name = compare_name(comparison, i);
        size_t length;
        if (!comparison->rows[i].compared || role_of(name, &length) != ROLE_INPUT)
            continue;
        uint64_t *pair = map_put(&worst, name, length, NULL);
        if (!pair) {
            code = plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
            goto out;
        }
        if (!*pair || comparison->rows[i].max_rel > comparison->rows[*pair - 1].max_rel)
            *pair = i + 1;
    }
    for (size_t i = 0; i < count; i++) {
        struct row *row = &comparison->rows[i];
        const char *name = compare_name(comparison, i);
        size_t length;
        if (!row->compared || row->verdict.severity != PLUMB_NORMAL ||
            role_of(name, &length) != ROLE_OUTPUT)
            continue;
        const uint64_t *pair = map_get(&worst, name, length);
        double input = pair ? comparison->rows[*pair - 1].max_rel : 0;
        /* Exact inputs say nothing: the first rounding has to happen somewhere. */
        if (!(input > 0) || !(row->max_rel / input > limit))
            continue;
        row->verdict.severity = PLUMB_SUSPICIOUS;
        snprintf(row->verdict.rule, sizeof row->verdict.rule,
                 "jump %.3g > %.3g: max_rel %.3g from inputs with %.3g", row->max_rel / input,
                 limit, row->max_rel, input);
    }
out:
    map_free(&worst);
    return code;
}
