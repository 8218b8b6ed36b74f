/* By how much a right kernel may be off: what the rounding of its inputs and of its terms does to a
 * result, which is much where terms cancel or a decision is near. Two ways to tell, of which the
 * larger counts: the operator on absolute values, for results that are sums of products, and what
 * becomes of the results when the inputs change by a few roundings, for all. */
#include "verdict/noise.h"

#include "verdict/change.h"
#include "verdict/spell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct plumb_tensor *output_at(const struct plumb_result *result, size_t k)
{
    const bool is_tensor = k < result->n_outputs && result->outputs[k].kind == PLUMB_ARG_TENSOR;
    return is_tensor ? result->outputs[k].tensor : NULL;
}

/* ---- Sums of products ------------------------------------------------------------------------ */

/* Operators that only add and multiply. In-place forms are these too. */
static const char sums[] =
    " _adaptive_avg_pool2d _adaptive_avg_pool3d _convolution _slow_conv2d_forward _trilinear "
    "add addbmm addcmul addmm addmv addr avg_pool1d avg_pool2d avg_pool2d_backward avg_pool3d "
    "avg_pool3d_backward baddbmm bilinear bmm col2im conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d convolution convolution_backward cumsum dot "
    "embedding_dense_backward index_add index_put inner linalg_matrix_exp linear matmul mean mm mv "
    "nansum scatter_add slow_conv3d_forward sum thnn_conv2d trace upsample_bicubic2d "
    "upsample_bilinear2d upsample_linear1d upsample_trilinear3d vdot ";

/* Operators that subtract, and what adds instead. */
static const char *const differences[][2] = {{"sub", "add"}, {"rsub", "add"}};

/* The name without overload and in-place mark, between blanks; false when it is too long. */
static bool base_name(const char *name, char *word, size_t room)
{
    size_t length = strcspn(name, ".");
    if (length > 1 && name[length - 1] == '_')
        length--;
    if (length + 3 > room)
        return false;
    word[0] = ' ';
    memcpy(word + 1, name, length);
    memcpy(word + 1 + length, " ", 2);
    return true;
}

/* What adds up the absolute values of the terms of such an operator; NULL for others. */
static const char *adding_name(const char *name)
{
    char word[96];
    if (!base_name(name, word, sizeof word))
        return NULL;
    if (strstr(sums, word))
        return name;
    word[strlen(word) - 1] = '\0';
    for (size_t k = 0; k < sizeof differences / sizeof *differences; k++)
        if (strcmp(word + 1, differences[k][0]) == 0)
            return differences[k][1];
    return NULL;
}

/* Absolute values as float32, which is more than enough; integers and bool as they are. */
static bool absolute_tensor(struct arena *arena, const struct plumb_tensor *from,
                            const struct plumb_tensor **to)
{
    const enum plumb_kind kind = plumb_dtype_info(from->dtype)->kind;
    *to = from;
    if (kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX)
        return true;
    struct plumb_tensor *tensor = arena_alloc(arena, sizeof *tensor);
    float *values = arena_array(arena, from->count ? (size_t)from->count : 1, sizeof *values);
    if (!tensor || !values)
        return false;
    for (uint64_t k = 0; k < from->count; k++) {
        double x[2] = {0, 0};
        plumb_tensor_to_f64(from, k, 1, x);
        values[k] = (float)hypot(x[0], x[1]);
    }
    plumb_tensor_init(tensor, PLUMB_F32, from->rank, from->shape, NULL);
    tensor->data = values;
    *to = tensor;
    return true;
}

/* Factors may be whole numbers; other whole numbers are places. */
static bool is_factor(const char *name)
{
    return strcmp(name, "alpha") == 0 || strcmp(name, "beta") == 0 || strcmp(name, "value") == 0;
}

static bool absolute_arg(void *context, const char *name, const struct plumb_arg *from,
                         struct plumb_arg *to)
{
    *to = *from;
    if (from->kind == PLUMB_ARG_TENSOR)
        return absolute_tensor(context, from->tensor, &to->tensor);
    to->number = fabs(from->number);
    if (is_factor(name) && from->integer > INT64_MIN)
        to->integer = llabs(from->integer);
    return true;
}

/* Some roundings of the sum of the absolute values of the terms. */
static void add_terms(const struct plumb_call *call, struct arena *arena, struct noise *out)
{
    const double roundings = 8;
    struct plumb_call absolute = *call;
    struct plumb_result found = {0};
    struct plumb_error err;
    absolute.name = adding_name(call->name);
    if (absolute.name && change_call(arena, absolute_arg, arena, &absolute) &&
        !plumb_op_run(&absolute, PLUMB_RAISED, &found, &err))
        for (size_t k = 0; k < out->n; k++) {
            const struct plumb_tensor *sum = output_at(&found, k);
            if (!out->of[k] || !sum || sum->count != out->counts[k])
                continue;
            plumb_tensor_to_f64(sum, 0, (size_t)sum->count, out->of[k]);
            for (uint64_t i = 0; i < sum->count; i++)
                out->of[k][i] *= roundings * out->units[k];
        }
    plumb_result_destroy(&found);
}

