/* Choices among equals within windows. */
#include "verdict/ties_window.h"

#include <math.h>
#include <string.h>

enum { DIMS = 3 };

/* Windows over x: [planes][size...], one for each element of the output [planes][out...]; a window
 * of an adaptive pool lies between fractions of the size. A reduction is one dimension wide after
 * its dimensions were brought together, element k of a window being `step` further. */
struct windows {
    const struct plumb_tensor *x, *y; /* input, and the values that were chosen */
    unsigned dims;
    int64_t size[DIMS], out[DIMS], kernel[DIMS], stride[DIMS], padding[DIMS], dilation[DIMS];
    bool adaptive;
    uint64_t plane, out_plane; /* elements of each */
    uint64_t length, inner;    /* of a reduction: x is [outer][length][inner]; 0: a pool */
};

/* ---- Arguments ------------------------------------------------------------------------------- */

static const struct plumb_arg *argument(const struct plumb_call *call, size_t position,
                                        const char *name)
{
    for (size_t k = 0; k < call->n_kwargs; k++)
        if (strcmp(call->kwargs[k].name, name) == 0)
            return &call->kwargs[k].value;
    return position < call->n_args ? &call->args[position] : NULL;
}

/* One number for each dimension; one alone stands for all. False when it is something else. */
static bool numbers(const struct plumb_arg *arg, unsigned n, const int64_t *otherwise, int64_t *out)
{
    if (!arg || arg->kind == PLUMB_ARG_NONE || (arg->kind == PLUMB_ARG_LIST && !arg->n_items)) {
        memcpy(out, otherwise, n * sizeof *out);
        return true;
    }
    if (arg->kind == PLUMB_ARG_INT) {
        for (unsigned d = 0; d < n; d++)
            out[d] = arg->integer;
        return true;
    }
    bool good = arg->kind == PLUMB_ARG_LIST && (arg->n_items == n || arg->n_items == 1);
    for (unsigned d = 0; good && d < n; d++) {
        const struct plumb_arg *item = &arg->items[arg->n_items == 1 ? 0 : d];
        good = item->kind == PLUMB_ARG_INT;
        out[d] = item->integer;
    }
    return good;
}

static const struct plumb_tensor *tensor_of(const struct plumb_arg *arg)
{
    return arg && arg->kind == PLUMB_ARG_TENSOR ? arg->tensor : NULL;
}

/* ---- Which windows --------------------------------------------------------------------------- */

static bool make_pool(struct windows *w, const struct plumb_call *call, unsigned dims)
{
    static const int64_t ones[DIMS] = {1, 1, 1}, zeros[DIMS] = {0};
    if (w->x->rank < dims || w->y->rank != w->x->rank)
        return false;
    w->dims = dims;
    w->plane = w->out_plane = 1;
    for (unsigned d = 0; d < dims; d++) {
        w->size[d] = w->x->shape[w->x->rank - dims + d];
        w->out[d] = w->y->shape[w->x->rank - dims + d];
        w->plane *= (uint64_t)w->size[d];
        w->out_plane *= (uint64_t)w->out[d];
    }
    if (w->adaptive)
        return true;
    bool good = numbers(argument(call, 1, "kernel_size"), dims, ones, w->kernel) &&
                numbers(argument(call, 2, "stride"), dims, w->kernel, w->stride) &&
                numbers(argument(call, 3, "padding"), dims, zeros, w->padding) &&
                numbers(argument(call, 4, "dilation"), dims, ones, w->dilation);
    for (unsigned d = 0; good && d < dims; d++)
        good = w->kernel[d] > 0 && w->stride[d] > 0 && w->dilation[d] > 0 && w->padding[d] >= 0 &&
               w->kernel[d] <= w->size[d] + 2 * w->padding[d];
    return good;
}

/* Reductions over one dimension, or over all. */
static bool make_reduction(struct windows *w, const struct plumb_call *call, size_t position)
{
    const struct plumb_arg *dim = argument(call, position, "dim");
    if (!dim)
        dim = argument(call, position, "axis");
    if (dim && dim->kind == PLUMB_ARG_LIST && dim->n_items == 1)
        dim = &dim->items[0];
    w->length = w->x->count;
    w->inner = 1;
    if (!dim || dim->kind == PLUMB_ARG_NONE)
        return w->y->count == 1;
    const int64_t at = dim->integer + (dim->integer < 0 ? w->x->rank : 0);
    if (dim->kind != PLUMB_ARG_INT || at < 0 || at >= w->x->rank)
        return false;
    w->length = (uint64_t)w->x->shape[at];
    for (unsigned d = (unsigned)at + 1; d < w->x->rank; d++)
        w->inner *= (uint64_t)w->x->shape[d];
    return w->length && w->y->count == w->x->count / w->length;
}

