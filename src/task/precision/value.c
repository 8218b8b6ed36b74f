/* What a cell of a details file means. */
#include "task/precision/number.h"
#include "task/precision/read.h"
#include "task/precision/types.h"

#include <math.h>
#include <string.h>

/* The texts that pandas reads as "not available". */
static bool is_not_available(struct csv_cell cell)
{
    static const char *const texts[] = {
        "nan",  "NaN",  "NA",  "N/A",  "null",     "NULL",   "n/a",     "None",    "-nan",
        "-NaN", "<NA>", "#NA", "#N/A", "#N/A N/A", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"};
    if (!cell.length)
        return true;
    if (cell.length > 8 || !strchr("nN-<#1", cell.text[0]))
        return false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strlen(texts[i]) == cell.length && memcmp(texts[i], cell.text, cell.length) == 0)
            return true;
    return false;
}

/* Files of plumb leave cells empty that have nothing to say: only those of a profile that writes a
 * space there are read with the eyes of pandas. */
static bool by_pandas(const struct details_file *file)
{
    return file->profile->precision->typed_columns && file->author == file->profile;
}

bool details_is_missing(const struct details_file *file, struct csv_cell cell)
{
    return by_pandas(file) && is_not_available(cell);
}

void details_note_types(struct details_file *file, const struct details_cells *row, uint8_t *types)
{
    if (!by_pandas(file))
        return;
    for (int column = FIRST_METRIC; column <= LAST_METRIC; column++) {
        uint8_t *type = &types[column - FIRST_METRIC];
        struct csv_cell cell = row->cell[column];
        double number;
        int64_t integer;
        if (*type & TYPE_TEXT)
            continue;
        if (is_not_available(cell))
            *type |= TYPE_MISSING;
        else if (precision_integer(cell.text, cell.length, &integer))
            *type |= TYPE_INTEGER;
        else if (precision_number_pandas(cell.text, cell.length, &number))
            *type |= TYPE_REAL;
        else
            *type |= TYPE_TEXT;
    }
}

/* Integers stay integers only while the whole column, in every stretch that is not text, is. */
static bool is_whole(const struct details_file *file, int metric)
{
    for (size_t i = 0; i < file->stretches; i++) {
        uint8_t type = file->types[i * METRIC_COUNT + (size_t)metric];
        if (!(type & TYPE_TEXT) && type & (TYPE_REAL | TYPE_MISSING))
            return false;
    }
    return true;
}

struct value details_value(const struct details_file *file, const struct details_cells *row,
                           enum precision_column column)
{
    struct csv_cell cell = row->cell[column];
    struct value value = {.kind = VALUE_BLANK, .number = NAN};
    if (!by_pandas(file)) {
        if (precision_is_blank(cell))
            return value;
        value.kind =
            precision_number(cell.text, cell.length, &value.number) ? VALUE_NUMBER : VALUE_TEXT;
        return value;
    }
    int metric = (int)column - FIRST_METRIC;
    uint8_t type = file->types[row->number / file->stretch * METRIC_COUNT + (size_t)metric];
    value.typed = !(type & TYPE_TEXT);
    if (is_not_available(cell)) {
        value.kind = VALUE_MISSING;
    } else if (value.typed) {
        value.kind = VALUE_NUMBER;
        precision_number_pandas(cell.text, cell.length, &value.number);
        value.whole = !(type & (TYPE_REAL | TYPE_MISSING)) && is_whole(file, metric);
    } else if (!precision_is_blank(cell)) {
        value.kind =
            precision_number(cell.text, cell.length, &value.number) ? VALUE_NUMBER : VALUE_TEXT;
    }
    return value;
}

bool details_is_formula(struct csv_cell name)
{
    static const char *const signs[] = {"+", "-", "=", "%", "@", "＋", "－", "＝", "％", "＠"};
    for (size_t at = 0; at < name.length; at++) {
        if (at && name.text[at - 1] != ';')
            continue;
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (name.length - at >= strlen(signs[i]) &&
                memcmp(name.text + at, signs[i], strlen(signs[i])) == 0)
                return true;
    }
    return false;
}
