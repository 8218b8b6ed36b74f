/* What each rank of an exchange should have got: which elements of what the others put in. */
#include "task/blame/exchanged_form.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Results --------------------------------------------------------------------------------- */

static uint64_t elements(const struct plan *p, size_t record)
{
    return plumb_run_record(p->run, record)->count;
}

static void refuse(struct exchanged_member *m, const char *why)
{
    if (!m->refused)
        m->refused = why;
}

/* A new result of a member with room for parts; NULL when out of memory. */
static struct exchanged_result *add_result(struct plan *p, size_t member, int number, int item,
                                           size_t parts)
{
    struct exchanged_result *result = &p->x->results[p->x->n_results];
    result->member = member;
    result->place = item < 0 ? arena_printf(p->arena, "output %d", number)
                             : arena_printf(p->arena, "output %d.%d", number, item);
    result->parts = arena_array(p->arena, parts + 1, sizeof *result->parts);
    result->n = 0;
    p->failed |= !result->place || !result->parts;
    if (p->failed)
        return NULL;
    p->x->n_results++;
    return result;
}

/* Appends a part that is made of one stretch; false when the sizes do not fit. */
static bool add_part(struct plan *p, struct exchanged_result *result, size_t out, uint64_t at,
                     uint64_t count, const struct exchanged_term *terms, size_t n)
{
    if (at > elements(p, out) || count > elements(p, out) - at)
        return false;
    for (size_t k = 0; k < n; k++)
        if (terms[k].at > elements(p, terms[k].record) ||
            count > elements(p, terms[k].record) - terms[k].at)
            return false;
    result->parts[result->n++] = (struct exchanged_part){out, at, count, terms, n};
    return true;
}

static struct exchanged_term *one_term(struct plan *p, size_t record, uint64_t at, int64_t rank)
{
    struct exchanged_term *term = arena_alloc(p->arena, sizeof *term);
    p->failed |= !term;
    if (term)
        *term = (struct exchanged_term){record, at, rank};
    return term;
}

static const char no_fit[] = "the sizes of what went in and came out do not fit";
static const char not_there[] = "tensors of this exchange were not recorded";

/* Everybody's tensor, or the n-th piece of it, into one tensor of member m. */
static void plan_reduced(struct plan *p, size_t m, const struct given *in, const struct given *out,
                         int number, bool dealt)
{
    struct exchanged *x = p->x;
    struct exchanged_term *terms =
        dealt ? arena_array(p->arena, x->count, sizeof *terms) : p->whole;
    p->failed |= !terms;
    if (out->count != 1) {
        refuse(&x->members[m], not_there);
        return;
    }
    const uint64_t size = elements(p, out->records[0]);
    for (size_t k = 0; terms && k < x->count; k++) {
        const bool listed = dealt && in[k].list;
        if (in[k].count != (listed ? x->count : 1)) {
            refuse(&x->members[m], not_there);
            return;
        }
        if (dealt)
            terms[k] = (struct exchanged_term){in[k].records[listed ? m : 0], listed ? 0 : m * size,
                                               x->members[k].rank};
        if (elements(p, terms[k].record) != (dealt && !listed ? size * x->count : size)) {
            refuse(&x->members[m], no_fit);
            return;
        }
    }
    struct exchanged_result *result = p->failed ? NULL : add_result(p, m, number, -1, 1);
    if (result && !add_part(p, result, out->records[0], 0, size, terms, x->count))
        refuse(&x->members[m], no_fit);
}

/* Everybody's tensor, into a list or one after the other. */
static void plan_gathered(struct plan *p, size_t m, const struct given *in, const struct given *out,
                          int number)
{
    struct exchanged *x = p->x;
    const bool list = out->list;
    if (out->count != (list ? x->count : 1)) {
        refuse(&x->members[m], out->count ? no_fit : not_there);
        return;
    }
    struct exchanged_result *result = list ? NULL : add_result(p, m, number, -1, x->count);
    uint64_t at = 0;
    for (size_t k = 0; k < x->count && !p->failed; k++) {
        if (in[k].count != 1) {
            refuse(&x->members[m], not_there);
            return;
        }
        const uint64_t size = elements(p, in[k].records[0]);
        if (list)
            result = add_result(p, m, number, (int)k, 1);
        if (!result)
            return;
        if ((list && elements(p, out->records[k]) != size) ||
            !add_part(p, result, out->records[list ? k : 0], at, size, &p->whole[k], 1)) {
            refuse(&x->members[m], no_fit);
            return;
        }
        at += list ? 0 : size;
    }
    if (!p->failed && !list && at != elements(p, out->records[0]))
        refuse(&x->members[m], no_fit);
}

