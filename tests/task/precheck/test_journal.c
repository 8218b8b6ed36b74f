/* The two tables of a check, torn at every byte: what is resumed ends like what was left alone. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "msprobe/profile.h"
#include "scratch.h"
#include "task/precheck/journal.h"
#include "task/precheck/rows.h"
#include "verdict/profile.h"
#include "verdict/profiles.h"

#define STAMP "20260101120000"
#define RESULT "accuracy_checking_result_" STAMP ".csv"
#define DETAILS "accuracy_checking_details_" STAMP ".csv"

/* A name that begins another's, rows with quotes and newlines, an API without rows, formulas. */
static const struct details_row add_rows[] = {
    {.name = "Torch.add.1.forward.output.0", .status = STATUS_PASS},
    {.name = "Torch.add.1.backward.output.0", .status = STATUS_WARNING, .message = "a, b"},
};
static const struct details_row add_more[] = {
    {.name = "Torch.add.10.forward.output.0", .status = STATUS_ERROR, .message = "say \"no\"\nor"},
};
static const struct details_row odd_rows[] = {
    {.name = "Torch.odd,\"\n.0.forward.output.0", .status = STATUS_SKIP, .message = ""},
};
static const struct details_row formula_rows[] = {
    {.name = "=1+1.cmd.0.forward.output.0", .status = STATUS_SKIP, .message = "-1 is no name"},
};
static const struct journal_entry entries[] = {
    {.name = "Torch.add.1",
     .forward = STATUS_PASS,
     .backward = STATUS_WARNING,
     .message = "a, b",
     .rows = add_rows,
     .n_rows = 2},
    {.name = "Torch.add.10",
     .forward = STATUS_ERROR,
     .backward = STATUS_BLANK,
     .message = "say \"no\"\nor",
     .rows = add_more,
     .n_rows = 1},
    {.name = "Functional.dropout.0", .forward = STATUS_PASS, .backward = STATUS_PASS},
    {.name = "Torch.odd,\"\n.0",
     .forward = STATUS_SKIP,
     .backward = STATUS_SKIP,
     .message = "why",
     .rows = odd_rows,
     .n_rows = 1},
    {.name = "=1+1.cmd.0",
     .forward = STATUS_SKIP,
     .backward = STATUS_SKIP,
     .message = "-1 is no name",
     .rows = formula_rows,
     .n_rows = 1},
};
enum { N_ENTRIES = sizeof entries / sizeof *entries };

static const char *const names[] = {"Torch.add.1", "Torch.add.10", "Functional.dropout.0",
                                    "Torch.odd,\"\n.0", "=1+1.cmd.0"};
static const struct journal_calls calls = {names, N_ENTRIES};
_Static_assert(sizeof names / sizeof *names == N_ENTRIES, "a name for each entry");

/* What is written in which order, and the whole files. */
struct piece {
    bool result;
    size_t size;
};

struct files {
    const struct precheck_dialect *rules;
    struct buf result, details;
    struct piece pieces[2 + 2 * N_ENTRIES];
};

static void make_files(struct files *files, const struct precheck_dialect *rules)
{
    *files = (struct files){.rules = rules};
    size_t n = 0, before = 0;
    rows_details_header(&files->details, rules, false);
    files->pieces[n++] = (struct piece){false, files->details.size};
    rows_result_header(&files->result, rules, false);
    files->pieces[n++] = (struct piece){true, files->result.size};
    for (size_t k = 0; k < N_ENTRIES; k++) {
        before = files->details.size;
        for (size_t row = 0; row < entries[k].n_rows; row++)
            rows_details(&files->details, rules, &entries[k].rows[row]);
        files->pieces[n++] = (struct piece){false, files->details.size - before};
        before = files->result.size;
        rows_result(&files->result, rules, &entries[k]);
        files->pieces[n++] = (struct piece){true, files->result.size - before};
    }
}

static void free_files(struct files *files)
{
    buf_free(&files->result);
    buf_free(&files->details);
}

static void assert_file(struct scratch *scratch, const char *name, const struct buf *wanted)
{
    char bytes[16384];
    FILE *stream = fopen(scratch_path(scratch, name), "rb");
    assert_non_null(stream);
    const size_t size = fread(bytes, 1, sizeof bytes, stream);
    fclose(stream);
    assert_int_equal(size, wanted->size);
    assert_memory_equal(bytes, wanted->data, size);
}

