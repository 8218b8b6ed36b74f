/* Operators that drop elements at random. Which ones the device dropped is its own affair; what it
 * left of them is not. So the reference runs twice, keeping everything and dropping everything, and
 * for each element the one that the device is nearer to is what it should have computed, in the
 * results and in the gradients alike. */
#include "task/precheck/work_parts.h"

#include "verdict/mask.h"

#include <math.h>
#include <string.h>

/* Five standard deviations of the share of as many draws as this are 10 %. */
enum { ENOUGH = 1250 };

static bool fits(const struct plumb_arg *arg, uint64_t n)
{
    return arg->kind == PLUMB_ARG_TENSOR && arg->tensor->count == n &&
           plumb_dtype_parts(arg->tensor->dtype) == 1;
}

/* Puts the elements that were dropped into kept, which is the reference from then on. */
static bool choose(const struct mask *mask, struct plumb_arg *kept, const struct plumb_arg *dropped,
                   struct arena *arena)
{
    if (!fits(kept, mask->n) || !fits(dropped, mask->n) || !kept->tensor->dense ||
        !dropped->tensor->dense || kept->tensor->dtype != dropped->tensor->dtype)
        return true;
    const size_t size = plumb_dtype_info(kept->tensor->dtype)->bits / 8;
    struct plumb_tensor *chosen = arena_alloc(arena, sizeof *chosen);
    unsigned char *bytes = arena_array(arena, mask->n + 1, size);
    if (!chosen || !bytes)
        return false;
    const unsigned char *from[2] = {kept->tensor->data, dropped->tensor->data};
    for (uint64_t i = 0; i < mask->n; i++)
        memcpy(bytes + i * size, from[(mask->choices[i] & MASK_DROPPED) != 0] + i * size, size);
    *chosen = *kept->tensor;
    chosen->data = bytes;
    kept->tensor = chosen;
    return true;
}

static bool choose_all(const struct mask *mask, struct plumb_result *kept,
                       const struct plumb_result *dropped, struct arena *arena)
{
    bool good = true;
    for (size_t k = 0; k < kept->n_outputs && k < dropped->n_outputs && good; k++)
        good = choose(mask, &kept->outputs[k], &dropped->outputs[k], arena);
    for (size_t k = 0; k < kept->n_grads && k < dropped->n_grads && good; k++)
        good = choose(mask, &kept->grads[k], &dropped->grads[k], arena);
    return good;
}

/* ---- The mask itself ------------------------------------------------------------------------- */