/* A copy of one tensor. */
static void plan_copy(struct plan *p, size_t m, const struct exchanged_term *term, size_t out,
                      int number, int item)
{
    struct exchanged_result *result = term ? add_result(p, m, number, item, 1) : NULL;
    if (result && (elements(p, term->record) != elements(p, out) ||
                   !add_part(p, result, out, 0, elements(p, out), term, 1)))
        refuse(&p->x->members[m], no_fit);
}

static size_t find_source(const struct plan *p)
{
    size_t source = SIZE_MAX;
    for (size_t k = 0; k < p->x->count; k++)
        if (p->x->members[k].node->role == GRAPH_SOURCE)
            source = source == SIZE_MAX ? k : p->x->count;
    return source;
}

static void plan_from_one(struct plan *p, size_t m, const struct given *in, const struct given *out,
                          int number, bool dealt)
{
    const size_t source = find_source(p), n = p->x->count;
    if (source >= n)
        refuse(&p->x->members[m], "it is not recorded which rank is the source");
    else if (out->count != 1 || in[source].count != (dealt ? n : 1))
        refuse(&p->x->members[m], not_there);
    else
        plan_copy(p, m,
                  dealt ? one_term(p, in[source].records[m], 0, p->x->members[source].rank)
                        : &p->whole[source],
                  out->records[0], number, -1);
}

/* The sizes of the pieces that a member sends or gets, in rows; false: equal ones. */
static bool read_sizes(struct plan *p, const struct exchanged_member *m, int place,
                       const char *name, uint64_t *sizes)
{
    const char *found = "", *rest;
    size_t length = 0, n = 0;
    if (place < 0 || form_argument(p, m, place, name, &found, &length) < 0)
        return false;
    for (size_t i = m->first; i < m->first + m->count && n < p->x->count; i++) {
        const struct plumb_record *record = plumb_run_record(p->run, i);
        if (!form_begins(form_below(record), "input.", &rest) ||
            strncmp(rest, found, length) != 0 || rest[length] != '.' || !record->recorded->value)
            continue;
        sizes[n++] = strtoull(record->recorded->value, NULL, 10);
    }
    return n == p->x->count;
}

/* Where the pieces of a tensor begin, n + 1 numbers of elements; false: they do not fit. */
static bool cut(struct plan *p, const struct exchanged_member *m, size_t record, int place,
                const char *name, uint64_t *begin)
{
    const struct plumb_record *tensor = plumb_run_record(p->run, record);
    const size_t n = p->x->count;
    const uint64_t rows = tensor->ndim ? (uint64_t)tensor->shape[0] : 1;
    const uint64_t row = rows ? tensor->count / rows : 0;
    uint64_t *sizes = arena_array(p->arena, n, sizeof *sizes);
    p->failed |= !sizes;
    if (!sizes)
        return false;
    const bool given = read_sizes(p, m, place, name, sizes);
    for (size_t k = 0; k < n; k++) {
        const uint64_t size = given ? sizes[k] : rows / n;
        if (size > rows)
            return false;
        begin[k + 1] = begin[k] + size * row;
    }
    return begin[n] == tensor->count;
}