static bool is_named(const char *name, const char *wanted)
{
    const size_t length = strcspn(name, ".");
    return strlen(wanted) == length && memcmp(name, wanted, length) == 0;
}

static bool find_windows(struct windows *w, const struct plumb_call *call,
                         const struct plumb_result *bench)
{
    static const struct {
        const char *name;
        size_t dim; /* position of that argument */
    } reductions[] = {{"max", 1},    {"min", 1},       {"amax", 1}, {"amin", 1},
                      {"median", 1}, {"nanmedian", 1}, {"mode", 1}, {"kthvalue", 2}};
    w->x = tensor_of(argument(call, 0, "input"));
    w->y = bench->n_outputs ? tensor_of(&bench->outputs[0]) : NULL;
    if (!w->x || !w->y || !w->x->count || !w->y->count ||
        plumb_dtype_info(w->x->dtype)->kind != PLUMB_KIND_FLOAT)
        return false;
    const char *pool = strstr(call->name, "max_pool");
    w->adaptive = strstr(call->name, "adaptive") != NULL;
    if (pool && pool[8] >= '1' && pool[8] <= '3' && pool[9] == 'd' && !strstr(pool, "backward"))
        return make_pool(w, call, (unsigned)(pool[8] - '0'));
    for (size_t k = 0; k < sizeof reductions / sizeof *reductions; k++)
        if (is_named(call->name, reductions[k].name))
            return make_reduction(w, call, reductions[k].dim);
    return false;
}

/* ---- Walking through one --------------------------------------------------------------------- */

/* The range of a pool's window in one dimension, and its step. */
struct side {
    int64_t first, end, step;
};

static struct side side_of(const struct windows *w, unsigned d, int64_t at)
{
    if (w->adaptive)
        return (struct side){at * w->size[d] / w->out[d],
                             ((at + 1) * w->size[d] + w->out[d] - 1) / w->out[d], 1};
    struct side s = {at * w->stride[d] - w->padding[d], 0, w->dilation[d]};
    s.end = s.first + (w->kernel[d] - 1) * w->dilation[d] + 1;
    while (s.first < 0)
        s.first += s.step;
    s.end = s.end < w->size[d] ? s.end : w->size[d];
    return s;
}

/* Calls visit with the elements of window k until it returns false. */
typedef bool visit_fn(void *context, uint64_t element);

static void visit_window(const struct windows *w, uint64_t k, visit_fn *visit, void *context)
{
    if (w->length) {
        const uint64_t first = k / w->inner * w->length * w->inner + k % w->inner;
        for (uint64_t i = 0; i < w->length; i++)
            if (!visit(context, first + i * w->inner))
                return;
        return;
    }
    struct side s[DIMS] = {{0, 1, 1}, {0, 1, 1}, {0, 1, 1}};
    uint64_t rest = k % w->out_plane;
    for (unsigned d = w->dims; d-- > 0; rest /= (uint64_t)w->out[d])
        s[DIMS - w->dims + d] = side_of(w, d, (int64_t)(rest % (uint64_t)w->out[d]));
    const int64_t rows = w->dims > 1 ? w->size[w->dims - 2] : 1, row = w->size[w->dims - 1];
    const uint64_t base = k / w->out_plane * w->plane;
    for (int64_t a = s[0].first; a < s[0].end; a += s[0].step)
        for (int64_t b = s[1].first; b < s[1].end; b += s[1].step)
            for (int64_t c = s[2].first; c < s[2].end; c += s[2].step)
                if (!visit(context, base + (uint64_t)((a * rows + b) * row + c)))
                    return;
}

/* ---- Indices --------------------------------------------------------------------------------- */

struct search {
    uint64_t element;
    bool found;
};

static bool see_element(void *context, uint64_t element)
{
    struct search *s = context;
    s->found = element == s->element;
    return !s->found;
}

