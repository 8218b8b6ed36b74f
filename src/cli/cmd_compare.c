/* compare: which kind of comparison two paths want, and what its end means. */
#define _GNU_SOURCE
#include "base/arena.h"
#include "base/folder.h"
#include "cli/compare_parts.h"
#include "cli/diff_analyze.h"
#include "cli/general.h"
#include "cli/notes.h"
#include "cli/profiles.h"
#include "cli/torchair.h"

#include <stdlib.h>

static int find_sides(struct sides *sides, const struct compare_options *options)
{
    size_t used = 0;
    sides->as_options = options->target && options->golden;
    sides->target = options->target ? options->target : options->words[used++];
    sides->golden = options->golden ? options->golden : options->words[used++];
    sides->result = options->words[used++];
    if (!sides->target || !sides->golden)
        return cli_usage(&cmd_compare, "%s is missing", sides->target ? "GOLDEN" : "TARGET");
    for (; used < sizeof options->words / sizeof *options->words; used++)
        if (options->words[used])
            return cli_usage(&cmd_compare, "unexpected argument '%s'", options->words[used]);
    if (options->xlsx && sides->result && !cli_ends_with(sides->result, ".xlsx"))
        return cli_usage(&cmd_compare, "--xlsx, but the result file is called '%s'", sides->result);
    if (options->output && sides->result)
        return cli_usage(&cmd_compare, "give either RESULT or --output_path, not both");
    return CLI_OK;
}

/* Dump trees under the rules of a profile. */
static int compare_general(const struct compare_options *options, const struct sides *sides,
                           const struct plumb_general_places *places)
{
    struct general_request request = {
        .view = &options->view,
        .target = sides->target,
        .golden = sides->golden,
        .result = sides->result,
        .folder = options->output,
        .page = options->report,
        .to_file = compare_to_file(options, sides),
        .xlsx = options->xlsx,
        .quiet = options->quiet,
        .options = {.fuzzy = options->fuzzy,
                    .cell_map = options->cell_map,
                    .data_map = options->data_map,
                    .layer_map = options->layer_map,
                    .api_map = options->api_map},
    };
    return general_run(places, &request);
}

/* The first node that differs, across ranks. */
static int analyze_differences(const struct compare_options *options, const struct sides *sides)
{
    if (sides->result)
        return cli_usage(&cmd_compare,
                         "-da writes files of its own: give a folder with -o, not '%s'",
                         sides->result);
    if (options->report)
        return cli_usage(&cmd_compare, "--report has no effect on -da");
    if (compare_wants_shards(options))
        return cli_usage(&cmd_compare, "--shards has no effect on -da");
    struct diff_request request = {
        .target = sides->target,
        .golden = sides->golden,
        .folder = options->output,
        .rules = profile_chosen(options->rules),
        .quiet = options->quiet,
        .pairing = {.fuzzy = options->fuzzy,
                    .cell_map = options->cell_map,
                    .data_map = options->data_map,
                    .layer_map = options->layer_map,
                    .api_map = options->api_map},
    };
    return diff_analyze_run(&request);
}

/* Dumps of compiled graphs. */
static int compare_torchair(const struct compare_options *options, const struct sides *sides)
{
    static const enum plumb_severity least[] = {
        [ONLY_FAIL] = PLUMB_FAILED, [ONLY_SUSPICIOUS] = PLUMB_SUSPICIOUS};
    struct arena arena = {0};
    struct torchair_request request = {
        .view = &options->view,
        .target = sides->target,
        .golden = sides->golden,
        .result = sides->result,
        .folder = options->output,
        .page = options->report,
        .to_file = compare_to_file(options, sides),
        .xlsx = options->xlsx,
        .quiet = options->quiet,
        .digest = compare_may_digest(options),
        .all = options->all,
        .only = options->only < 0 ? -1 : (int)least[options->only],
        .options = {.rules = profile_chosen(options->rules),
                    .columns = compare_columns(options),
                    .standard = options->standard,
                    .metrics = options->metrics,
                    .wide = options->view.wide},
    };
    int status = CLI_UNUSABLE;
    request.options.settings = compare_settings(options, &arena, &request.options.settings_count);
    if (request.options.settings)
        status = torchair_run(&request);
    else
        cli_message("out of memory");
    arena_free(&arena);
    return status;
}

/* Is it for the room of graph dumps? Two FX dumps are plain folders, too, and stay so when options
 * say how to pair them. */
static bool are_graph_dumps(const struct compare_options *options, const struct sides *sides)
{
    if (options->mode == MODE_TORCHAIR || plumb_torchair_recognise(sides->target))
        return true;
    bool paired = options->match != PLUMB_PAIR_AUTO || options->fuzzy || options->map ||
                  options->data_map || options->cell_map;
    return !paired && plumb_torchair_recognise_fx(sides->target) &&
           (plumb_torchair_recognise_fx(sides->golden) || plumb_torchair_recognise(sides->golden));
}