static void plan_to_all(struct plan *p, size_t m, const struct given *in, const struct given *out,
                        const struct form *form, int number)
{
    struct exchanged *x = p->x;
    const size_t n = x->count;
    if (out->list || out->count == n) {
        for (size_t k = 0; k < n && out->count == n && !p->failed; k++)
            if (in[k].count == n)
                plan_copy(p, m, one_term(p, in[k].records[m], 0, x->members[k].rank),
                          out->records[k], number, (int)k);
            else
                refuse(&x->members[m], not_there);
        return;
    }
    uint64_t *mine = arena_array(p->arena, n + 1, sizeof *mine);
    uint64_t *theirs = arena_array(p->arena, n + 1, sizeof *theirs);
    struct exchanged_result *result =
        mine && theirs && out->count == 1 ? add_result(p, m, number, -1, n) : NULL;
    p->failed |= !mine || !theirs;
    if (!result || !cut(p, &x->members[m], out->records[0], form->how, form->how_name, mine)) {
        refuse(&x->members[m], out->count ? no_fit : not_there);
        return;
    }
    for (size_t k = 0; k < n && !p->failed; k++) {
        theirs[0] = 0;
        if (in[k].count != 1 ||
            !cut(p, &x->members[k], in[k].records[0], form->how + 1, "input_split_sizes", theirs)) {
            refuse(&x->members[m], in[k].count ? no_fit : not_there);
            return;
        }
        const uint64_t size = mine[k + 1] - mine[k];
        const struct exchanged_term *term =
            one_term(p, in[k].records[0], theirs[m], x->members[k].rank);
        if (term && (theirs[m + 1] - theirs[m] != size ||
                     !add_part(p, result, out->records[0], mine[k], size, term, 1)))
            refuse(&x->members[m], no_fit);
    }
}

/* A send and a receive; in a group of more, who got what from whom is not certain. */
static void plan_point(struct plan *p, size_t m, const struct given *in, const struct given *out,
                       int number)
{
    const size_t other = 1 - m;
    if (p->x->count != 2)
        refuse(&p->x->members[m], "it is not certain which send belongs to which receive");
    else if (number >= 0 && (out->count != 1 || in[other].count != 1))
        refuse(&p->x->members[m], not_there);
    else if (number >= 0)
        plan_copy(p, m, &p->whole[other], out->records[0], number, -1);
}

/* Whether a record is a tensor of a batch that is sent ("send"), received ("recv") or either (""),
 * and to or from whom. */
static bool is_exchanged(const struct plumb_record *record, const char *what, int64_t *peer)
{
    const struct plumb_recorded_rest *rest = record->recorded->rest;
    if (!rest || !rest->p2p_op || !rest->p2p_peer || !strstr(rest->p2p_op, what))
        return false;
    *peer = strtoll(rest->p2p_peer, NULL, 10);
    return true;
}

/* The k-th send of a batch to a rank; SIZE_MAX: there is none. */
static size_t find_send(const struct plan *p, const struct exchanged_member *m, int64_t to,
                        size_t k)
{
    const char *rest;
    int64_t peer;
    for (size_t i = m->first; i < m->first + m->count; i++) {
        const struct plumb_record *record = plumb_run_record(p->run, i);
        if (is_exchanged(record, "send", &peer) &&
            form_begins(form_below(record), "input.", &rest) && peer == to && k-- == 0)
            return i;
    }
    return SIZE_MAX;
}

static const struct exchanged_member *only_member(const struct plan *p, int64_t rank)
{
    const struct exchanged_member *found = NULL;
    for (size_t k = 0; k < p->x->count; k++)
        if (p->x->members[k].rank == rank) {
            if (found)
                return NULL;
            found = &p->x->members[k];
        }
    return found;
}

static void plan_batch(struct plan *p, size_t m)
{
    const struct exchanged_member *me = &p->x->members[m];
    const char *rest;
    int64_t peer, other;
    int item = -1;
    for (size_t i = me->first; i < me->first + me->count && !p->failed; i++) {
        const struct plumb_record *record = plumb_run_record(p->run, i);
        const struct plumb_recorded *recorded = record->recorded;
        if (!form_begins(form_below(record), "output.", &rest) || !is_exchanged(record, "", &peer))
            continue;
        item++;
        if (!is_exchanged(record, "recv", &peer))
            continue;
        size_t earlier = 0; /* receives from the same rank */
        for (size_t k = me->first; k < i; k++) {
            const struct plumb_record *before = plumb_run_record(p->run, k);
            earlier += form_begins(form_below(before), "output.", &rest) &&
                       is_exchanged(before, "recv", &other) && other == peer;
        }
        const struct exchanged_member *from = only_member(p, peer);
        const size_t send = from ? find_send(p, from, me->rank, earlier) : SIZE_MAX;
        if (send == SIZE_MAX || !recorded->tensor)
            refuse(&p->x->members[m], from ? not_there
                                           : "it is not certain which send belongs to which "
                                             "receive");
        else
            plan_copy(p, m, one_term(p, send, 0, peer), i, 0, item);
    }
}