static bool equal(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* The device's indices of max pooling, where they lead to elements of the window as large. */
static enum plumb_code settle_indices(const struct windows *w, const double *x, const double *y,
                                      const struct plumb_result *device, struct plumb_result *bench,
                                      struct arena *arena, uint64_t *settled)
{
    const struct plumb_tensor *ours = bench->n_outputs > 1 ? tensor_of(&bench->outputs[1]) : NULL;
    const struct plumb_tensor *theirs =
        device->n_outputs > 1 ? tensor_of(&device->outputs[1]) : NULL;
    if (w->length || !ours || !theirs || ours->dtype != PLUMB_I64 || theirs->dtype != PLUMB_I64 ||
        ours->count != w->y->count || theirs->count != w->y->count)
        return PLUMB_OK;
    int64_t *taken = arena_array(arena, ours->count, sizeof *taken);
    struct plumb_tensor *tensor = arena_alloc(arena, sizeof *tensor);
    if (!taken || !tensor)
        return PLUMB_E_NOMEM;
    plumb_tensor_gather(ours, 0, ours->count, taken);
    uint64_t n = 0;
    for (uint64_t k = 0; k < ours->count; k++) {
        int64_t at;
        plumb_tensor_gather(theirs, k, 1, &at);
        if (at == taken[k] || at < 0 || (uint64_t)at >= w->plane)
            continue;
        struct search s = {.element = k / w->out_plane * w->plane + (uint64_t)at};
        visit_window(w, k, see_element, &s);
        if (!s.found || !equal(x[s.element], y[k]))
            continue;
        taken[k] = at;
        n++;
    }
    *settled += n;
    *tensor = *ours;
    tensor->data = taken;
    tensor->dense = true;
    if (n)
        bench->outputs[1].tensor = tensor;
    return PLUMB_OK;
}

/* ---- The gradient ---------------------------------------------------------------------------- */

/* Elements that gradients may be moved between: sets, as trees that lead to their first member. */
struct sets {
    const double *x;
    uint64_t *parent;
    double *due, *most;  /* by root: the gradient that must arrive, and its absolute size */
    double *come, *size; /* the same of what the device gave */
    uint32_t *members;
    double value;   /* of the window at hand */
    uint64_t first; /* of its equals; UINT64_MAX: none yet */
};

static uint64_t root_of(struct sets *s, uint64_t k)
{
    while (s->parent[k] != k) {
        s->parent[k] = s->parent[s->parent[k]];
        k = s->parent[k];
    }
    return k;
}

static bool join_equal(void *context, uint64_t element)
{
    struct sets *s = context;
    if (!equal(s->x[element], s->value))
        return true;
    if (s->first == UINT64_MAX) {
        s->first = root_of(s, element);
        return true;
    }
    const uint64_t other = root_of(s, element);
    const uint64_t low = other < s->first ? other : s->first;
    s->parent[other] = s->parent[s->first] = low;
    s->first = low;
    return true;
}

static bool find_first(void *context, uint64_t element)
{
    struct sets *s = context;
    if (!equal(s->x[element], s->value))
        return true;
    s->first = element;
    return false;
}

static void make_sets(struct sets *s, const struct windows *w, const double *y,
                      const struct plumb_tensor *grad)
{
    for (uint64_t k = 0; k < w->x->count; k++)
        s->parent[k] = k;
    for (uint64_t k = 0; k < w->y->count; k++) {
        s->value = y[k];
        s->first = UINT64_MAX;
        visit_window(w, k, join_equal, s);
    }
    for (uint64_t k = 0; k < w->y->count; k++) {
        double g;
        s->value = y[k];
        s->first = UINT64_MAX;
        visit_window(w, k, find_first, s);
        if (s->first == UINT64_MAX)
            continue;
        plumb_tensor_to_f64(grad, k, 1, &g);
        const uint64_t root = root_of(s, s->first);
        s->due[root] += g;
        s->most[root] += fabs(g);
    }
}

/* All of the gradient arrived in a set, but for the rounding of its members. */
static bool arrived(const struct sets *s, uint64_t root, double unit)
{
    const double slack = 2 * unit * (s->members[root] + 1) * s->most[root];
    return s->members[root] > 1 && fabs(s->due[root] - s->come[root]) <= slack &&
           s->size[root] <= s->most[root] + slack;
}

static bool alloc_sets(struct sets *s, size_t n, struct arena *arena)
{
    double **const numbers_of[] = {&s->due, &s->most, &s->come, &s->size};
    s->parent = arena_array(arena, n, sizeof *s->parent);
    s->members = arena_array(arena, n, sizeof *s->members);
    bool good = s->parent && s->members;
    for (size_t k = 0; k < sizeof numbers_of / sizeof *numbers_of && good; k++) {
        *numbers_of[k] = arena_array(arena, n, sizeof(double));
        good = *numbers_of[k] != NULL;
        if (good)
            memset(*numbers_of[k], 0, n * sizeof(double));
    }
    if (good)
        memset(s->members, 0, n * sizeof *s->members);
    return good;
}

/* Whether two gradients differ by more than rounding anywhere: most do not, and are done with. */
static bool differ(const double *got, const double *ours, uint64_t n, double unit)
{
    for (uint64_t k = 0; k < n; k++)
        if (fabs(got[k] - ours[k]) > 16 * unit * (fabs(got[k]) + fabs(ours[k])))
            return true;
    return false;
}

static enum plumb_code settle_gradient(const struct windows *w, const double *x, const double *y,
                                       const struct plumb_call *call,
                                       const struct plumb_result *device,
                                       struct plumb_result *bench, struct arena *arena,
                                       uint64_t *settled)
{
    const struct plumb_tensor *grad = call->n_grads ? call->grads[0] : NULL;
    const struct plumb_tensor *theirs = device->n_grads ? tensor_of(&device->grads[0]) : NULL;
    const struct plumb_tensor *ours = bench->n_grads ? tensor_of(&bench->grads[0]) : NULL;
    const uint64_t n = w->x->count;
    if (!grad || !theirs || !ours || grad->count != w->y->count || theirs->count != n ||
        ours->count != n || ours->dtype != PLUMB_F64 ||
        plumb_dtype_info(theirs->dtype)->kind != PLUMB_KIND_FLOAT)
        return PLUMB_OK;
    const double unit = ldexp(1, -plumb_dtype_info(theirs->dtype)->precision);
    double *got = arena_array(arena, n, sizeof *got), *taken = arena_array(arena, n, sizeof *taken);
    struct plumb_tensor *tensor = arena_alloc(arena, sizeof *tensor);
    struct sets s = {.x = x};
    if (!got || !taken || !tensor)
        return PLUMB_E_NOMEM;
    plumb_tensor_to_f64(theirs, 0, n, got);
    plumb_tensor_to_f64(ours, 0, n, taken);
    if (!differ(got, taken, n, unit))
        return PLUMB_OK;
    if (!alloc_sets(&s, n, arena))
        return PLUMB_E_NOMEM;
    make_sets(&s, w, y, grad);
    for (uint64_t k = 0; k < n; k++) {
        const uint64_t root = root_of(&s, k);
        s.members[root]++;
        s.come[root] += got[k];
        s.size[root] += fabs(got[k]);
    }
    uint64_t moved = 0;
    for (uint64_t k = 0; k < n; k++) {
        if (got[k] == taken[k] || !arrived(&s, root_of(&s, k), unit))
            continue;
        taken[k] = got[k];
        moved++;
    }
    *settled += moved;
    *tensor = *ours;
    tensor->data = taken;
    tensor->dense = true;
    if (moved)
        bench->grads[0].tensor = tensor;
    return PLUMB_OK;
}

enum plumb_code ties_settle_windows(const struct plumb_call *call,
                                    const struct plumb_result *device, struct plumb_result *bench,
                                    struct arena *arena, uint64_t *settled)
{
    struct windows w = {0};
    const bool asked = device->n_outputs > 1 || device->n_grads;
    if (!asked || !find_windows(&w, call, bench) ||
        (!w.length && w.x->count / w.plane != w.y->count / w.out_plane))
        return PLUMB_OK;
    double *x = arena_array(arena, w.x->count, sizeof *x);
    double *y = arena_array(arena, w.y->count, sizeof *y);
    if (!x || !y)
        return PLUMB_E_NOMEM;
    plumb_tensor_to_f64(w.x, 0, w.x->count, x);
    plumb_tensor_to_f64(w.y, 0, w.y->count, y);
    const enum plumb_code code = settle_indices(&w, x, y, device, bench, arena, settled);
    return code ? code : settle_gradient(&w, x, y, call, device, bench, arena, settled);
}
