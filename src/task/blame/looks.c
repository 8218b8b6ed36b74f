/* Wrong results of computed calls, element by element, beside what they should be. */
#include "task/blame/looks.h"

#include "verdict/spell.h"

#include <stdlib.h>
#include <string.h>

static bool is_deviation(const struct local_verdict *v)
{
    return v->number != SIZE_MAX && (v->word == PLUMB_WORD_FAULT || v->word == PLUMB_WORD_CHEAPER);
}

bool looks_wanted(const struct local_verdict *verdict)
{
    for (const struct local_verdict *v = verdict->seen ? verdict->next : NULL; v; v = v->next)
        if (is_deviation(v))
            return true;
    return false;
}

/* ---- Which ones ------------------------------------------------------------------------------ */

static bool is_worse(enum plumb_word word, double worst, const struct look *than)
{
    const unsigned a = plumb_word_severity(word), b = plumb_word_severity(than->word);
    return a != b ? a > b : worst > than->worst;
}

static struct look *mildest(const struct looks *looks)
{
    struct look *mild = looks->list;
    for (size_t k = 1; k < looks->count; k++)
        if (is_worse(mild->word, mild->worst, &looks->list[k]))
            mild = &looks->list[k];
    return mild;
}

bool looks_has_room(struct looks *looks, enum plumb_word word, double worst)
{
    pthread_mutex_lock(&looks->lock);
    const bool room = looks->count < MOST_LOOKS || is_worse(word, worst, mildest(looks));
    pthread_mutex_unlock(&looks->lock);
    return room;
}

static void look_free(struct look *look)
{
    plumb_detail_free(&look->detail);
    arena_free(&look->arena);
}

void looks_keep(struct looks *looks, struct look *look)
{
    pthread_mutex_lock(&looks->lock);
    if (!looks->list)
        looks->list = calloc(MOST_LOOKS, sizeof *looks->list);
    struct look *place = !looks->list                ? NULL
                         : looks->count < MOST_LOOKS ? &looks->list[looks->count]
                                                     : mildest(looks);
    const bool full = place && looks->count == MOST_LOOKS;
    if (!place || (full && !is_worse(look->word, look->worst, place))) {
        look_free(look);
    } else {
        if (full)
            look_free(place);
        else
            looks->count++;
        *place = *look;
    }
    pthread_mutex_unlock(&looks->lock);
}

void looks_free(struct looks *looks)
{
    for (size_t k = 0; k < looks->count; k++)
        look_free(&looks->list[k]);
    free(looks->list);
    *looks = (struct looks){.lock = PTHREAD_MUTEX_INITIALIZER};
}

/* ---- What they are --------------------------------------------------------------------------- */

/* A reference has more digits than the type. Its rounding is what a right result is held to, and
 * what ULPs are counted from. NULL when out of memory. */
static const struct plumb_tensor *as_type(const struct plumb_tensor *reference,
                                          enum plumb_dtype dtype, struct arena *arena)
{
    enum { BLOCK = 512 };
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    const size_t parts = plumb_dtype_parts(dtype);
    if (reference->dtype == dtype || parts != plumb_dtype_parts(reference->dtype) ||
        info->bits < 8 || reference->rank > PLUMB_MAX_RANK)
        return reference;
    struct plumb_tensor *as = arena_alloc(arena, sizeof *as);
    const size_t size = info->bits / 8;
    unsigned char *data = arena_array(arena, reference->count + 1, size);
    if (!as || !data || plumb_tensor_init(as, dtype, reference->rank, reference->shape, NULL))
        return NULL;
    double numbers[2 * BLOCK];
    for (uint64_t at = 0; at < reference->count; at += BLOCK) {
        const size_t n = reference->count - at < BLOCK ? (size_t)(reference->count - at) : BLOCK;
        plumb_tensor_to_f64(reference, at, n, numbers);
        plumb_from_f64(dtype, numbers, n, data + at * size);
    }
    as->data = data;
    return as;
}

/* As Python would call it: tensors as their shapes and types. */
static void spell_call(struct buf *out, const struct plumb_call *call)
{
    for (size_t k = 0; k < call->n_args; k++) {
        buf_text(out, k ? ", " : "");
        spell_arg(out, &call->args[k]);
    }
    for (size_t k = 0; k < call->n_kwargs; k++) {
        buf_printf(out, "%s%s=", k || call->n_args ? ", " : "", call->kwargs[k].name);
        spell_arg(out, &call->kwargs[k].value);
    }
}

/* False when out of memory. */
static bool take_texts(struct look *look, const struct local_verdict *v,
                       const struct known_call *known)
{
    struct buf arguments = {0};
    spell_call(&arguments, &known->call);
    const char *const from[] = {v->result, v->why, v->pattern, v->arithmetic,
                                arguments.data ? arguments.data : ""};
    const char **const to[] = {&look->result, &look->why, &look->pattern, &look->arithmetic,
                               &look->arguments};
    bool fine = true;
    for (size_t k = 0; k < sizeof from / sizeof *from; k++) {
        *to[k] = arena_copy(&look->arena, from[k] ? from[k] : "", from[k] ? strlen(from[k]) : 0);
        fine &= *to[k] != NULL;
    }
    buf_free(&arguments);
    return fine;
}

static const struct plumb_tensor *tensor_of(const struct plumb_result *of,
                                            const struct local_verdict *v)
{
    const bool gradient = v->part == PLUMB_PART_GRADIENT;
    const struct plumb_arg *list = gradient ? of->grads : of->outputs;
    const size_t n = gradient ? of->n_grads : of->n_outputs;
    return list && v->number < n && list[v->number].kind == PLUMB_ARG_TENSOR
               ? list[v->number].tensor
               : NULL;
}

static void take_one(struct looks *looks, size_t site, const struct local_verdict *v,
                     struct plumb_expected *expected, const struct known_call *known)
{
    const struct plumb_tensor *reference = tensor_of(plumb_expected_reference(expected), v);
    const struct plumb_tensor *got = tensor_of(&known->given, v);
    struct arena scratch = {0};
    struct plumb_error why;
    if (!reference || !got || !looks_has_room(looks, v->word, v->worst))
        return;
    struct look look = {.site = site, .word = v->word, .worst = v->worst};
    const struct plumb_tensor *rounded = as_type(reference, got->dtype, &scratch);
    look.dtypes[0] = plumb_dtype_info(got->dtype)->name;
    look.dtypes[1] = rounded ? plumb_dtype_info(rounded->dtype)->name : "";
    /* Another shape has no elements to hold against each other: the verdict says it. */
    if (rounded && take_texts(&look, v, known) &&
        !plumb_detail_measure(&look.detail, got, rounded, &why))
        looks_keep(looks, &look);
    else
        look_free(&look);
    arena_free(&scratch);
}

void looks_take(struct looks *looks, size_t site, const struct local_verdict *verdict,
                struct plumb_expected *expected, const struct known_call *known)
{
    for (const struct local_verdict *v = verdict->next; v; v = v->next)
        if (is_deviation(v))
            take_one(looks, site, v, expected, known);
}