/* ---- The exchange ---------------------------------------------------------------------------- */

/* All ranks of the group have to be there. */
static bool is_whole(struct plan *p, const struct form *form)
{
    struct exchanged *x = p->x;
    const struct graph_node *node = x->members[0].node;
    if (form->kind == POINT_TO_POINT || form->kind == BATCH)
        return true;
    x->known_group = node->group_count > 0;
    for (size_t k = 0; k < (x->known_group ? node->group_count : 0); k++)
        if (k >= x->count || x->members[k].rank != node->group[k]) {
            x->refused = arena_printf(
                p->arena, "rank %" PRId64 " of its group is not in the dump, or has not this call",
                node->group[k]);
            p->failed |= !x->refused;
            return false;
        }
    if (x->known_group && x->count != node->group_count)
        x->refused = "other ranks than those of its group have this call";
    else if (x->count < 2 && !x->known_group)
        x->refused = "no other rank has this call";
    return !x->refused;
}

static void plan_member(struct plan *p, size_t m, const struct given *in, const struct form *form)
{
    int number;
    const struct given out = outputs_of(p, &p->x->members[m], form, &number);
    const bool taken = p->x->members[m].node->role == GRAPH_SOURCE;
    if (number < 0 && form->kind != POINT_TO_POINT) {
        refuse(&p->x->members[m], not_there);
        return;
    }
    switch (form->kind) {
    case REDUCED: /* reduce and gather: only one rank gets something */
        if (!taken)
            plan_reduced(p, m, in, &out, number, false);
        break;
    case GATHERED:
        if (!taken)
            plan_gathered(p, m, in, &out, number);
        break;
    case REDUCED_DEALT:
        plan_reduced(p, m, in, &out, number, true);
        break;
    case SENT_FROM_ONE:
        plan_from_one(p, m, in, &out, number, false);
        break;
    case DEALT_FROM_ONE:
        plan_from_one(p, m, in, &out, number, true);
        break;
    case EXCHANGED_ALL:
        plan_to_all(p, m, in, &out, form, number);
        break;
    case POINT_TO_POINT:
        plan_point(p, m, in, &out, number);
        break;
    case BATCH:
        plan_batch(p, m);
        break;
    }
}

enum plumb_code exchanged_plan(struct exchanged *x, const struct plumb_run *run,
                               struct arena *arena)
{
    struct plan p = {.x = x, .run = run, .arena = arena};
    const struct form *form = form_of(x->members[0].node);
    size_t records = 0;
    x->refused = form ? NULL : "plumb does not compute this exchange";
    if (!form || !is_whole(&p, form))
        return p.failed ? PLUMB_E_NOMEM : PLUMB_OK;
    x->op = EXCHANGED_COPY;
    if (form->kind == REDUCED || form->kind == REDUCED_DEALT)
        x->refused = form_op(&p, &x->members[0], form, &x->op);
    if (x->refused)
        return PLUMB_OK;
    for (size_t m = 0; m < x->count; m++)
        records += x->members[m].count;
    struct given *in = arena_array(arena, x->count, sizeof *in);
    x->results = arena_array(arena, records + 1, sizeof *x->results);
    p.whole = arena_array(arena, x->count, sizeof *p.whole);
    if (!in || !x->results || !p.whole)
        return PLUMB_E_NOMEM;
    for (size_t m = 0; m < x->count; m++) {
        const struct form *own = form_of(x->members[m].node);
        if (own && own->kind == form->kind)
            in[m] = inputs_of(&p, &x->members[m], own);
        if (in[m].count)
            p.whole[m] = (struct exchanged_term){in[m].records[0], 0, x->members[m].rank};
    }
    for (size_t m = 0; m < x->count && !p.failed; m++) {
        const struct form *own = form_of(x->members[m].node);
        if (own && own->kind == form->kind)
            plan_member(&p, m, in, own);
    }
    return p.failed ? PLUMB_E_NOMEM : PLUMB_OK;
}