/* Resumes files of these sizes; returns how many APIs were done. */
static size_t resume(struct scratch *scratch, const struct files *files, size_t result,
                     size_t details)
{
    struct journal journal;
    struct plumb_error err = {0};
    char path[1024];
    scratch_write(scratch, DETAILS, files->details.data, details);
    snprintf(path, sizeof path, "%s", scratch_write(scratch, RESULT, files->result.data, result));
    assert_int_equal(
        journal_resume(&journal, path, precheck_profiles, files->rules, NULL, &calls, &err),
        PLUMB_OK);
    assert_string_equal(journal.stamp, STAMP);
    size_t done = 0, counted = 0;
    for (size_t k = 0; k < N_ENTRIES; k++) {
        if (k < journal.finished)
            done++;
        else
            assert_int_equal(journal_add(&journal, &entries[k], &err), PLUMB_OK);
    }
    for (size_t f = 0; f <= STATUS_BLANK; f++)
        for (size_t b = 0; b <= STATUS_BLANK; b++)
            counted += journal.earlier[f][b];
    assert_int_equal(counted, done);
    assert_int_equal(journal_close(&journal, &err), PLUMB_OK);
    assert_file(scratch, RESULT, &files->result);
    assert_file(scratch, DETAILS, &files->details);
    return done;
}

static const struct precheck_dialect *const dialects[] = {&dialect_documented, &msprobe_dialect};

static void test_killed_at_every_byte(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    for (size_t d = 0; d < 2; d++) {
        struct files files;
        make_files(&files, dialects[d]);
        size_t result = 0, details = 0, most = 0;
        for (size_t p = 0; p < sizeof files.pieces / sizeof *files.pieces; p++)
            for (size_t k = 0; k < files.pieces[p].size; k++) {
                const size_t done = resume(&scratch, &files, result, details);
                /* At most the last API with rows, and those without behind it, are redone. */
                const size_t finished = p < 2 ? 0 : (p - 2) / 2;
                assert_true(done <= finished && done + 2 >= finished);
                most = done > most ? done : most;
                *(files.pieces[p].result ? &result : &details) += 1;
            }
        assert_int_equal(most, N_ENTRIES - 1);
        assert_int_equal(resume(&scratch, &files, result, details), N_ENTRIES);
        free_files(&files);
    }
    scratch_remove(&scratch);
}

/* After a power failure either file may be behind the other. */
static void test_lost_ends(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    for (size_t d = 0; d < 2; d++) {
        struct files files;
        make_files(&files, dialects[d]);
        for (size_t size = 0; size < files.details.size; size++)
            resume(&scratch, &files, files.result.size, size);
        const size_t first = files.pieces[1].size + files.pieces[3].size;
        for (size_t size = first; size < files.result.size; size++)
            resume(&scratch, &files, size, files.details.size);
        free_files(&files);
    }
    scratch_remove(&scratch);
}

static void assert_refused(struct scratch *scratch, const struct precheck_dialect *rules,
                           const struct buf *result, const struct buf *details, const char *word)
{
    struct journal journal;
    struct plumb_error err = {0};
    char path[1024];
    scratch_write(scratch, DETAILS, details->data, details->size);
    snprintf(path, sizeof path, "%s", scratch_write(scratch, RESULT, result->data, result->size));
    assert_int_equal(journal_resume(&journal, path, precheck_profiles, rules, NULL, &calls, &err),
                     PLUMB_E_IO);
    assert_non_null(strstr(err.message, word));
    journal_close(&journal, NULL);
    assert_file(scratch, RESULT, result);
    assert_file(scratch, DETAILS, details);
}

static void test_what_is_no_pair_is_left_alone(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    struct files files, origin;
    make_files(&files, &dialect_documented);
    make_files(&origin, &msprobe_dialect);
    assert_refused(&scratch, &msprobe_dialect, &files.result, &files.details, "--rules");
    assert_refused(&scratch, &dialect_documented, &files.result, &origin.details, "--rules");
    assert_refused(&scratch, &dialect_documented, &files.details, &files.result, "first line");

    /* Rows of a finished API behind those of one that is not; and in another order. */
    struct buf mixed = {0}, swapped = {0};
    static const struct details_row stranger = {.name = "Torch.sub.0.forward.output.0"};
    rows_details_header(&mixed, &dialect_documented, false);
    rows_details(&mixed, &dialect_documented, &stranger);
    rows_details(&mixed, &dialect_documented, &add_rows[0]);
    assert_refused(&scratch, &dialect_documented, &files.result, &mixed, "not those");
    rows_details_header(&swapped, &dialect_documented, false);
    rows_details(&swapped, &dialect_documented, &add_more[0]);
    rows_details(&swapped, &dialect_documented, &add_rows[0]);
    assert_refused(&scratch, &dialect_documented, &files.result, &swapped, "not those");
    buf_free(&mixed);
    buf_free(&swapped);
    free_files(&files);
    free_files(&origin);
    scratch_remove(&scratch);
}

