/* Differences between two runs that no recorded call makes: other parameters, other plain
 * arguments, and an input that is far from the other run's when nothing before it is. */
#include "task/blame/parts.h"

#include "base/number.h"
#include "pair/role.h"
#include "ranks/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How much further than all before it, or than rounding, an input comes in from outside. */
#define FAR 8.0
/* The same of what a call gave, which may amplify what it was given. */
#define PARTS 64.0
/* The same of a call that is given an argument in one run only. */
#define ABSENT 2.0
/* A parameter differs by more than this many roundings of the narrower type. */
#define OTHER 4.0

/* What was seen of a rank. What differs there began there, or came through an exchange. */
struct seen {
    int64_t rank;
    double most; /* the farthest tensor */
    bool found;  /* an input that came in from outside */
};

struct search {
    const struct plumb_run *target, *golden;
    const struct plumb_matching *matching;
    const double *apart; /* of each pair; NaN: not known */
    struct arena *arena;
    struct plumb_source *list;
    size_t count;
    struct seen *ranks;
    size_t n_ranks;
    struct plumb_source parting;
    struct plumb_source absent; /* an argument that one run gives and the other leaves out, which
                                   counts when its call parts the two; call NULL: none is seen */
};

static bool is_parameter(const struct plumb_record *record)
{
    return strstr(record->name, ".parameters.") || strstr(record->name, ".forward_params.") ||
           strstr(record->name, ".buffers.") || strstr(record->name, ".forward_buffers.");
}

/* Gradients inherit from everything. */
static bool is_forward(const struct plumb_record *record)
{
    const char *call = record->recorded ? record->recorded->api : record->name;
    return !strstr(call, ".backward") && !strstr(call, "parameters_grad");
}

/* How far rounding to the coarser of the two types puts them apart. */
static double floor_of(const struct plumb_record *a, const struct plumb_record *b, int64_t terms)
{
    return fmax(calls_floor(a->dtype, terms), calls_floor(b->dtype, terms));
}

static bool same_kind(const struct plumb_record *a, const struct plumb_record *b)
{
    return plumb_dtype_info(a->dtype)->kind == plumb_dtype_info(b->dtype)->kind;
}

/* What of the name comes behind the call: "input.1", "parameters.weight". */
static const char *place_of(const struct plumb_record *record)
{
    size_t length = 0;
    if (record->recorded)
        length = strlen(record->recorded->api);
    else if (pair_role(record->name, &length) == ROLE_NONE)
        length = 0;
    return strlen(record->name) > length + 1 && length ? record->name + length + 1 : record->name;
}

static struct plumb_source source_of(const struct plumb_record *record, double apart,
                                     const char *why)
{
    const struct plumb_recorded *recorded = record->recorded;
    return (struct plumb_source){.call = recorded ? recorded->api : record->name,
                                 .place = place_of(record),
                                 .parent = plumb_recorded_parent(recorded),
                                 .stack = plumb_recorded_stack(recorded),
                                 .step = record->step,
                                 .rank = record->rank,
                                 .apart = apart,
                                 .why = why};
}

/* False when out of memory. */
static bool add(struct search *s, const struct plumb_record *record, double apart, const char *why)
{
    if (why)
        s->list[s->count++] = source_of(record, apart, why);
    return why != NULL;
}

/* Numbers only: types and devices are what runs are made to differ in. */
static bool as_number(const struct plumb_recorded *recorded, double *out)
{
    char *end;
    if (!recorded->value || !recorded->type ||
        (strcmp(recorded->type, "int") != 0 && strcmp(recorded->type, "float") != 0 &&
         strcmp(recorded->type, "bool") != 0))
        return false;
    if (strcmp(recorded->type, "bool") == 0) {
        *out = strcmp(recorded->value, "True") == 0;
        return true;
    }
    *out = strtod(recorded->value, &end);
    return *recorded->value && !*end;
}

static bool is_bool(const struct plumb_recorded *recorded)
{
    return strcmp(recorded->type, "bool") == 0;
}

/* Smallest numbers of a type stand for minus infinity, and differ between types. */
static bool is_huge(double x)
{
    return fabs(x) > 1e30;
}

static bool is_text(const struct plumb_recorded *recorded)
{
    return recorded->value && recorded->type && strcmp(recorded->type, "str") == 0;
}

/* Texts that say where or in what type to compute, as runs are made to differ in. */
static bool is_place_or_type(const char *text)
{
    static const char *const words[] = {"cpu",   "cuda",  "npu",    "xpu", "mps",  "hpu",    "meta",
                                        "torch", "float", "bfloat", "int", "uint", "complex"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strncmp(text, words[k], strlen(words[k])) == 0)
            return true;
    return false;
}

static bool see_text(struct search *s, const struct plumb_record *a, const struct plumb_record *b)
{
    const char *x = a->recorded->value, *y = b->recorded->value;
    if (strcmp(x, y) == 0 || (is_place_or_type(x) && is_place_or_type(y)))
        return true;
    return add(s, a, NAN, arena_printf(s->arena, "it is '%s', and '%s' in the other run", x, y));
}

