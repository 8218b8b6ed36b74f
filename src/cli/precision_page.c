/* The page of api_precision_compare: what the rules made of two pre-checks, and what both measured,
 * output by output. */
#include "cli/precision_page.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"

#include <inttypes.h>
#include <string.h>

/* ---- Both devices beside each other ---------------------------------------------------------- */

enum { NPU, GPU, JUDGED, FILES };

/* The details of both devices, and what came of them, by names of outputs. */
struct sides {
    struct plumb_table *table[FILES];
    struct map rows[FILES];
    size_t outcome; /* the column of `judged` that has it */
    struct arena arena;
};

static const char *name_at(const struct plumb_table *table, size_t row)
{
    const struct plumb_cell *cell = plumb_table_cell(table, row, 0);
    return cell->type == PLUMB_CELL_TEXT ? cell->as.text : "";
}

static bool index_rows(struct map *rows, const struct plumb_table *table)
{
    for (size_t row = 0; row < plumb_table_rows(table); row++) {
        const char *name = name_at(table, row);
        bool added;
        uint64_t *place = map_put(rows, name, strlen(name), &added);
        if (!place)
            return false;
        if (added)
            *place = row;
    }
    return true;
}

static const struct plumb_cell *cell_of(const struct sides *sides, int file, const char *name,
                                        size_t column)
{
    const uint64_t *row = map_get(&sides->rows[file], name, strlen(name));
    return row && column < plumb_table_columns(sides->table[file])
               ? plumb_table_cell(sides->table[file], (size_t)*row, column)
               : NULL;
}

static bool put_cell(struct plumb_table *out, size_t column, const struct plumb_cell *cell)
{
    if (!cell || cell->type == PLUMB_CELL_EMPTY)
        return true;
    if (cell->type == PLUMB_CELL_TEXT)
        return plumb_table_text(out, column, cell->as.text);
    if (cell->type == PLUMB_CELL_INT)
        plumb_table_int(out, column, cell->as.integer);
    else
        plumb_table_real(out, column, cell->as.real);
    return true;
}

static bool is_blank(const struct plumb_cell *cell)
{
    return cell->type == PLUMB_CELL_EMPTY ||
           (cell->type == PLUMB_CELL_TEXT && cell->as.text[strspn(cell->as.text, " ")] == '\0');
}

/* Whether any row of either device has something there. */
static bool is_used(const struct sides *sides, size_t column)
{
    for (int file = NPU; file <= GPU; file++)
        for (size_t row = 0; row < plumb_table_rows(sides->table[file]); row++)
            if (!is_blank(plumb_table_cell(sides->table[file], row, column)))
                return true;
    return false;
}

static bool add_row(struct plumb_table *out, const struct sides *sides, const char *name,
                    const size_t *columns, size_t count)
{
    const struct plumb_cell *outcome = cell_of(sides, JUDGED, name, sides->outcome);
    bool there[2], fine = plumb_table_add_row(out, PLUMB_NORMAL);
    for (int file = NPU; file <= GPU; file++)
        there[file] = map_get(&sides->rows[file], name, strlen(name)) != NULL;
    fine = fine && plumb_table_text(out, 0, name);
    if (fine && outcome && !is_blank(outcome))
        fine = put_cell(out, 1, outcome);
    else if (fine)
        fine = plumb_table_text(out, 1,
                                !there[GPU]   ? "only in the NPU file"
                                : !there[NPU] ? "only in the GPU file"
                                              : "not judged");
    for (size_t k = 0; k < count && fine; k++)
        for (int file = NPU; file <= GPU && fine; file++)
            fine = put_cell(out, 2 + 2 * k + (size_t)file, cell_of(sides, file, name, columns[k]));
    return fine;
}

/* Every output of either device: its outcome, and each column of the details twice. */
static struct plumb_table *join(struct sides *sides)
{
    const size_t all = plumb_table_columns(sides->table[NPU]);
    size_t *columns = arena_array(&sides->arena, all + 1, sizeof *columns), count = 0;
    struct plumb_column *titles = arena_array(&sides->arena, 2 * all + 2, sizeof *titles);
    if (!columns || !titles)
        return NULL;
    titles[0] = *plumb_table_column(sides->table[NPU], 0);
    titles[1] = (struct plumb_column){.title = "Comparison result", .left = true};
    for (size_t k = 1; k < all && k < plumb_table_columns(sides->table[GPU]); k++) {
        if (!is_used(sides, k))
            continue;
        for (int file = NPU; file <= GPU; file++) {
            struct plumb_column *title = &titles[2 + 2 * count + (size_t)file];
            *title = *plumb_table_column(sides->table[file], k);
            title->title =
                arena_printf(&sides->arena, "%s %s", file == NPU ? "NPU" : "GPU", title->title);
            if (!title->title)
                return NULL;
        }
        columns[count++] = k;
    }
    struct plumb_table *out = plumb_table_new(titles, 2 + 2 * count);
    bool fine = out != NULL;
    for (int file = NPU; file <= GPU; file++)
        for (size_t row = 0; row < plumb_table_rows(sides->table[file]) && fine; row++) {
            const char *name = name_at(sides->table[file], row);
            if (file == NPU || !map_get(&sides->rows[NPU], name, strlen(name)))
                fine = add_row(out, sides, name, columns, count);
        }
    if (fine)
        return out;
    plumb_table_free(out);
    return NULL;
}

