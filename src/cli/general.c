/* compare under the rules of a profile: dump trees place by place, each to its table. */
#define _GNU_SOURCE
#include "cli/general.h"

#include "cli/junit.h"
#include "cli/notes.h"
#include "cli/page.h"
#include "cli/profiles.h"
#include "cli/progress.h"
#include "cli/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say_counts(const struct plumb_general *general, FILE *out)
{
    fprintf(out, "%zu row%s: %zu error, %zu warning, %zu without a partner\n", general->rows,
            general->rows == 1 ? "" : "s", general->errors, general->warnings, general->unmatched);
}

/* [debug_]compare_result[_rankN]_TIME.csv, under a name that nobody had. */
static enum plumb_code save(char **path, const struct plumb_general *general,
                            const struct plumb_general_place *place,
                            const struct general_request *request, struct plumb_error *err)
{
    char *stem = NULL;
    if (asprintf(&stem, "%scompare_result%s%s", place->debug ? "debug_" : "",
                 *place->rank ? "_" : "", place->rank) < 0)
        return plumb_no_memory(err);
    const struct result_name name = {request->folder, stem, request->xlsx ? ".xlsx" : ".csv",
                                     false};
    enum plumb_code code = result_save(path, &name, general->table, request->view, err);
    free(stem);
    return code;
}

static enum plumb_code deliver(const struct plumb_general *general,
                               const struct plumb_general_place *place, bool to_file,
                               const struct general_request *request, struct plumb_error *err)
{
    char *made = NULL;
    enum plumb_code code = cli_arrange(general->table, request->view, err);
    if (code)
        return code;
    if (!to_file) {
        code = request->quiet ? PLUMB_OK
               : request->view->format == CLI_JUNIT
                   ? junit_words("plumb.compare", general->table, PLUMB_BY_RULES, err)
                   : cli_show(general->table, request->view, err);
    } else {
        code = request->result ? cli_save(general->table, request->result, request->view, err)
                               : save(&made, general, place, request, err);
        if (!code && !request->quiet)
            cli_say_written(general->table, made ? made : request->result);
    }
    free(made);
    FILE *out = !to_file && cli_is_machine_format(request->view->format) ? stderr : stdout;
    if (!code)
        code = result_mapping(general->mapping, request->folder, request->quiet ? NULL : out, err);
    if (!request->quiet) /* what was found counts, wherever the table went */
        say_counts(general, out);
    return code;
}

/* What all places came to. */
struct total {
    struct plumb_report *report; /* NULL: none is wanted */
    size_t places, rows, errors, warnings, unmatched;
    bool odd; /* something could not be read */
    int64_t row;
    char where[600];
    enum plumb_mood mood;
};

static enum plumb_code tell_place(struct total *total, const struct plumb_general *general,
                                  const struct plumb_general_place *place, struct plumb_error *err)
{
    struct page_found found;
    const char *name = *place->rank ? place->rank : place->debug ? "debug" : "comparison";
    enum plumb_code code =
        page_table(total->report, name, general->table, PLUMB_BY_RULES, &found, err);
    if (!code && found.mood < total->mood && found.row >= 0) {
        total->mood = found.mood;
        total->row = total->places == 1 ? found.row : -1;
        snprintf(total->where, sizeof total->where, "%s%s%s", found.where, *place->rank ? ", " : "",
                 place->rank);
    }
    for (const char *line = general->notes, *end; line && *line; line = end + (*end != '\0')) {
        end = strchrnul(line, '\n');
        char *note = strndup(line, (size_t)(end - line));
        if (note && *note)
            plumb_report_note(total->report, note);
        free(note);
    }
    return code;
}

static void add_up(struct total *total, const struct plumb_general *general)
{
    total->places++;
    total->rows += general->rows;
    total->errors += general->errors;
    total->warnings += general->warnings;
    total->unmatched += general->unmatched;
    total->odd |= general->notes != NULL;
}