/* Sets what is wrong with the mask, if anything is. False when out of memory. */
static bool judge_mask(struct work *w, const struct mask *got, const struct mask *own)
{
    const struct standard_set *rules = w->shared->judge.rules;
    const uint64_t parts = mask_torn(got);
    const bool by_itself = !w->device->native;
    if (parts) {
        w->fault =
            arena_printf(w->arena, "%llu of %llu channels were dropped in part",
                         (unsigned long long)parts, (unsigned long long)(got->n / got->each));
        return w->fault != NULL;
    }
    const double gap = fabs(mask_share(got) - mask_share(own));
    if ((double)got->n < rules->dropout_count || (by_itself && got->known / got->each < ENOUGH) ||
        gap < rules->dropout_gap)
        return true;
    w->fault = arena_printf(w->arena,
                            "a share of %.4g was dropped, by the reference %.4g; the difference is "
                            "not below %g",
                            mask_share(got), mask_share(own), rules->dropout_gap);
    return w->fault != NULL;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static enum plumb_code run_with(struct work *w, const struct plumb_draws *draws,
                                struct plumb_result *out, struct plumb_error *err)
{
    const struct plumb_result before = w->bench;
    const struct plumb_draws *usual = w->raised.draws;
    w->bench = (struct plumb_result){0};
    w->raised.draws = draws;
    enum plumb_code code = work_run_reference(w, err);
    *out = w->bench;
    w->bench = before;
    w->raised.draws = usual;
    return code;
}

static enum plumb_code compare_by_mask(struct work *w, struct journal_entry *out,
                                       struct plumb_error *err)
{
    struct plumb_result kept = {0}, dropped = {0};
    struct mask got, own;
    enum plumb_code code = run_with(w, &mask_keep_all, &kept, err);
    if (!code)
        code = run_with(w, &mask_drop_all, &dropped, err);
    if (!code && kept.n_outputs && kept.outputs[0].kind == PLUMB_ARG_TENSOR) {
        if (!mask_find(&got, w->from.api, &w->actual, &kept, &dropped, &w->scratch) ||
            !mask_find(&own, w->from.api, &w->bench, &kept, &dropped, &w->scratch) ||
            !judge_mask(w, &got, &own))
            code = work_no_memory(err);
        if (!code && !choose_all(&got, &kept, &dropped, &w->scratch))
            code = work_no_memory(err);
        const struct plumb_result first = w->bench;
        w->bench = kept;
        kept = first;
    }
    if (!code)
        code = work_compare(w, out, err);
    plumb_result_destroy(&kept);
    plumb_result_destroy(&dropped);
    return code;
}

/* Where the reference cannot be told what to drop: only how much. */
static enum plumb_code share_row(struct work *w, const char *direction,
                                 const struct plumb_arg *bench, const struct plumb_arg *device,
                                 enum check_status *status, struct plumb_error *err)
{
    struct details_row *row = work_add_row(w, direction, 0);
    if (!row)
        return work_no_memory(err);
    const bool few =
        bench->kind == PLUMB_ARG_TENSOR &&
        bench->tensor->count / mask_elements_a_draw(w->from.api, bench->tensor) < ENOUGH;
    row->status = few ? STATUS_SKIP : judge_dropout(w->shared->judge.rules, bench, device);
    row->message = few ? "too few random values to compare their share of zeros"
                   : row->status == STATUS_PASS ? "the shares of zeros are alike; values were not "
                                                  "compared, since each side drops others"
                                                : "the shares of zeros differ";
    *status = judge_rows(w->profile, row, 1);
    return PLUMB_OK;
}

static enum plumb_code compare_shares(struct work *w, struct journal_entry *out,
                                      struct plumb_error *err)
{
    out->backward = STATUS_BLANK;
    enum plumb_code code =
        share_row(w, "forward", &w->bench.outputs[0], &w->actual.outputs[0], &out->forward, err);
    if (!code && w->call.n_grads && w->bench.n_grads && w->actual.n_grads)
        code =
            share_row(w, "backward", &w->bench.grads[0], &w->actual.grads[0], &out->backward, err);
    out->rows = w->rows;
    out->n_rows = w->n_rows;
    out->message = "";
    for (size_t k = 0; k < w->n_rows; k++)
        if (w->rows[k].status == STATUS_ERROR)
            out->message = w->rows[k].message;
    return code;
}

/* No rows. */
static void compare_zeros(const struct work *w, struct journal_entry *out)
{
    const struct standard_set *rules = w->shared->judge.rules;
    out->forward = judge_dropout(rules, &w->bench.outputs[0], &w->actual.outputs[0]);
    out->backward = STATUS_BLANK;
    if (w->call.n_grads && w->bench.n_grads && w->actual.n_grads &&
        w->bench.grads[0].kind == PLUMB_ARG_TENSOR && w->actual.grads[0].kind == PLUMB_ARG_TENSOR)
        out->backward = judge_dropout(rules, &w->bench.grads[0], &w->actual.grads[0]);
}

enum plumb_code work_compare_dropout(struct work *w, struct journal_entry *out,
                                     struct plumb_error *err)
{
    if (w->profile->compare->dropout_by_zeros) {
        compare_zeros(w, out);
        return PLUMB_OK;
    }
    return w->by_fallback ? compare_shares(w, out, err) : compare_by_mask(w, out, err);
}
