/* Reading second opinions from details files, and joining those of two devices. */
#include "task/precision/opinion.h"

#include <string.h>

const char *const opinion_titles[OPINION_COLUMNS] = {"Verdict", "Why", "Judged by"};

static bool is_blank(struct csv_cell cell)
{
    for (size_t i = 0; i < cell.length; i++)
        if (cell.text[i] != ' ')
            return false;
    return true;
}

/* Nothing is a verdict, too: there was no such result, and there should be none. */
static bool read_word(struct csv_cell cell, bool *given, enum plumb_word *word)
{
    *given = !is_blank(cell);
    *word = PLUMB_WORD_NOT_JUDGED;
    if (!*given)
        return true;
    for (int k = 0; k < PLUMB_WORDS; k++) {
        const char *text = plumb_word_text((enum plumb_word)k);
        if (cell.length != strlen(text) || memcmp(cell.text, text, cell.length) != 0)
            continue;
        *word = (enum plumb_word)k;
        return true;
    }
    return false;
}

bool opinions_read(const struct csv_cell *cells, const struct csv_cell *other_cells,
                   struct opinions *out, struct csv_cell *bad)
{
    bool other_given;
    *out = (struct opinions){.asked = true};
    memcpy(out->cells, cells, sizeof out->cells);
    memcpy(out->other_cells, other_cells, sizeof out->other_cells);
    *bad = cells[OPINION_VERDICT];
    if (!read_word(*bad, &out->given, &out->word))
        return false;
    *bad = other_cells[OPINION_VERDICT];
    if (!read_word(*bad, &other_given, &out->other))
        return false;
    out->shared =
        out->given && out->word == PLUMB_WORD_FAULT && other_given && out->other == out->word;
    return true;
}

void opinions_put_why(struct buf *out, struct csv_cell place, const struct opinions *opinions)
{
    const struct csv_cell why = opinions->cells[OPINION_WHY];
    buf_append(out, place.text, place.length);
    buf_text(out, ": ");
    buf_append(out, why.text, why.length);
    buf_text(out, opinions->shared ? "; the trusted device has it too" : "");
}
