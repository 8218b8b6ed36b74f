/* Calls that plumb cannot compute, and whose outputs jump: these beside the other run's. */
#include "task/blame/looks.h"

#include "pair/role.h"

#include <math.h>
#include <string.h>

/* False: it was right, or computed. */
static bool is_jump(const struct site *site)
{
    return site->is.by_jump && (site->is.word == PLUMB_WORD_FAULT || site->jumps);
}

static bool is_output(const struct plumb_record *record)
{
    size_t length;
    return !record->absent && !record->error && pair_role(record->name, &length) == ROLE_OUTPUT;
}

/* What the page is called after the call: "output.0". */
static const char *place_in(const struct plumb_record *record, const struct site *site)
{
    const size_t length = strlen(site->is.call);
    const bool begins = strncmp(record->name, site->is.call, length) == 0;
    const char *rest = begins ? record->name + length : record->name;
    return *rest == '.' || *rest == '_' ? rest + 1 : rest;
}

/* False: the files are not readable, not tensors of one shape, or memory ran out. */
static bool measure(const struct plumb_run *const run[2], const size_t record[2], struct look *look)
{
    struct plumb_payload payload[2] = {0};
    struct plumb_file_guard guard[2];
    struct plumb_error why;
    bool fine = !plumb_run_load(run[0], record[0], &payload[0], &why) &&
                !plumb_run_load(run[1], record[1], &payload[1], &why);
    if (fine) {
        plumb_file_guard_enter(&guard[0], &payload[0].file);
        plumb_file_guard_enter(&guard[1], &payload[1].file);
        fine = !plumb_detail_measure(&look->detail, &payload[0].tensor, &payload[1].tensor, &why);
        const bool shrank = plumb_file_guard_leave(&guard[1]) | plumb_file_guard_leave(&guard[0]);
        fine &= !shrank;
        for (int side = 0; side < 2; side++)
            look->dtypes[side] = plumb_dtype_info(payload[side].tensor.dtype)->name;
    }
    plumb_payload_release(&payload[0]);
    plumb_payload_release(&payload[1]);
    return fine;
}

enum plumb_code looks_beside(struct looks *looks, const struct sites *sites,
                             const struct plumb_run *target, const struct plumb_run *golden,
                             struct plumb_error *err)
{
    const struct plumb_pair_options how = {.mode = PLUMB_PAIR_AUTO};
    const struct plumb_run *const runs[] = {target, golden};
    struct plumb_matching matching;
    bool any = false;
    for (size_t k = 0; k < sites->count; k++)
        any |= is_jump(&sites->list[k]);
    const enum plumb_code code = any ? plumb_match(&matching, target, golden, &how, err) : PLUMB_OK;
    for (size_t i = 0; any && !code && i < matching.matched; i++) {
        const size_t pair[] = {matching.pairs[i].target, matching.pairs[i].golden};
        const struct plumb_record *record = plumb_run_record(target, pair[0]);
        const struct site *site = sites_of(sites, record);
        if (!site || !is_jump(site) || !is_output(record) ||
            plumb_run_record(golden, pair[1])->absent ||
            !looks_has_room(looks, site->is.word, site->is.worst))
            continue;
        struct look look = {.site = (size_t)(site - sites->list),
                            .beside = true,
                            .word = site->is.word,
                            .worst = site->is.worst,
                            .why = site->is.why,
                            .pattern = "",
                            .arithmetic = "",
                            .arguments = ""};
        const char *place = place_in(record, site);
        look.result = arena_copy(&look.arena, place, strlen(place));
        if (look.result && measure(runs, pair, &look)) {
            looks_keep(looks, &look);
        } else {
            plumb_detail_free(&look.detail);
            arena_free(&look.arena);
        }
    }
    if (any && !code)
        plumb_matching_free(&matching);
    return code;
}
