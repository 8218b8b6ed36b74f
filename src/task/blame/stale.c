/* Results that are another tensor of the run: an earlier one that was not overwritten, or an input
 * that nothing was done to. */
#include "task/blame/parts.h"

#include "pair/role.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So few numbers may agree by chance; so many are looked at before all are; so many results are
 * asked about, worst first. */
enum { LEAST_NUMBERS = 16, LEAST_DIFFERENT = 8, PROBES = 64, MOST_FAULTS = 64 };

struct wrong {
    struct site *site;
    size_t record; /* the result */
    size_t first;  /* record of its call */
    uint64_t count;
    enum plumb_dtype dtype;
    double probe[PROBES];
    size_t found; /* record that it is equal to, + 1; 0: none */
    int rank;     /* how well that explains it */
};

struct stale {
    const struct plumb_run *run;
    struct wrong *list;
    size_t n;
};

static enum pair_role role_of(const struct plumb_record *record, size_t *length)
{
    const enum pair_role role = pair_role(record->name, length);
    if (record->recorded)
        *length = strlen(record->recorded->api);
    return role;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static bool is_real(enum plumb_dtype dtype)
{
    return plumb_dtype_info(dtype)->kind == PLUMB_KIND_FLOAT && plumb_dtype_info(dtype)->bits >= 8;
}

static uint64_t place_of(uint64_t count, unsigned k)
{
    return count <= PROBES ? k : count / PROBES * k + k % (count / PROBES);
}

static unsigned probes_of(uint64_t count)
{
    return count < PROBES ? (unsigned)count : PROBES;
}

static bool read_probes(const struct plumb_run *run, size_t record, double out[PROBES])
{
    struct plumb_payload payload = {0};
    struct plumb_error why;
    if (plumb_run_load(run, record, &payload, &why))
        return false;
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &payload.file);
    for (unsigned k = 0; k < probes_of(payload.tensor.count); k++)
        plumb_tensor_to_f64(&payload.tensor, place_of(payload.tensor.count, k), 1, &out[k]);
    const bool shrank = plumb_file_guard_leave(&guard);
    plumb_payload_release(&payload);
    return !shrank;
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Constants and masks are equal to many tensors, and that says nothing. */
static bool is_telling(const struct wrong *w)
{
    double sorted[PROBES];
    const unsigned n = probes_of(w->count);
    unsigned different = 1;
    for (unsigned k = 0; k < n; k++)
        if (!isfinite(sorted[k] = w->probe[k]))
            return false;
    qsort(sorted, n, sizeof *sorted, compare_numbers);
    for (unsigned k = 1; k < n; k++)
        different += sorted[k] != sorted[k - 1];
    return w->count >= LEAST_NUMBERS && different >= LEAST_DIFFERENT;
}

/* As the narrower of two types holds it. */
static double as_narrower(enum plumb_dtype a, enum plumb_dtype b, double x)
{
    const bool first = plumb_dtype_info(a)->precision <= plumb_dtype_info(b)->precision;
    return plumb_round_to(first ? a : b, x);
}

static bool are_equal(enum plumb_dtype a, enum plumb_dtype b, const double *x, const double *y,
                      size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (x[k] != y[k] &&
            (a == b || as_narrower(a, b, x[k]) != as_narrower(a, b, y[k]))) /* NaN differs */
            return false;
    return true;
}

/* All numbers of two records. */
static bool is_whole_equal(const struct plumb_run *run, size_t a, size_t b)
{
    enum { PIECE = 1024 };
    double x[PIECE], y[PIECE];
    struct plumb_payload p = {0}, q = {0};
    struct plumb_error why;
    if (plumb_run_load(run, a, &p, &why))
        return false;
    bool equal = !plumb_run_load(run, b, &q, &why) && p.tensor.count == q.tensor.count;
    struct plumb_file_guard guards[2];
    plumb_file_guard_enter(&guards[0], &p.file);
    plumb_file_guard_enter(&guards[1], &q.file);
    for (uint64_t first = 0; equal && first < p.tensor.count; first += PIECE) {
        const uint64_t left = p.tensor.count - first;
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        plumb_tensor_to_f64(&p.tensor, first, n, x);
        plumb_tensor_to_f64(&q.tensor, first, n, y);
        equal = are_equal(p.tensor.dtype, q.tensor.dtype, x, y, n);
    }
    equal &= !plumb_file_guard_leave(&guards[1]);
    equal &= !plumb_file_guard_leave(&guards[0]);
    plumb_payload_release(&p);
    plumb_payload_release(&q);
    return equal;
}

/* ---- Which are wrong ------------------------------------------------------------------------- */

/* Whether the record is the result that is wrong; of a call judged by its jump, any output. */
static bool is_wrong_result(const struct site *site, const struct plumb_record *record,
                            size_t length)
{
    const char *space = strrchr(site->is.result, ' '), *dot = strrchr(record->name, '.');
    return site->is.by_jump ||
           (space && dot && dot > record->name + length && strcmp(dot + 1, space + 1) == 0);
}

/* The results to ask about, in order of the run. */
static void list_wrong(struct stale *s, const struct sites *sites)
{
    const struct site *site_before = NULL;
    size_t first = 0;
    for (size_t i = 0; i < plumb_run_count(s->run) && s->n < MOST_FAULTS; i++) {
        const struct plumb_record *record = plumb_run_record(s->run, i);
        size_t length = 0;
        const enum pair_role role = role_of(record, &length);
        if (role == ROLE_NONE && !record->recorded)
            continue;
        const char *call = record->recorded ? record->recorded->api : record->name;
        struct site *site = sites_find(sites, call, length, record->step, record->rank);
        if (site != site_before)
            first = i;
        site_before = site;
        if (!site || site->is.word != PLUMB_WORD_FAULT || role != ROLE_OUTPUT || record->absent ||
            record->error || !is_real(record->dtype) || !is_wrong_result(site, record, length))
            continue;
        struct wrong *w = &s->list[s->n];
        *w = (struct wrong){.site = site,
                            .record = i,
                            .first = first,
                            .count = record->count,
                            .dtype = record->dtype};
        s->n += w->count >= LEAST_NUMBERS && read_probes(s->run, i, w->probe) && is_telling(w);
    }
}

/* ---- What they are equal to ------------------------------------------------------------------ */

/* "Functional.linear" of "Functional.linear.3.forward". */
static size_t operator_length(const char *call, size_t length)
{
    for (size_t k = 0; k + 1 < length; k++)
        if (call[k] == '.' && call[k + 1] >= '0' && call[k + 1] <= '9')
            return k;
    return length;
}

/* The length of "Module.block.norm" in "Module.block.norm.LayerNorm.forward.0"; 0: it is none. */
static size_t path_length(const char *call)
{
    const char *end = strstr(call, ".forward.");
    if (!end)
        end = strstr(call, ".backward.");
    while (end && end > call && *--end != '.')
        ;
    return end ? (size_t)(end - call) : 0;
}

/* Whether a call made the record inside of the module that is wrong: what the module gave is what
 * its last call gave. */
static bool is_inside(const struct wrong *w, const struct plumb_record *record)
{
    const char *parent = plumb_recorded_parent(record->recorded);
    const char *call = w->site->is.call;
    const size_t length = path_length(call);
    if (!parent)
        return false;
    return strcmp(parent, call) == 0 ||
           (w->site->module && length && strncmp(parent, call, length) == 0 &&
            parent[length] == '.');
}

/* How well a record explains it; 0: not at all, it was not there yet, or it is what others got from
 * the call. */
static int explains(const struct wrong *w, const struct plumb_record *record, size_t i)
{
    const struct plumb_suspect *is = &w->site->is;
    size_t length = 0;
    const enum pair_role role = role_of(record, &length);
    if (record->rank != is->rank || i == w->record || role == ROLE_NONE || is_inside(w, record))
        return 0;
    const char *call = record->recorded ? record->recorded->api : record->name;
    const bool own = record->step == is->step && strlen(is->call) == length &&
                     strncmp(is->call, call, length) == 0;
    if (own)
        return role == ROLE_INPUT ? 4 : 0;
    if (record->step == is->step ? i >= w->first : record->step > is->step)
        return 0;
    const size_t a = operator_length(is->call, strlen(is->call)), b = operator_length(call, length);
    const bool same = a == b && strncmp(is->call, call, a) == 0;
    return role == ROLE_INPUT ? 1 : same ? 3 : 2;
}

/* The nearest of those that explain it best. */
static void try_record(struct stale *s, size_t i)
{
    const struct plumb_record *record = plumb_run_record(s->run, i);
    double probe[PROBES];
    bool read = false, unreadable = record->absent || record->error || !is_real(record->dtype);
    for (size_t k = 0; k < s->n && !unreadable; k++) {
        struct wrong *w = &s->list[k];
        const int rank = w->count == record->count ? explains(w, record, i) : 0;
        if (!rank || rank < w->rank)
            continue;
        if (!read && !(read = read_probes(s->run, i, probe)))
            unreadable = true;
        if (unreadable ||
            !are_equal(w->dtype, record->dtype, w->probe, probe, probes_of(w->count)) ||
            !is_whole_equal(s->run, w->record, i))
            continue;
        w->found = i + 1;
        w->rank = rank;
    }
}

/* "output 0 of Functional.linear.2.forward", "its input 0". */
static const char *name_of(const struct wrong *w, const struct plumb_run *run, struct arena *arena)
{
    const struct plumb_record *record = plumb_run_record(run, w->found - 1);
    size_t length = 0;
    const enum pair_role role = role_of(record, &length);
    const char *dot = strrchr(record->name, '.'), *what = role == ROLE_INPUT ? "input" : "output";
    char step[48] = "";
    if (record->step != w->site->is.step)
        snprintf(step, sizeof step, " in step %" PRId64, record->step);
    if (w->rank == 4)
        return arena_printf(arena, "its %s %s", what, dot ? dot + 1 : "");
    return arena_printf(arena, "%s %s of %.*s%s", what, dot ? dot + 1 : "", (int)length,
                        record->name, step);
}

static bool say(const struct wrong *w, const struct plumb_run *run, struct arena *arena)
{
    static const char nothing[] = "no simple pattern; ";
    struct plumb_suspect *is = &w->site->is;
    const char *equals = name_of(w, run, arena);
    const bool bare = strncmp(is->why, nothing, sizeof nothing - 1) == 0;
    const char *why = equals ? arena_printf(arena, "equal to %s: %s; %s", equals,
                                            w->rank == 4 ? "nothing was computed" : "stale",
                                            is->why + (bare ? sizeof nothing - 1 : 0))
                             : NULL;
    if (!why)
        return false;
    is->equals = equals;
    is->why = why;
    return true;
}

enum plumb_code stale_find(struct sites *sites, const struct plumb_run *run, struct arena *arena,
                           struct plumb_error *err)
{
    struct stale s = {.run = run, .list = calloc(MOST_FAULTS, sizeof *s.list)};
    if (!s.list)
        return plumb_no_memory(err);
    list_wrong(&s, sites);
    for (size_t i = 0; s.n && i < plumb_run_count(run); i++)
        try_record(&s, i);
    bool fine = true;
    for (size_t k = 0; k < s.n && fine; k++)
        if (s.list[k].found && !*s.list[k].site->is.equals)
            fine = say(&s.list[k], run, arena);
    free(s.list);
    return fine ? PLUMB_OK : plumb_no_memory(err);
}