static size_t outcome_column(const struct plumb_table *judged)
{
    const size_t count = plumb_table_columns(judged);
    for (size_t k = 0; k < count; k++) {
        const char *title = plumb_table_column(judged, k)->title;
        if (strcmp(title, "Comparison result") == 0 ||
            strcmp(title, "\u6bd4\u5bf9\u7ed3\u679c") == 0)
            return k;
    }
    return count;
}

static enum plumb_code tell_sides(struct plumb_report *report,
                                  const struct plumb_precision_options *options,
                                  const struct plumb_precision_result *result,
                                  struct plumb_error *err)
{
    const char *const paths[FILES] = {options->npu, options->gpu, result->details_path};
    struct page_found found;
    struct sides sides = {0};
    enum plumb_code code = PLUMB_OK;
    bool fine = true;
    for (int file = 0; file < FILES && !code; file++) {
        code = plumb_table_read(&sides.table[file], paths[file], err);
        fine = fine && !code && index_rows(&sides.rows[file], sides.table[file]);
    }
    if (!code && fine) {
        sides.outcome = outcome_column(sides.table[JUDGED]);
        struct plumb_table *both = join(&sides);
        code = both ? page_table(report, "both devices", both, PLUMB_BY_RULES, &found, err)
                    : plumb_no_memory(err);
        plumb_table_free(both);
    } else if (!code) {
        code = plumb_no_memory(err);
    }
    for (int file = 0; file < FILES; file++) {
        plumb_table_free(sides.table[file]);
        map_free(&sides.rows[file]);
    }
    arena_free(&sides.arena);
    return code;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void tell_left_out(struct plumb_report *report, size_t count, const char *where,
                          const char *first)
{
    char text[256];
    if (!count)
        return;
    snprintf(text, sizeof text, "%zu row%s only in the %s file, left out: %s%s", count,
             count == 1 ? " is" : "s are", where, first, count > 1 ? ", ..." : "");
    plumb_report_note(report, text);
}

static void tell_counts(struct plumb_report *report, const struct plumb_precision_result *result)
{
    plumb_report_count(report, "pass", result->pass, PLUMB_MOOD_GOOD);
    plumb_report_count(report, "warning", result->warning, PLUMB_MOOD_DOUBT);
    plumb_report_count(report, "error", result->error, PLUMB_MOOD_BAD);
    plumb_report_count(report, "SKIP", result->skip, PLUMB_MOOD_UNSEEN);
    for (int word = 0; word < PLUMB_WORDS; word++) {
        char text[64];
        snprintf(text, sizeof text, "second opinion: %s", plumb_word_text((enum plumb_word)word));
        if (result->words[word])
            plumb_report_count(report, text, result->words[word], page_mood((enum plumb_word)word));
    }
}

static void put_sentence(struct buf *out, const struct plumb_precision_options *options,
                         const struct plumb_precision_result *result)
{
    const size_t compared = result->apis - result->skip;
    uint64_t judged = 0;
    for (int word = 0; word < PLUMB_WORDS; word++)
        judged += word == PLUMB_WORD_NOT_JUDGED ? 0 : result->words[word];
    if (options->verdict != PLUMB_BY_EXPECTED && !compared)
        buf_text(out, "No API could be compared.");
    else if (options->verdict != PLUMB_BY_EXPECTED)
        buf_printf(out, "%zu of %zu compared APIs %s in error on the device under test.",
                   result->error, compared, result->error == 1 ? "is" : "are");
    if (options->verdict != PLUMB_BY_EXPECTED && compared && result->skip)
        buf_printf(out, " %zu %s skipped.", result->skip, result->skip == 1 ? "was" : "were");
    if (options->verdict == PLUMB_BY_RULES)
        return;
    buf_text(out, out->size ? " " : "");
    if (judged)
        buf_printf(out, "%" PRIu64 " of %" PRIu64 " judged outputs %s wrong by %s.",
                   result->words[PLUMB_WORD_FAULT], judged,
                   result->words[PLUMB_WORD_FAULT] == 1 ? "is" : "are",
                   result->words[PLUMB_WORD_FAULT] == 1 ? "itself" : "themselves");
    else
        buf_text(out, "No output could be judged by its second opinion.");
}

enum plumb_code precision_page_tell(struct plumb_report *report,
                                    const struct plumb_precision_options *options,
                                    const struct plumb_precision_result *result, int status,
                                    struct plumb_error *err)
{
    struct page_found apis, outputs;
    struct buf sentence = {0};
    enum plumb_code code =
        page_file(report, "APIs", result->result_path, options->verdict, &apis, err);
    if (!code)
        code = tell_sides(report, options, result, err);
    if (!code)
        code = page_file(report, "outputs", result->details_path, options->verdict, &outputs, err);
    if (code)
        return code;
    const bool seen = status != CLI_UNUSABLE && result->apis > result->skip;
    put_sentence(&sentence, options, result);
    page_answer(report, status == CLI_BAD, seen, sentence.data, &apis);
    buf_free(&sentence);
    tell_counts(report, result);
    tell_left_out(report, result->only_npu, "NPU", result->first_only_npu);
    tell_left_out(report, result->only_gpu, "GPU", result->first_only_gpu);
    page_unseen(report, "skipped, or one direction of them", &apis);
    plumb_report_fact(report, "device under test", options->npu);
    plumb_report_fact(report, "trusted device", options->gpu);
    return PLUMB_OK;
}
