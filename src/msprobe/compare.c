/* The general comparison of two dump trees: its steps, one after the other. */
#define _GNU_SOURCE
#include "msprobe/compare.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

static enum plumb_code check_tasks(const struct general *general, struct plumb_error *err)
{
    static const char *const names[] = {"tensors", "statistics", "checksums"};
    const struct dump_tree *target = &general->target, *golden = &general->golden;
    if (target->task == golden->task)
        return PLUMB_OK;
    return plumb_fail(err, PLUMB_E_ARG,
                      "one side recorded %s, the other %s; the rules of msprobe need the same on "
                      "both, plumb's own do not",
                      names[target->task], names[golden->task]);
}

static void collect_notes(struct plumb_general *out, const struct general *general)
{
    struct buf text = {0};
    for (unsigned side = 0; side < 2; side++) {
        const struct dump_tree *tree = side ? &general->golden : &general->target;
        for (size_t i = 0; i < tree->warning_count; i++)
            buf_printf(&text, "%s\n", tree->warnings[i]);
    }
    if (text.failed) /* notes are no reason to lose the table */
        buf_free(&text);
    else
        out->notes = text.data;
}

enum plumb_code plumb_general_compare(struct plumb_general *out, const char *target_json,
                                      const char *golden_json,
                                      const struct plumb_general_options *options,
                                      struct plumb_error *err)
{
    *out = (struct plumb_general){0};
    struct general general = {.options = options};
    enum plumb_code code = dump_open(&general.target, target_json, err);
    if (code)
        return code;
    code = dump_open(&general.golden, golden_json, err);
    if (code) {
        dump_close(&general.target);
        return code;
    }
    code = check_tasks(&general, err);
    if (!code)
        code = general_match(&general, err);
    if (!code && general.target.task == DUMP_TENSOR)
        code = general_metrics(&general, err);
    else if (!code)
        general_differences(&general);
    if (code)
        goto out;
    general_judge(&general);
    code = general_table(&out->table, &general, err);
    out->rows = general.count;
    for (size_t i = 0; i < general.count; i++) {
        enum plumb_severity severity = general_severity(&general.pairs[i]);
        out->unmatched += general.pairs[i].golden == GENERAL_NONE;
        out->errors += severity == PLUMB_FAILED;
        out->warnings += severity == PLUMB_SUSPICIOUS;
    }
    collect_notes(out, &general);
out:
    out->mapping = general.mapping;
    if (code)
        plumb_general_free(out);
    free(general.pairs);
    arena_free(&general.arena);
    dump_close(&general.golden);
    dump_close(&general.target);
    return code;
}

void plumb_general_free(struct plumb_general *general)
{
    plumb_table_free(general->table);
    free(general->notes);
    free(general->mapping);
    *general = (struct plumb_general){0};
}