static enum plumb_code compare_place(const struct plumb_general_place *place, bool to_file,
                                     const struct general_request *request, struct total *total,
                                     struct plumb_error *err)
{
    struct plumb_general general;
    struct progress progress;
    struct plumb_general_options options = request->options;
    options.plain_infinities =
        request->xlsx || (request->result && cli_ends_with(request->result, ".xlsx"));
    options.threads = cli_threads(&request->view->common);
    options.progress = progress_update;
    options.progress_context = &progress;
    progress_init(&progress, "rows");
    progress.enabled = progress.enabled && !request->quiet;
    enum plumb_code code =
        plumb_general_compare(&general, place->target, place->golden, &options, err);
    progress_end(&progress);
    if (code)
        return code;
    notes_say(general.notes);
    add_up(total, &general);
    if (general.rows && total->report)
        code = tell_place(total, &general, place, err); /* before rows are sorted or dropped */
    if (!code && general.rows)
        code = deliver(&general, place, to_file, request, err);
    else if (!code)
        code = plumb_fail(err, PLUMB_E_ARG, "%s has no row that could be compared", place->target);
    plumb_general_free(&general);
    return code;
}

static enum plumb_code write_page(const struct total *total, const struct general_request *request,
                                  struct plumb_error *err)
{
    const size_t judged = total->rows - total->unmatched;
    char sentence[200];
    if (total->errors || judged)
        snprintf(sentence, sizeof sentence, "%zu of %zu compared tensors %s in error%s.",
                 total->errors, judged, total->errors == 1 ? "is" : "are",
                 total->odd ? "; some files could not be read" : "");
    else
        snprintf(sentence, sizeof sentence, "Nothing could be compared.");
    plumb_report_answer(total->report, &(struct plumb_report_answer){
                                           .mood = total->errors || total->odd ? PLUMB_MOOD_BAD
                                                   : !judged                   ? PLUMB_MOOD_UNSEEN
                                                   : total->warnings           ? PLUMB_MOOD_DOUBT
                                                                               : PLUMB_MOOD_GOOD,
                                           .sentence = sentence,
                                           .where = total->where,
                                           .row = total->row,
                                           .sure = ""});
    plumb_report_count(total->report, "error", total->errors, PLUMB_MOOD_BAD);
    plumb_report_count(total->report, "warning", total->warnings, PLUMB_MOOD_DOUBT);
    plumb_report_count(total->report, "without a partner", total->unmatched, PLUMB_MOOD_UNSEEN);
    return page_end(total->report, request->page, request->quiet, PLUMB_OK, err);
}

static enum plumb_code begin_page(struct total *total, const struct general_request *request,
                                  struct plumb_error *err)
{
    total->report = page_begin("compare", "Comparison of two runs", err);
    if (!total->report)
        return PLUMB_E_NOMEM;
    plumb_report_fact(total->report, "target", request->target);
    plumb_report_fact(total->report, "golden", request->golden);
    plumb_report_fact(total->report, "rules", PROFILE_OTHER);
    return PLUMB_OK;
}

int general_run(const struct plumb_general_places *places, const struct general_request *request)
{
    if (request->result && places->count > 1)
        return cli_usage(&cmd_compare, "%zu ranks make %zu tables: give a folder with -o, not '%s'",
                         places->count, places->count, request->result);
    struct total total = {.row = -1, .mood = PLUMB_MOOD_UNSEEN};
    struct plumb_error err = {0};
    const bool to_file = request->to_file || places->count > 1;
    bool unusable = request->page && begin_page(&total, request, &err);
    if (unusable)
        cli_report(&err);
    cli_say_strays(request->target);
    cli_say_strays(request->golden);
    for (size_t i = 0; i < places->count; i++) {
        struct plumb_error own = {0};
        if (!compare_place(&places->places[i], to_file, request, &total, &own))
            continue;
        cli_report(&own);
        unusable = true;
    }
    if (unusable) {
        plumb_report_free(total.report);
    } else if (total.report && write_page(&total, request, &err)) {
        cli_report(&err);
        unusable = true;
    }
    return unusable ? CLI_UNUSABLE : total.errors || total.odd ? CLI_BAD : CLI_OK;
}