/* ---- Changed inputs -------------------------------------------------------------------------- */

enum { RUNS = 10, ALL_UP = RUNS - 1, ALL_DOWN = RUNS };

/* A number in [-1, 1) of its own for each run and number. Equal numbers, and those that differ in
 * sign, stay so: what an operator chooses by that is no matter of rounding. In two runs all change
 * alike, so that no decision that is near enough is missed. */
static double jitter(uint64_t run, double of)
{
    if (run == ALL_UP || run == ALL_DOWN)
        return run == ALL_UP ? 1 : -1;
    const double size = fabs(of);
    uint64_t x;
    memcpy(&x, &size, sizeof x);
    x = x * 0x9e3779b97f4a7c15u + run;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)(int64_t)(x ^ x >> 31) * 0x1p-63;
}

/* Operators that decide at numbers that are exact, at whole ones most of all: a change of their
 * inputs would excuse those that decide wrongly there. */
static bool decides_exactly(const char *name)
{
    static const char exact[] = " ceil div divide fix floor floor_divide fmod frac heaviside "
                                "remainder round sgn sign trunc ";
    char word[96];
    return base_name(name, word, sizeof word) && strstr(exact, word) && !strstr(name, ".decimals");
}

/* How arguments are changed: each number by a few roundings of float32, up or down. */
struct changes {
    struct arena *arena;
    uint64_t run; /* 0: as they are */
    bool exact;   /* only numbers that float32 does not hold, which every kernel rounds */
};

static double changed_number(uint64_t run, double x)
{
    return run ? x * (1 + 0x1p-22 * jitter(run, x)) : x;
}

static bool changed_tensor(struct changes *c, const struct plumb_tensor *from,
                           const struct plumb_tensor **to)
{
    const uint64_t run = c->exact ? 0 : c->run;
    *to = from;
    const unsigned parts = plumb_dtype_parts(from->dtype);
    if (plumb_dtype_info(from->dtype)->kind != PLUMB_KIND_FLOAT && parts == 1)
        return true;
    struct plumb_tensor *tensor = arena_alloc(c->arena, sizeof *tensor);
    double *values = arena_array(c->arena, (size_t)from->count * parts + 1, sizeof *values);
    if (!tensor || !values)
        return false;
    plumb_tensor_to_f64(from, 0, (size_t)from->count, values);
    for (uint64_t k = 0; k < from->count * parts; k++)
        values[k] = changed_number(run, values[k]);
    plumb_tensor_init(tensor, parts == 2 ? PLUMB_C128 : PLUMB_F64, from->rank, from->shape, NULL);
    tensor->data = values;
    *to = tensor;
    return true;
}

static bool changed_arg(void *context, const char *name, const struct plumb_arg *from,
                        struct plumb_arg *to)
{
    (void)name;
    struct changes *c = context;
    *to = *from;
    if (from->kind == PLUMB_ARG_TENSOR)
        return changed_tensor(c, from->tensor, &to->tensor);
    if (from->kind == PLUMB_ARG_FLOAT && (!c->exact || (double)(float)from->number != from->number))
        to->number = changed_number(c->run, from->number);
    if (from->kind == PLUMB_ARG_DTYPE && plumb_dtype_info(from->dtype)->kind == PLUMB_KIND_FLOAT)
        to->dtype = PLUMB_F64;
    if (from->kind == PLUMB_ARG_DTYPE && from->dtype == PLUMB_C64)
        to->dtype = PLUMB_C128;
    return true;
}

/* The call with changed arguments, in double; an output of it that is floating-point, or NULL. */
static bool run_changed(const struct plumb_call *call, struct arena *arena, uint64_t run,
                        struct plumb_result *out)
{
    struct changes changes = {.arena = arena, .run = run, .exact = decides_exactly(call->name)};
    struct plumb_call changed = *call;
    struct plumb_error err;
    return change_call(arena, changed_arg, &changes, &changed) &&
           !plumb_op_run(&changed, PLUMB_OWN, out, &err);
}

static void take_largest(void *context, const struct plumb_tensor *tensor)
{
    uint64_t *largest = context;
    *largest = tensor->count > *largest ? tensor->count : *largest;
}

static uint64_t largest_input(const struct plumb_call *call)
{
    uint64_t largest = 0;
    call_tensors(call, take_largest, &largest);
    return largest;
}

/* Functions that take a tenth of a millisecond for a number are not run again for many. */
static bool takes_long(const struct plumb_call *call)
{
    static const char slow[] = " digamma igamma igammac mvlgamma polygamma special_zeta ";
    char word[96];
    return base_name(call->name, word, sizeof word) && strstr(slow, word) &&
           largest_input(call) > 4096;
}

