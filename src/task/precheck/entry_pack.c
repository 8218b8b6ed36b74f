/* A finished API as bytes. */
#include "task/precheck/entry_pack.h"

static void pack_status(struct pack *pack, enum check_status *status)
{
    unsigned number = *status;
    pack_below(pack, &number, STATUS_BLANK + 1);
    *status = (enum check_status)number;
}

static void pack_word(struct pack *pack, enum plumb_word *word)
{
    unsigned number = *word;
    pack_below(pack, &number, PLUMB_WORDS);
    *word = (enum plumb_word)number;
}

static void pack_row(struct pack *pack, struct details_row *row, struct arena *arena)
{
    const char **const texts[] = {
        &row->name,    &row->bench_dtype, &row->device_dtype, &row->shape,      &row->message,
        &row->verdict, &row->why,         &row->judged_by,    &row->arithmetic, &row->pattern};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        pack_text(pack, texts[i], arena);
    for (int i = 0; i < CELL_COUNT; i++)
        pack_text(pack, &row->cell[i], arena);
    pack_status(pack, &row->status);
    pack_word(pack, &row->word);
    pack_bool(pack, &row->allowed);
    pack_real(pack, &row->worst);
}

void entry_pack(struct pack *pack, struct journal_entry *entry, struct arena *arena)
{
    pack_text(pack, &entry->name, arena);
    pack_status(pack, &entry->forward);
    pack_status(pack, &entry->backward);
    pack_text(pack, &entry->message, arena);
    pack_text(pack, &entry->verdict, arena);
    pack_text(pack, &entry->why, arena);
    pack_word(pack, &entry->word);
    pack_size(pack, &entry->n_rows);
    if (pack->out) {
        for (size_t i = 0; i < entry->n_rows; i++) {
            struct details_row row = entry->rows[i];
            pack_row(pack, &row, NULL);
        }
        return;
    }
    struct details_row *rows = pack_check(pack, entry->name && entry->n_rows <= pack->left)
                                   ? arena_array(arena, entry->n_rows, sizeof *rows)
                                   : NULL;
    if (!pack_check(pack, rows))
        entry->n_rows = 0;
    for (size_t i = 0; i < entry->n_rows; i++)
        pack_row(pack, &rows[i], arena);
    entry->rows = rows;
}
