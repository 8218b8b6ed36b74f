/* Rows that fail or are suspicious and were put together from ranks: whose part is it, and is it
 * only rounding? */
#define _GNU_SOURCE
#include "base/buf.h"
#include "base/mapped.h"
#include "base/pool.h"
#include "task/compare/compare.h"
#include "task/compare/shards.h"
#include "verdict/decide.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1024 };

/* One side in parts, held against the whole of the other. */
struct inspection {
    const struct shards_whole *whole;
    struct shards_plan plan;
    struct plumb_payload other; /* the whole of the other side */
    double *energy;             /* by part: the squares of its errors */
    double *terms;              /* of sums, by number: the sizes of all terms, added up */
};

struct visit {
    struct inspection *of;
    const struct plumb_tensor *part;
    double energy;
};

static void add_piece(struct visit *v, uint64_t from, uint64_t to, size_t count)
{
    double part[2 * PIECE], other[2 * PIECE];
    const unsigned width = plumb_dtype_parts(v->part->dtype);
    plumb_tensor_to_f64(v->part, from, count, part);
    for (size_t i = 0; v->of->terms && i < count * width; i++)
        v->of->terms[to * width + i] += fabs(part[i]);
    if (v->of->terms)
        return;
    const double scale = shards_scale(v->of->whole->layout);
    plumb_tensor_to_f64(&v->of->other.tensor, to, count, other);
    for (size_t i = 0; i < count * width; i++) {
        part[i] *= scale;
        const double error = part[i] - other[i];
        if (isfinite(error))
            v->energy += error * error;
        else if (!(isnan(part[i]) && isnan(other[i])) && part[i] != other[i])
            v->energy = INFINITY;
    }
}

static void visit_box(void *context, const struct shards_box *box)
{
    for (size_t done = 0; done < box->count; done += PIECE) {
        const size_t left = box->count - done;
        add_piece(context, box->from + done, box->to + done, left < PIECE ? left : PIECE);
    }
}

static enum plumb_code visit_parts(struct inspection *in, struct plumb_error *err)
{
    const struct shards_whole *whole = in->whole;
    enum plumb_code code = PLUMB_OK;
    for (unsigned p = 0; p < whole->layout->parts && !code; p++) {
        struct plumb_payload part;
        struct plumb_file_guard guard[2];
        if (!whole->use[p] || !plumb_run_record(whole->run, whole->records[p])->count ||
            plumb_run_load(whole->run, whole->records[p], &part, err))
            continue;
        struct visit visit = {.of = in, .part = &part.tensor};
        plumb_file_guard_enter(&guard[0], &part.file);
        plumb_file_guard_enter(&guard[1], &in->other.file);
        shards_boxes(&in->plan, p, &part.tensor, visit_box, &visit);
        const bool shrank = plumb_file_guard_leave(&guard[1]);
        if (plumb_file_guard_leave(&guard[0]) || shrank)
            code = mapped_fail_shrank(err);
        in->energy[p] = visit.energy;
        plumb_payload_release(&part);
    }
    return code;
}

/* "the error is in the part of rank 2": the fewest ranks that have 99 % of it. */
static char *name_ranks(const struct inspection *in, int side, bool failed)
{
    const struct shards_whole *whole = in->whole;
    double sum = 0, most = 0;
    unsigned parts = 0, named = 0;
    for (unsigned p = 0; p < whole->layout->parts; p++) {
        parts += whole->use[p];
        sum += in->energy[p];
        most = in->energy[p] > most ? in->energy[p] : most;
    }
    const double limit = isinf(sum) ? INFINITY : 0.01 * sum / (parts ? parts : 1);
    struct buf text = {0};
    for (unsigned p = 0; p < whole->layout->parts; p++)
        if (whole->use[p] && in->energy[p] > 0 && in->energy[p] >= limit)
            buf_printf(&text, "%s%" PRId64, named++ ? "," : "", whole->ranks[p]);
    struct buf out = {0};
    if (named && named == parts && failed)
        buf_printf(&out, "the error is in all parts%s", side ? " of the golden run" : "");
    else if (named && named < parts)
        buf_printf(&out, "the error is in the part%s of %srank%s %s", named > 1 ? "s" : "",
                   side ? "the golden " : "", named > 1 ? "s" : "", text.data ? text.data : "");
    buf_free(&text);
    return out.data; /* NULL: there is nothing to say */
}