/* One of the two has a number or a text, and the other None. */
static bool see_absent(struct search *s, const struct plumb_record *a, const struct plumb_record *b)
{
    double number;
    const bool given[] = {is_text(a->recorded) || as_number(a->recorded, &number),
                          is_text(b->recorded) || as_number(b->recorded, &number)};
    if ((a->recorded->type && b->recorded->type) || given[0] == given[1])
        return true;
    const char *why = arena_printf(s->arena, "it is %s, and %s in the other run",
                                   given[0] ? a->recorded->value : "left out",
                                   given[1] ? b->recorded->value : "left out");
    s->absent = source_of(a, NAN, why);
    return why != NULL;
}

static bool see_plain(struct search *s, const struct plumb_record *a, const struct plumb_record *b)
{
    double x, y;
    if (is_text(a->recorded) && is_text(b->recorded))
        return see_text(s, a, b);
    if (!a->recorded->type != !b->recorded->type)
        return see_absent(s, a, b);
    if (!as_number(a->recorded, &x) || !as_number(b->recorded, &y) ||
        is_bool(a->recorded) != is_bool(b->recorded) ||
        (is_huge(x) && is_huge(y) && (x > 0) == (y > 0)) ||
        !(fabs(x - y) > 1e-5 * fmax(fabs(x), fabs(y))))
        return true;
    return add(s, a, NAN,
               arena_printf(s->arena, "it is %s, and %s in the other run", a->recorded->value,
                            b->recorded->value));
}

static const char *say_far(struct search *s, double apart, const char *what)
{
    char text[NUMBER_BYTES];
    if (!isfinite(apart))
        return "NaN, infinities or another shape where the other run has none";
    return arena_printf(s->arena, "%s %% from the other run%s", number_brief(100 * apart, 3, text),
                        what);
}

static bool see_parameter(struct search *s, const struct plumb_record *a,
                          const struct plumb_record *b, double apart)
{
    if (!(apart > OTHER * floor_of(a, b, 1)) || !same_kind(a, b))
        return true;
    return add(s, a, apart, say_far(s, apart, ", whose rounding does not explain that"));
}

/* NULL when out of memory. */
static struct seen *seen_of(struct search *s, int64_t rank)
{
    for (size_t k = s->n_ranks; k-- > 0;)
        if (s->ranks[k].rank == rank)
            return &s->ranks[k];
    if (!(s->n_ranks & (s->n_ranks - 1))) { /* full */
        struct seen *more = arena_array(s->arena, s->n_ranks ? 2 * s->n_ranks : 1, sizeof *more);
        if (!more)
            return NULL;
        if (s->n_ranks)
            memcpy(more, s->ranks, s->n_ranks * sizeof *more);
        s->ranks = more;
    }
    s->ranks[s->n_ranks] = (struct seen){.rank = rank};
    return &s->ranks[s->n_ranks++];
}

/* Walks the pairs in the order of the run. */
static bool walk(struct search *s)
{
    for (size_t i = 0; i < s->matching->matched; i++) {
        const struct plumb_pair *pair = &s->matching->pairs[i];
        const struct plumb_record *a = plumb_run_record(s->target, pair->target);
        const struct plumb_record *b = plumb_run_record(s->golden, pair->golden);
        const double apart = s->apart[i];
        size_t length;
        if (!is_forward(a))
            continue;
        if (a->recorded && b->recorded && !a->recorded->tensor && !b->recorded->tensor) {
            if (!see_plain(s, a, b))
                return false;
            continue;
        }
        if (isnan(apart) || !same_kind(a, b))
            continue;
        if (is_parameter(a)) {
            if (!see_parameter(s, a, b, apart))
                return false;
            continue;
        }
        struct seen *seen = seen_of(s, a->rank);
        if (!seen)
            return false;
        const int64_t terms = a->ndim ? a->shape[a->ndim - 1] : 1;
        const double near = fmax(seen->most, floor_of(a, b, terms));
        const bool output = pair_role(a->name, &length) == ROLE_OUTPUT;
        if (output && s->absent.call && a->recorded && s->absent.call == a->recorded->api) {
            if (apart > ABSENT * near)
                s->list[s->count++] = s->absent;
            s->absent.call = NULL;
        }
        if (apart > PARTS * near && !seen->found && output && !s->parting.call &&
            !(a->recorded && graph_is_communication(a->recorded->api))) {
            s->parting = source_of(a, apart, say_far(s, apart, ", from inputs that agree"));
            if (!s->parting.why)
                return false;
        }
        if (apart > FAR * near && !seen->found && !output) {
            seen->found = true;
            if (!add(s, a, apart, say_far(s, apart, ", and nothing before it is nearly as far")))
                return false;
        }
        seen->most = fmax(seen->most, apart);
    }
    return true;
}

enum plumb_code sources_find(const struct plumb_run *target, const struct plumb_run *golden,
                             const struct plumb_matching *matching, const double *apart,
                             struct arena *arena, struct plumb_blame *blame,
                             struct plumb_error *err)
{
    struct search s = {.target = target,
                       .golden = golden,
                       .matching = matching,
                       .apart = apart,
                       .arena = arena,
                       .list = arena_array(arena, matching->matched + 1, sizeof *s.list)};
    if (!s.list || !walk(&s))
        return plumb_no_memory(err);
    blame->sources = s.list;
    blame->n_sources = s.count;
    blame->parting = s.parting;
    return PLUMB_OK;
}
