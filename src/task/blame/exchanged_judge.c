/* What ranks got from an exchange, computed again from what all of them put in. */
#include "task/blame/exchanged_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096 };

bool opened_load(struct opened *o, const struct plumb_run *run, size_t record, struct arena *arena,
                 const char **why)
{
    struct plumb_error err;
    if (plumb_run_load(run, record, &o->payload, &err)) {
        *why = verdict_reason(arena, &err);
        return false;
    }
    o->record = record + 1;
    plumb_file_guard_enter(&o->guard, &o->payload.file);
    return true;
}

bool opened_close(struct opened *o)
{
    if (!o->record)
        return true;
    const bool hit = plumb_file_guard_leave(&o->guard);
    plumb_payload_release(&o->payload);
    o->record = 0;
    return !hit;
}

struct work {
    const struct exchanged *x;
    const struct plumb_run *run;
    struct arena *arena;
    struct terms *terms; /* of a block */
    double *values;
};

static void give_up(struct exchanged_verdict *v, const char *why)
{
    v->unreadable = true;
    v->why = why;
}

/* ---- Elements -------------------------------------------------------------------------------- */

/* Adds up a block of a part: elements [at, at + count). */
static void add_terms(struct work *w, const struct exchanged_part *part, const struct opened *terms,
                      uint64_t at, size_t count)
{
    const size_t numbers = count * plumb_dtype_parts(terms[0].payload.tensor.dtype);
    memset(w->terms, 0, numbers * sizeof *w->terms);
    for (size_t k = 0; k < part->n; k++) {
        plumb_tensor_to_f64(&terms[k].payload.tensor, part->terms[k].at + at, count, w->values);
        for (size_t i = 0; i < numbers; i++)
            terms_add(&w->terms[i], w->x->op, w->values[i], k == 0);
    }
}

