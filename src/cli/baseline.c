/* --baseline and --write-baseline, as the commands share them. */
#include "cli/baseline.h"

#include "cli/cli.h"

#include <stdlib.h>

enum { CHANGES_SHOWN = 20 }; /* of a kind */

enum plumb_code cli_baseline_begin(struct cli_baseline *baseline,
                                   const struct plumb_baseline_options *options,
                                   struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    if (baseline->read_path)
        code = plumb_baseline_read(baseline->read_path, options, &baseline->accepted, err);
    if (!code && (baseline->read_path || baseline->write_path))
        code = plumb_baseline_new(options, &baseline->found, err);
    return code;
}

enum plumb_code cli_baseline_compare(const struct cli_baseline *baseline, uint64_t *bad,
                                     struct plumb_error *err)
{
    struct plumb_baseline_diff *diff = NULL;
    enum plumb_code code = plumb_baseline_compare(baseline->accepted, baseline->found, &diff, err);
    if (code)
        return code;
    *bad = diff->count[PLUMB_STANDING_NEW] + diff->count[PLUMB_STANDING_WORSE];
    char *text = plumb_baseline_diff_text(diff, CHANGES_SHOWN);
    plumb_baseline_diff_free(diff);
    if (!text)
        return plumb_no_memory(err);
    cli_print(text);
    free(text);
    return PLUMB_OK;
}

enum plumb_code cli_baseline_write(const struct cli_baseline *baseline, struct plumb_error *err)
{
    if (!baseline->write_path)
        return PLUMB_OK;
    const enum plumb_code code = plumb_baseline_write(baseline->found, baseline->write_path, err);
    if (!code)
        cli_message("%s: deviations accepted from now on: %zu", baseline->write_path,
                    plumb_baseline_count(baseline->found));
    return code;
}

void cli_baseline_free(struct cli_baseline *baseline)
{
    plumb_baseline_free(baseline->accepted);
    plumb_baseline_free(baseline->found);
    *baseline = (struct cli_baseline){0};
}