/* Each term was rounded, and so was the whole of the other side; the sum was not. */
static bool only_rounding(const struct inspection *in, const struct plumb_tensor *sum,
                          double *largest)
{
    const struct shards_layout *layout = in->whole->layout;
    const struct plumb_tensor *other = &in->other.tensor;
    const struct plumb_record *part = plumb_run_record(in->whole->run, in->whole->records[0]);
    const int bits[2] = {plumb_dtype_info(part->dtype)->precision,
                         plumb_dtype_info(other->dtype)->precision};
    const double share = shards_scale(layout);
    const unsigned width = plumb_dtype_parts(sum->dtype);
    double a[2 * PIECE], b[2 * PIECE];
    *largest = 0;
    for (uint64_t at = 0; at < sum->count; at += PIECE) {
        const uint64_t left = sum->count - at;
        const size_t count = left < PIECE ? (size_t)left : PIECE;
        plumb_tensor_to_f64(sum, at, count, a);
        plumb_tensor_to_f64(other, at, count, b);
        for (size_t i = 0; i < count * width; i++) {
            const double terms = in->terms[at * width + i] * share;
            const double bound = ldexp(terms, -bits[0]) + ldexp(fabs(b[i]), -bits[1]);
            const double error = fabs(a[i] - b[i]);
            if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))
                continue;
            if (!isfinite(error) || !(error <= bound)) /* nothing rounds to infinity by itself */
                return false;
            const double ratio = bound > 0 ? error / bound : 0;
            *largest = ratio > *largest ? ratio : *largest;
        }
    }
    return true;
}

static enum plumb_code inspect_sum(struct inspection *in, const struct comparison *comparison,
                                   size_t pair, int side, struct plumb_error *err)
{
    const struct plumb_pair *p = &comparison->matching.pairs[pair];
    const enum plumb_dtype dtype = plumb_run_record(in->whole->run, in->whole->records[0])->dtype;
    struct plumb_payload sum;
    struct row *row = &comparison->rows[pair];
    double largest = 0;
    if (plumb_dtype_info(dtype)->kind != PLUMB_KIND_FLOAT)
        return PLUMB_OK;
    in->terms = calloc((size_t)in->plan.count + 1, 2 * sizeof *in->terms);
    if (!in->terms)
        return plumb_no_memory(err);
    enum plumb_code code = visit_parts(in, err);
    if (!code)
        code = plumb_run_load(comparison->run[side], side ? p->golden : p->target, &sum, err);
    if (code)
        return code;
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &in->other.file);
    const bool rounding = only_rounding(in, &sum.tensor, &largest);
    if (!plumb_file_guard_leave(&guard) && rounding) {
        char was[sizeof row->verdict.rule];
        memcpy(was, row->verdict.rule, sizeof was);
        verdict_decide(&row->verdict, PLUMB_NORMAL,
                       "within the rounding of %u terms in %s (at most %.2g of it); else: %.70s",
                       in->whole->layout->terms, plumb_dtype_info(dtype)->name, largest, was);
    }
    plumb_payload_release(&sum);
    return PLUMB_OK;
}

