/* What a page says of the call that gave its tensor. */
#include "base/shell.h"
#include "run/run.h"
#include "task/compare/pages.h"

#include <string.h>

/* What the capture wrote down of one argument: "input.0 float32 [2, 3]", "kwargs.dim -1". */
static void put_argument(struct buf *out, const struct plumb_record *record)
{
    const struct plumb_recorded *is = record->recorded;
    const char *rest = record->name + strlen(is->api);
    buf_printf(out, "%s%s ", out->size ? ", " : "", *rest == '.' ? rest + 1 : rest);
    if (is->tensor)
        buf_printf(out, "%s %s", is->dtype ? is->dtype : "tensor", is->shape ? is->shape : "");
    else
        buf_text(out, is->value ? is->value : "None");
}

void pages_arguments(struct buf *out, const struct plumb_run *run, size_t number)
{
    enum { FARTHEST = 256 };
    const struct plumb_record *of = plumb_run_record(run, number);
    const char *api = of->recorded ? of->recorded->api : NULL;
    const size_t count = plumb_run_count(run), first = number < FARTHEST ? 0 : number - FARTHEST;
    for (size_t k = first; api && k < count && k < number + FARTHEST; k++) {
        const struct plumb_record *is = plumb_run_record(run, k);
        const bool same = is->recorded && is->recorded->api == api && is->rank == of->rank &&
                          is->step == of->step && strncmp(is->name, api, strlen(api)) == 0;
        if (same && !strstr(is->name + strlen(api), "output"))
            put_argument(out, is);
    }
}

void pages_command(struct buf *out, const struct plumb_run *run, const struct plumb_record *record)
{
    static const char *const endings[] = {".forward", ".backward"};
    const char *api = record->recorded ? record->recorded->api : NULL, *dump = NULL;
    for (size_t t = 0; t < run->tree_count && !dump; t++)
        if (run->trees[t].step == record->step && run->trees[t].rank == record->rank &&
            !run->trees[t].debug)
            dump = run->trees[t].path;
    if (!api || !dump || strncmp(api, "Module.", 7) == 0)
        return;
    size_t length = strlen(api);
    for (int k = 0; k < 2; k++) {
        const size_t tail = strlen(endings[k]);
        if (length > tail && strcmp(api + length - tail, endings[k]) == 0)
            length -= tail;
    }
    shell_capsule(out, dump, api, length);
}
