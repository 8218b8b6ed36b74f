/* What processes of plumb-mpi send each other: whatever is in it, it is refused or understood, and
 * a state that was understood can be merged. The first byte says what it is. */
#include "crew/message.h"
#include "metric/pack.h"
#include "task/precheck/entry_pack.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_metrics(struct pack *pack)
{
    struct plumb_metric_spec spec = {0};
    struct plumb_metrics metrics;
    metric_pack_spec(pack, &spec);
    struct plumb_metric_state *state = plumb_metric_new(&spec, PLUMB_F32, PLUMB_BF16, 1000);
    struct plumb_metric_state *sum = plumb_metric_new(&spec, PLUMB_F32, PLUMB_BF16, 1000);
    if (!state || !sum)
        abort();
    metric_pack_state(pack, state);
    plumb_metric_merge(sum, state);
    plumb_metric_merge(sum, state);
    plumb_metric_finish(sum, &metrics);
    plumb_metric_free(state);
    plumb_metric_free(sum);
}

static void read_kept(struct pack *pack)
{
    const int64_t shape[] = {40, 300};
    struct plumb_tensor tensor;
    struct kept_state kept, sum;
    struct plumb_sketch sketch;
    if (plumb_tensor_init(&tensor, PLUMB_F32, 2, shape, NULL) ||
        !kept_begin(&kept, &tensor, KEPT_HASH | KEPT_SKETCH | KEPT_SKETCH1) ||
        !kept_begin(&sum, &tensor, KEPT_HASH | KEPT_SKETCH | KEPT_SKETCH1))
        abort();
    metric_pack_kept(pack, &kept);
    kept_merge(&sum, &kept);
    sketch_finish(sum.sketch, &sketch);
    sketch1_finish(sum.sketch1, &sketch);
    kept_end(&kept);
    kept_end(&sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pack pack = pack_reader(size ? data + 1 : data, size ? size - 1 : 0);
    struct arena arena = {0};
    struct message message = {0};
    struct journal_entry entry = {0};
    if (!size)
        return 0;
    if (data[0] % 4 == 0)
        message_pack(&pack, &message);
    else if (data[0] % 4 == 1)
        entry_pack(&pack, &entry, &arena);
    else if (data[0] % 4 == 2)
        read_metrics(&pack);
    else
        read_kept(&pack);
    if (data[0] % 4 == 1 && pack_good(&pack) && !entry.name)
        abort();
    arena_free(&arena);
    return 0;
}