/* Shapes of the parts, from their records. */
static enum plumb_code plan_of(struct inspection *in, struct arena *arena, struct plumb_error *err)
{
    const unsigned count = in->whole->layout->parts;
    struct plumb_tensor *shapes = arena_array(arena, count, sizeof *shapes);
    const struct plumb_tensor **parts = arena_array(arena, count, sizeof *parts);
    in->energy = arena_array(arena, count, sizeof *in->energy);
    enum plumb_code code = shapes && parts && in->energy ? PLUMB_OK : plumb_no_memory(err);
    for (unsigned p = 0; p < count && !code; p++) {
        const struct plumb_record *record = plumb_run_record(in->whole->run, in->whole->records[p]);
        code = plumb_tensor_init(&shapes[p], record->dtype, record->ndim, record->shape, err);
        parts[p] = &shapes[p];
    }
    return code ? code : shards_plan(&in->plan, arena, in->whole->layout, parts, err);
}

/* Trouble costs the remark, not the row. */
static void inspect(const struct comparison *comparison, size_t pair, int side)
{
    const struct plumb_pair *p = &comparison->matching.pairs[pair];
    const struct shards_whole *whole =
        shards_whole_of(comparison->run[side], compare_record(comparison, pair, side));
    struct row *row = &comparison->rows[pair];
    struct arena arena = {0};
    struct plumb_error err;
    if (!whole || whole->only != UINT_MAX || row->parts || row->verdict.severity == PLUMB_NORMAL)
        return;
    struct inspection in = {.whole = whole};
    enum plumb_code code = plan_of(&in, &arena, &err);
    if (!code)
        code =
            plumb_run_load(comparison->run[!side], side ? p->target : p->golden, &in.other, &err);
    if (!code) {
        if (whole->layout->reduce != SHARDS_ONE)
            inspect_sum(&in, comparison, pair, side, &err);
        else if (!visit_parts(&in, &err))
            row->parts = name_ranks(&in, side, compare_fails(comparison, pair));
        plumb_payload_release(&in.other);
    }
    free(in.terms);
    arena_free(&arena);
}

/* A replica should have the bits of the others: that it passes beside the golden run is no
 * excuse. */
static void judge_odd(const struct comparison *comparison, size_t pair, struct row *row)
{
    const struct shards_whole *whole =
        shards_whole_of(comparison->run[0], compare_record(comparison, pair, 0));
    if (whole && whole->odd > 0 && row->verdict.severity == PLUMB_NORMAL)
        verdict_decide(&row->verdict, PLUMB_SUSPICIOUS,
                       "differs by %.2g from its replicas, which should have the same bits",
                       whole->odd);
}

/* What is odd about how a tensor was put together. */
static void judge_doubt(const struct comparison *comparison, size_t pair, struct row *row)
{
    for (int side = 0; side < 2; side++) {
        const struct shards_whole *whole =
            shards_whole_of(comparison->run[side], compare_record(comparison, pair, side));
        if (!whole || !whole->doubt)
            continue;
        const enum plumb_severity severity = whole->denied ? PLUMB_FAILED : PLUMB_SUSPICIOUS;
        if (row->verdict.severity < severity)
            verdict_decide(&row->verdict, severity, "%s%s", side ? "golden: " : "", whole->doubt);
    }
}

static void inspect_row(void *context, size_t pair, unsigned thread)
{
    const struct comparison *comparison = context;
    struct row *row = &comparison->rows[pair];
    (void)thread;
    if (!row->compared || row->basis != BY_TENSOR)
        return;
    for (int side = 0; side < 2; side++)
        inspect(comparison, pair, side);
    judge_odd(comparison, pair, row);
    judge_doubt(comparison, pair, row);
}

void compare_shards(struct comparison *comparison)
{
    const unsigned threads = comparison->options->threads;
    bool any = false;
    for (int side = 0; side < 2 && !any; side++)
        for (size_t i = 0; i < plumb_run_count(comparison->run[side]) && !any; i++)
            any = plumb_run_record(comparison->run[side], i)->layout != NULL;
    if (any)
        pool_run(threads ? threads : pool_default_threads(), comparison->matching.matched,
                 inspect_row, comparison);
}
