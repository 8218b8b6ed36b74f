/* Operators that drop elements at random. Which ones the device dropped is its own affair; what it
 * left of them is not. So the reference runs twice, keeping everything and dropping everything, and
 * for each element the one that the device is nearer to is what it should have computed, in the
 * results and in the gradients alike. */
#include "task/precheck/work_parts.h"

#include <math.h>
#include <string.h>

/* Five standard deviations of the share of as many draws as this are 10 %. */
enum { ENOUGH = 1250, BLOCK = 512 };

/* Unknown: both would give the same; in doubt: almost the same. */
enum choice { UNKNOWN, KEPT, DROPPED, IN_DOUBT = 4 };

struct mask {
    uint8_t *choices; /* of the elements of the first result */
    uint64_t n;
    uint64_t known, dropped;
};

static uint32_t keep_all(void *state)
{
    (void)state;
    return 0;
}

static uint32_t drop_all(void *state)
{
    (void)state;
    return UINT32_MAX;
}

/* ---- Choosing -------------------------------------------------------------------------------- */

static uint8_t nearer(double value, double kept, double dropped)
{
    if (kept == dropped || (isnan(kept) && isnan(dropped)))
        return UNKNOWN;
    const bool is_dropped =
        value == dropped || (value != kept && fabs(value - kept) > fabs(value - dropped));
    const bool doubt = fabs(kept - dropped) < 0.05 * fmax(fabs(kept), fabs(dropped));
    return (uint8_t)((is_dropped ? DROPPED : KEPT) | (doubt ? IN_DOUBT : 0));
}

/* One more opinion of an element. */
static uint8_t settled(uint8_t before, uint8_t now)
{
    const bool open = before == UNKNOWN || (before & IN_DOUBT && now && !(now & IN_DOUBT));
    return open ? now : before;
}

static bool fits(const struct plumb_arg *arg, uint64_t n)
{
    return arg->kind == PLUMB_ARG_TENSOR && arg->tensor->count == n &&
           plumb_dtype_parts(arg->tensor->dtype) == 1;
}

/* Settles what is unknown so far by one more tensor. */
static void look(struct mask *mask, const struct plumb_arg *got, const struct plumb_arg *kept,
                 const struct plumb_arg *dropped)
{
    if (!fits(got, mask->n) || !fits(kept, mask->n) || !fits(dropped, mask->n))
        return;
    double values[3][BLOCK];
    for (uint64_t at = 0; at < mask->n; at += BLOCK) {
        const size_t n = mask->n - at < BLOCK ? (size_t)(mask->n - at) : BLOCK;
        plumb_tensor_to_f64(got->tensor, at, n, values[0]);
        plumb_tensor_to_f64(kept->tensor, at, n, values[1]);
        plumb_tensor_to_f64(dropped->tensor, at, n, values[2]);
        for (size_t i = 0; i < n; i++)
            mask->choices[at + i] =
                settled(mask->choices[at + i], nearer(values[0][i], values[1][i], values[2][i]));
    }
}

static bool find_mask(struct mask *mask, const struct plumb_result *got,
                      const struct plumb_result *kept, const struct plumb_result *dropped,
                      struct arena *arena)
{
    *mask = (struct mask){.n = kept->outputs[0].tensor->count};
    mask->choices = arena_array(arena, mask->n + 1, 1);
    if (!mask->choices)
        return false;
    memset(mask->choices, UNKNOWN, mask->n + 1);
    for (size_t k = 0; k < kept->n_outputs && k < got->n_outputs && k < dropped->n_outputs; k++)
        look(mask, &got->outputs[k], &kept->outputs[k], &dropped->outputs[k]);
    for (size_t k = 0; k < kept->n_grads && k < got->n_grads && k < dropped->n_grads; k++)
        look(mask, &got->grads[k], &kept->grads[k], &dropped->grads[k]);
    for (uint64_t i = 0; i < mask->n; i++) {
        mask->known += mask->choices[i] == KEPT || mask->choices[i] == DROPPED;
        mask->dropped += mask->choices[i] == DROPPED;
    }
    return true;
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
        memcpy(bytes + i * size, from[(mask->choices[i] & DROPPED) != 0] + i * size, size);
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

/* Elements that share a draw: one, or those of a channel. */
static uint64_t elements_a_draw(const char *api, const struct plumb_tensor *x)
{
    const bool one = strstr(api, "1d") != NULL, three = strstr(api, "3d") != NULL;
    if (!one && !three && !strstr(api, "2d") && !strstr(api, "feature"))
        return 1;
    const unsigned first = (one && x->rank == 2) || (three && x->rank == 4) ? 1 : 2;
    uint64_t n = 1;
    for (unsigned d = first; d < x->rank; d++)
        n *= (uint64_t)x->shape[d];
    return n ? n : 1;
}

static double share(const struct mask *mask)
{
    return mask->known ? (double)mask->dropped / (double)mask->known : 0;
}

/* Channels of which only a part was dropped. */
static uint64_t torn(const struct mask *mask, uint64_t each)
{
    uint64_t count = 0;
    for (uint64_t at = 0; each > 1 && at + each <= mask->n; at += each) {
        bool kept = false, dropped = false;
        for (uint64_t i = at; i < at + each; i++) {
            kept |= mask->choices[i] == KEPT;
            dropped |= mask->choices[i] == DROPPED;
        }
        count += kept && dropped;
    }
    return count;
}

/* Sets what is wrong with the mask, if anything is. False when out of memory. */
static bool judge_mask(struct work *w, const struct mask *got, const struct mask *own)
{
    const struct standard_set *rules = w->shared->judge.rules;
    const uint64_t each = elements_a_draw(w->from.api, w->actual.outputs[0].tensor);
    const uint64_t parts = torn(got, each);
    const bool by_itself = !w->device->native;
    if (parts) {
        w->fault = arena_printf(w->arena, "%llu of %llu channels were dropped in part",
                                (unsigned long long)parts, (unsigned long long)(got->n / each));
        return w->fault != NULL;
    }
    const double gap = fabs(share(got) - share(own));
    if ((double)got->n < rules->dropout_count || (by_itself && got->known / each < ENOUGH) ||
        gap < rules->dropout_gap)
        return true;
    w->fault = arena_printf(w->arena,
                            "a share of %.4g was dropped, by the reference %.4g; the difference is "
                            "not below %g",
                            share(got), share(own), rules->dropout_gap);
    return w->fault != NULL;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static enum plumb_code run_with(struct work *w, uint32_t (*next)(void *), struct plumb_result *out,
                                struct plumb_error *err)
{
    const struct plumb_draws draws = {next, NULL};
    const struct plumb_result before = w->bench;
    const struct plumb_draws *usual = w->raised.draws;
    w->bench = (struct plumb_result){0};
    w->raised.draws = &draws;
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
    enum plumb_code code = run_with(w, keep_all, &kept, err);
    if (!code)
        code = run_with(w, drop_all, &dropped, err);
    if (!code && kept.n_outputs && kept.outputs[0].kind == PLUMB_ARG_TENSOR) {
        if (!find_mask(&got, &w->actual, &kept, &dropped, &w->scratch) ||
            !find_mask(&own, &w->bench, &kept, &dropped, &w->scratch) || !judge_mask(w, &got, &own))
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
    const bool few = bench->kind == PLUMB_ARG_TENSOR &&
                     bench->tensor->count / elements_a_draw(w->from.api, bench->tensor) < ENOUGH;
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