/* What one run changed, squared and added up, and the most; of complex numbers, the distance. */
static void add_run(const struct plumb_tensor *plain, const struct plumb_tensor *changed,
                    double *squares, double *most)
{
    for (uint64_t i = 0; i < plain->count; i++) {
        double a[2] = {0, 0}, b[2] = {0, 0};
        plumb_tensor_to_f64(plain, i, 1, a);
        plumb_tensor_to_f64(changed, i, 1, b);
        const double apart = hypot(a[0] - b[0], a[1] - b[1]), change = isfinite(apart) ? apart : 0;
        squares[i] += change * change;
        most[i] = fmax(most[i], change);
    }
}

/* From a few runs the spread of one element is known badly; that of its row helps. `terms`: how
 * many numbers an element may be the sum of. */
static void spread_of(const double *squares, const double *most, uint64_t count, uint64_t row,
                      double terms, double *out)
{
    const double runs = RUNS, together = 32;
    for (uint64_t first = 0; first < count; first += row) {
        double sum = 0;
        for (uint64_t i = first; i < first + row; i++)
            sum += squares[i] / runs;
        for (uint64_t i = first; i < first + row; i++) {
            const double mean = (squares[i] + (together - runs) * sum / (double)row) / together;
            out[i] = fmax(out[i], fmax(1.5 * most[i], 2 * sqrt(terms * mean)));
        }
    }
}

static bool fits(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a && b && a->count == b->count &&
           plumb_dtype_parts(a->dtype) == plumb_dtype_parts(b->dtype);
}

static void add_changes(const struct plumb_call *call, struct arena *arena, struct noise *out)
{
    struct plumb_result plain = {0}, runs[RUNS] = {0};
    bool ran = run_changed(call, arena, 0, &plain);
    for (size_t r = 0; ran && r < RUNS; r++)
        ran = run_changed(call, arena, r + 1, &runs[r]);
    const double inputs = (double)largest_input(call);
    for (size_t k = 0; ran && k < out->n; k++) {
        const struct plumb_tensor *a = output_at(&plain, k);
        if (!out->of[k] || !a || !a->count || a->count != out->counts[k])
            continue;
        double *squares = arena_array(arena, (size_t)a->count, sizeof *squares);
        double *most = arena_array(arena, (size_t)a->count, sizeof *most);
        if (!squares || !most)
            break;
        for (uint64_t i = 0; i < a->count; i++)
            squares[i] = most[i] = 0;
        for (size_t r = 0; r < RUNS; r++)
            if (fits(a, output_at(&runs[r], k)))
                add_run(a, output_at(&runs[r], k), squares, most);
        const uint64_t row = a->rank ? (uint64_t)a->shape[a->rank - 1] : 1;
        spread_of(squares, most, a->count, row, fmax(1, inputs / (double)a->count), out->of[k]);
    }
    plumb_result_destroy(&plain);
    for (size_t r = 0; r < RUNS; r++)
        plumb_result_destroy(&runs[r]);
}

/* ---- Both ------------------------------------------------------------------------------------ */

/* Room for the noise of output k; none for what is no floating-point tensor. */
static void make_room(struct arena *arena, const struct plumb_arg *output, size_t k,
                      struct noise *out)
{
    const struct plumb_tensor *tensor = output->kind == PLUMB_ARG_TENSOR ? output->tensor : NULL;
    const enum plumb_kind kind = tensor ? plumb_dtype_info(tensor->dtype)->kind : PLUMB_KIND_BOOL;
    if (!tensor || (kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX))
        return;
    const unsigned bits = plumb_dtype_info(tensor->dtype)->bits / plumb_dtype_parts(tensor->dtype);
    out->units[k] = bits > 32 ? 0x1p-53 : 0x1p-24;
    out->counts[k] = tensor->count;
    out->of[k] = arena_array(arena, (size_t)tensor->count + 1, sizeof **out->of);
    for (uint64_t i = 0; out->of[k] && i < tensor->count; i++)
        out->of[k][i] = 0;
}

bool noise_run(const struct plumb_call *call, const struct plumb_arg *outputs, size_t n,
               struct arena *arena, struct noise *out)
{
    bool wide = false;
    out->n = n;
    out->of = arena_array(arena, n, sizeof *out->of);
    out->units = arena_array(arena, n, sizeof *out->units);
    out->counts = arena_array(arena, n, sizeof *out->counts);
    if (!out->of || !out->units || !out->counts)
        return false;
    for (size_t k = 0; k < n; k++) {
        out->of[k] = NULL;
        make_room(arena, &outputs[k], k, out);
        wide |= out->of[k] && out->units[k] < 0x1p-24;
    }
    add_terms(call, arena, out);
    /* A change of float64 shows in binary128 only, which takes its time. */
    if (!wide && !takes_long(call))
        add_changes(call, arena, out);
    return true;
}