/* Counts what is new or worse, and says so where people look. */
static enum plumb_code ask_accepted(const struct cli_baseline *baseline,
                                    const struct compare_options *options, uint64_t *changed,
                                    struct plumb_error *err)
{
    enum { CHANGES_SHOWN = 20 }; /* of a kind */
    struct plumb_baseline_diff *diff = NULL;
    enum plumb_code code = plumb_baseline_compare(baseline->accepted, baseline->found, &diff, err);
    if (code)
        return code;
    *changed = diff->count[PLUMB_STANDING_NEW] + diff->count[PLUMB_STANDING_WORSE];
    char *text = plumb_baseline_diff_text(diff, CHANGES_SHOWN);
    plumb_baseline_diff_free(diff);
    if (text && !options->quiet)
        notes_close(text, cli_is_machine_format(options->view.format) ? stderr : stdout);
    code = text ? PLUMB_OK : plumb_no_memory(err);
    free(text);
    return code;
}

/* With a baseline, what is new or worse fails in place of faults. */
static enum plumb_code ask_baseline(struct found *found, const struct compare_options *options,
                                    struct plumb_error *err)
{
    uint64_t changed = 0;
    if (!found->baseline.found)
        return PLUMB_OK;
    enum plumb_code code = found->baseline.accepted
                               ? ask_accepted(&found->baseline, options, &changed, err)
                               : PLUMB_OK;
    found->bad = found->broken + changed;
    return code ? code : cli_baseline_write(&found->baseline, err);
}

/* Who asked for second opinions and got none must not take that for success. */
static int status_of(const struct compare_options *options, const struct found *found)
{
    if (options->verdict == PLUMB_BY_RULES || found->judged)
        return found->bad ? CLI_BAD : CLI_OK;
    cli_message(
        "no result could be judged: --verdict %s takes dumps of tensors (dump.json, level L1 "
        "or mix), whose calls can be computed again",
        compare_verdict_words[options->verdict]);
    return CLI_UNUSABLE;
}

static enum plumb_code compare_judged(const struct compare_options *options,
                                      const struct sides *sides, struct found *found,
                                      struct plumb_error *err)
{
    const struct plumb_baseline_options judged = {.seed = compare_seed(options),
                                                  .arithmetic = options->arithmetic};
    enum plumb_code code = cli_baseline_begin(&found->baseline, &judged, err);
    if (!code)
        code = compare_runs(options, sides, found, err);
    return code || !found->judged ? code : ask_baseline(found, options, err);
}

static int run_compare(const void *context)
{
    const struct compare_options *options = context;
    struct plumb_error err;
    struct sides sides = {0};
    struct found found = {
        .baseline = {.read_path = options->baseline, .write_path = options->write_baseline}};
    int status = find_sides(&sides, options);
    cli_keep_blocks();
    if (!status)
        status = compare_check_verdict(options);
    if (!status)
        status = compare_check_junit(options);
    if (status)
        return status;
    if (cli_helping)
        return compare_help(options, &sides);
    if (options->diff_analyze)
        return analyze_differences(options, &sides);
    status = CLI_UNUSABLE;
    enum plumb_code code = sides.result ? cli_check_ending(sides.result, &err) : PLUMB_OK;
    if (!code && options->output)
        code = folder_make(options->output, &err);
    if (!code && are_graph_dumps(options, &sides)) {
        int refused = compare_refuse_graphs(options);
        return refused ? refused : compare_torchair(options, &sides);
    }
    if (!code && profile_chosen(options->rules)) {
        struct plumb_general_places places;
        code = plumb_general_find(&places, sides.target, sides.golden, &err);
        if (!code) {
            status = compare_refuse_profile(options);
            if (!status)
                status = compare_general(options, &sides, &places);
            plumb_general_places_free(&places);
            return status;
        }
        if (code == PLUMB_E_UNSUPPORTED) /* no dump trees: not a matter of these rules */
            code = PLUMB_OK;
    }
    if (!code)
        code = compare_judged(options, &sides, &found, &err);
    if (code)
        cli_report(&err);
    else
        status = status_of(options, &found);
    cli_baseline_free(&found.baseline);
    return status;
}

const struct args_command cmd_compare = {
    .name = "compare",
    .summary = "show where two runs stop agreeing",
    .usage = "TARGET GOLDEN [RESULT] [options]\n-tp TARGET -gp GOLDEN [-o DIR] [options]",
    .about =
        "Pairs the tensors of two runs by name, compares each pair, judges it, and shows one "
        "row per pair. Tensors without a partner are listed at the end. A terminal gets a digest "
        "of 40 rows and more: counts, the first failure, the worst rows, kinds of trouble.",
    .sets = compare_sets,
    .examples = compare_examples,
    .exits =
        "0 when everything passes; with --verdict expected when no judged call is a fault\n"
        "1 when something fails, has no partner, or cannot be read; with --verdict expected or "
        "both when a call is a fault\n"
        "2 when the input or the command line is unusable, or no call could be judged that "
        "should have been",
    .size = sizeof(struct compare_options),
    .run = run_compare,
};