/* Rows of calls that are not those of the dump. */
static void test_other_calls(void **state)
{
    (void)state;
    static const struct {
        const char *names[N_ENTRIES];
        size_t count;
        const char *words;
    } others[] = {
        {{"Torch.add.10", "Torch.add.1"}, 2, "line 2 is of Torch.add.1, where this dump has "},
        {{"Torch.add.1", "Torch.sub.0"}, 2, "line 3 is of Torch.add.10, where this dump has "},
        {{"Torch.add.1"}, 1, "line 3 is of Torch.add.10, but this dump has no further call"},
        {{""}, 0, "line 2 is of Torch.add.1, but this dump has no further call"},
    };
    struct scratch scratch;
    struct files files;
    scratch_make(&scratch);
    make_files(&files, &dialect_documented);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        struct journal journal;
        struct plumb_error err = {0};
        const struct journal_calls wrong = {others[k].names, others[k].count};
        char path[1024];
        scratch_write(&scratch, DETAILS, files.details.data, files.details.size);
        snprintf(path, sizeof path, "%s",
                 scratch_write(&scratch, RESULT, files.result.data, files.result.size));
        assert_int_equal(journal_resume(&journal, path, precheck_profiles, &dialect_documented,
                                        NULL, &wrong, &err),
                         PLUMB_E_IO);
        assert_non_null(strstr(err.message, others[k].words));
        journal_close(&journal, NULL);
        assert_file(&scratch, RESULT, &files.result);
        assert_file(&scratch, DETAILS, &files.details);
    }
    free_files(&files);
    scratch_remove(&scratch);
}

/* What a spreadsheet would run is text under the documented rules; msprobe never gets so far. */
static void test_formulas(void **state)
{
    (void)state;
    struct buf text = {0};
    rows_result(&text, &dialect_documented, &entries[N_ENTRIES - 1]);
    assert_string_equal(text.data, "'=1+1.cmd.0,SKIP,SKIP,'-1 is no name\n");
    text.size = 0;
    rows_details(&text, &dialect_documented,
                 &(struct details_row){.name = "@a,b", .cell[CELL_MAX_ABS] = "-1.5e-07"});
    assert_memory_equal(text.data, "\"'@a,b\", ", 9);
    assert_non_null(strstr(text.data, ",-1.5e-07,"));
    text.size = 0;
    rows_result(&text, &msprobe_dialect, &entries[N_ENTRIES - 1]);
    assert_string_equal(text.data, "=1+1.cmd.0,SKIP,SKIP,-1 is no name\r\n");
    buf_free(&text);
}

static void test_new_files_never_replace_others(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    struct journal journals[3];
    for (int k = 0; k < 3; k++)
        assert_int_equal(
            journal_create(&journals[k], scratch.folder, &dialect_documented, NULL, NULL), 0);
    assert_int_equal(scratch_count(&scratch), 6);
    struct plumb_error err = {0};
    struct journal again; /* the first is still being written */
    assert_int_equal(journal_resume(&again, journals[0].result_path, precheck_profiles,
                                    &dialect_documented, NULL, &calls, &err),
                     PLUMB_E_IO);
    assert_non_null(strstr(err.message, "another check"));
    journal_close(&again, NULL);
    for (int k = 0; k < 3; k++)
        assert_int_equal(journal_close(&journals[k], NULL), 0);
    assert_int_equal(
        journal_create(&again, scratch_path(&scratch, "none"), &dialect_documented, NULL, &err),
        PLUMB_E_IO);
    journal_close(&again, NULL);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_at_every_byte),
        cmocka_unit_test(test_other_calls),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_lost_ends),
        cmocka_unit_test(test_what_is_no_pair_is_left_alone),
        cmocka_unit_test(test_new_files_never_replace_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