static void compare_block(struct work *w, const struct exchanged_part *part,
                          const struct plumb_tensor *result, uint64_t at, size_t count,
                          struct exchanged_verdict *v)
{
    const unsigned parts = plumb_dtype_parts(result->dtype);
    plumb_tensor_to_f64(result, part->at + at, count, w->values);
    for (size_t i = 0; i < count * parts; i++) {
        const double excess =
            terms_excess(&w->terms[i], w->x->op, part->n, w->values[i], result->dtype);
        if (isnan(excess))
            continue;
        v->seen++;
        v->off += excess > EXCHANGED_LIMIT;
        v->exact &= excess == 0;
        if (excess > v->excess) {
            v->excess = excess;
            v->place = part->at + at + i / parts;
            v->record = part->record;
            v->got = w->values[i];
            v->expected = terms_expected(&w->terms[i], w->x->op, part->n);
        }
    }
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Parts that are made of the same terms: an all_reduce gives all ranks the same. */
struct batch {
    const struct exchanged_part *first;
    const struct exchanged_part *const *parts;
    struct exchanged_verdict *const *verdicts;
    size_t n;
    struct opened *terms, *results;
};

static const char *open_terms(struct work *w, struct batch *b)
{
    const char *why = NULL;
    for (size_t k = 0; k < b->first->n && !why; k++)
        if (opened_load(&b->terms[k], w->run, b->first->terms[k].record, w->arena, &why) &&
            b->terms[k].payload.tensor.dtype != b->terms[0].payload.tensor.dtype)
            why = "ranks put in different types";
    return why;
}

static void open_results(struct work *w, struct batch *b)
{
    for (size_t r = 0; r < b->n; r++) {
        const char *why = NULL;
        if (!opened_load(&b->results[r], w->run, b->parts[r]->record, w->arena, &why))
            give_up(b->verdicts[r], why);
        else if (b->results[r].payload.tensor.dtype != b->terms[0].payload.tensor.dtype)
            give_up(b->verdicts[r], "what came out has another type than what went in");
    }
}

static void judge_batch(struct work *w, struct batch *b)
{
    const char *why = open_terms(w, b);
    for (size_t r = 0; r < b->n && why; r++)
        give_up(b->verdicts[r], why);
    if (!why) {
        open_results(w, b);
        const size_t step = BLOCK / plumb_dtype_parts(b->terms[0].payload.tensor.dtype);
        for (uint64_t at = 0; at < b->first->count; at += step) {
            const uint64_t left = b->first->count - at;
            const size_t count = left < step ? (size_t)left : step;
            add_terms(w, b->first, b->terms, at, count);
            for (size_t r = 0; r < b->n; r++)
                if (!b->verdicts[r]->unreadable)
                    compare_block(w, b->parts[r], &b->results[r].payload.tensor, at, count,
                                  b->verdicts[r]);
        }
        for (size_t r = b->n; r-- > 0;)
            if (!opened_close(&b->results[r]))
                give_up(b->verdicts[r], "its file was cut short while it was read");
    }
    bool whole = true;
    for (size_t k = b->first->n; k-- > 0;)
        whole &= opened_close(&b->terms[k]);
    for (size_t r = 0; r < b->n && !whole; r++)
        give_up(b->verdicts[r], "a file was cut short while it was read");
}

/* Parts of results in the order of their terms, so that equal ones stand together. */
struct entry {
    const struct exchanged_part *part;
    struct exchanged_verdict *verdict;
};

static bool same_terms(const struct exchanged_part *a, const struct exchanged_part *b)
{
    return a->terms == b->terms && a->n == b->n && a->count == b->count;
}

static int by_terms(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const uintptr_t p = (uintptr_t)x->part->terms, q = (uintptr_t)y->part->terms;
    return p != q ? (p < q ? -1 : 1) : x->part < y->part ? -1 : x->part > y->part;
}

static struct entry *list_parts(const struct exchanged *x, struct exchanged_verdict *verdicts,
                                size_t *count)
{
    *count = 0;
    for (size_t r = 0; r < x->n_results; r++)
        *count += x->results[r].n;
    struct entry *list = malloc((*count + 1) * sizeof *list);
    size_t n = 0;
    for (size_t r = 0; list && r < x->n_results; r++)
        for (size_t k = 0; k < x->results[r].n; k++)
            list[n++] = (struct entry){&x->results[r].parts[k], &verdicts[r]};
    if (list)
        qsort(list, n, sizeof *list, by_terms);
    return list;
}

static size_t most_terms(const struct exchanged *x)
{
    size_t most = 1;
    for (size_t r = 0; r < x->n_results; r++)
        for (size_t k = 0; k < x->results[r].n; k++)
            most = x->results[r].parts[k].n > most ? x->results[r].parts[k].n : most;
    return most;
}

enum plumb_code exchanged_judge(const struct exchanged *x, const struct plumb_run *run,
                                struct arena *arena, struct exchanged_verdict *verdicts)
{
    struct work w = {.x = x, .run = run, .arena = arena};
    size_t count = 0;
    for (size_t r = 0; r < x->n_results; r++)
        verdicts[r] = (struct exchanged_verdict){.exact = true, .pattern = ""};
    struct entry *list = list_parts(x, verdicts, &count);
    const struct exchanged_part **parts = malloc((count + 1) * sizeof *parts);
    struct exchanged_verdict **theirs = malloc((count + 1) * sizeof *theirs);
    struct opened *results = calloc(count + 1, sizeof *results);
    struct opened *terms = calloc(most_terms(x), sizeof *terms);
    w.terms = malloc(BLOCK * sizeof *w.terms);
    w.values = malloc(BLOCK * sizeof *w.values);
    const bool fine = list && parts && theirs && results && terms && w.terms && w.values;
    for (size_t i = 0, end; i < count && fine; i = end) {
        for (end = i; end < count && same_terms(list[end].part, list[i].part); end++) {
            parts[end - i] = list[end].part;
            theirs[end - i] = list[end].verdict;
        }
        judge_batch(&w, &(struct batch){.first = list[i].part,
                                        .parts = parts,
                                        .verdicts = theirs,
                                        .n = end - i,
                                        .terms = terms,
                                        .results = results});
    }
    for (size_t r = 0; r < x->n_results && fine; r++)
        if (!verdicts[r].unreadable && verdicts[r].excess > EXCHANGED_LIMIT)
            verdicts[r].pattern = exchanged_guess(
                x, &x->results[r].parts[0], x->members[x->results[r].member].rank, run, arena);
    free(list);
    free(parts);
    free(theirs);
    free(results);
    free(terms);
    free(w.terms);
    free(w.values);
    return fine ? PLUMB_OK : PLUMB_E_NOMEM;
}
