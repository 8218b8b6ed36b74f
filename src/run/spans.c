/* Which records of a run are of which rank, and what there is of its tensors: found once, since
 * ranks are compared one after the other. */
#include "run/run.h"

bool record_is_tensor(const struct plumb_record *record)
{
    return !record->recorded || record->recorded->tensor;
}

bool record_has_payload(const struct plumb_record *record)
{
    return !record->absent && record_is_tensor(record);
}

bool record_has_statistics(const struct plumb_record *record)
{
    if (!record->recorded || !record->recorded->tensor)
        return false;
    const struct plumb_kept *kept = plumb_recorded_kept(record->recorded);
    return plumb_recorded_has_statistics(record->recorded) || (kept && kept->sketch);
}

bool record_has_checksum(const struct plumb_record *record)
{
    return record->recorded && record->recorded->tensor && record->recorded->checksum;
}

static struct stock take_stock(const struct plumb_run *run)
{
    struct stock stock = {0};
    for (size_t i = 0; i < run->listing.count; i++) {
        const struct plumb_record *record = &run->listing.records[i];
        bool lost = record->error && !record->recorded && record->absent;
        if (lost || !record_is_tensor(record))
            continue;
        stock.tensors++;
        stock.payloads += record_has_payload(record);
        stock.statistics += record_has_statistics(record);
        /* What was condensed has a checksum besides; statistics say more. */
        stock.checksums +=
            record_has_checksum(record) &&
            !(record->recorded->exact && (record_has_statistics(record) || !record->count));
    }
    return stock;
}

struct stock run_stock(const struct plumb_run *run)
{
    return run->spans ? run->stock : take_stock(run);
}

enum plumb_code spans_list(struct plumb_run *run)
{
    const struct plumb_record *records = run->listing.records;
    const size_t count = run->listing.count;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += !i || records[i].rank != records[i - 1].rank || records[i].step != records[i - 1].step;
    run->spans = arena_array(&run->arena, n + 1, sizeof *run->spans);
    if (!run->spans)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        if (!i || records[i].rank != records[i - 1].rank || records[i].step != records[i - 1].step)
            run->spans[run->span_count++] = (struct span){.rank = records[i].rank, .first = i};
        run->spans[run->span_count - 1].count++;
    }
    run->stock = take_stock(run);
    return PLUMB_OK;
}
