/* The settings that a module may have had, recorded or guessed. */
#include "task/blame/modules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TRIES = 64, MAX_VALUES = 24, MAX_SETTINGS = 10 };

/* ---- Values that a setting may have ---------------------------------------------------------- */

struct choice {
    const char *keyword;
    struct plumb_arg values[MAX_VALUES];
    size_t count;
    bool recorded, complete;
};

static void add_int(struct choice *choice, int64_t value)
{
    for (size_t k = 0; k < choice->count; k++)
        if (choice->values[k].integer == value)
            return;
    if (choice->count < MAX_VALUES)
        choice->values[choice->count++] =
            (struct plumb_arg){.kind = PLUMB_ARG_INT, .integer = value};
}

static void add_float(struct choice *choice, double value)
{
    if (choice->count < MAX_VALUES)
        choice->values[choice->count++] =
            (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = value};
}

static void add_text(struct choice *choice, const char *value)
{
    if (choice->count < MAX_VALUES)
        choice->values[choice->count++] = (struct plumb_arg){.kind = PLUMB_ARG_TEXT, .text = value};
}

static void add_bool(struct choice *choice, bool value)
{
    if (choice->count < MAX_VALUES)
        choice->values[choice->count++] =
            (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = value};
}

/* A list of sizes; false when out of memory. */
static bool add_sizes(struct choice *choice, const int64_t *sizes, size_t n, struct arena *arena)
{
    struct plumb_arg *items = arena_array(arena, n + 1, sizeof *items);
    if (!items)
        return false;
    for (size_t k = 0; k < n; k++)
        items[k] = (struct plumb_arg){.kind = PLUMB_ARG_INT, .integer = sizes[k]};
    if (choice->count < MAX_VALUES)
        choice->values[choice->count++] =
            (struct plumb_arg){.kind = PLUMB_ARG_LIST, .items = items, .n_items = n};
    return true;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Usual numbers. */
static const struct {
    const char *keyword;
    double values[10];
    size_t count;
    bool whole;
} usual[] = {
    {"eps", {1e-5, 1e-6, 1e-8, 1e-12, 1e-3, 1e-4, 1e-7, 1e-2}, 8, false},
    {"negative_slope", {0.01, 0.2, 0.1, 0.05, 0.3}, 5, false},
    {"alpha", {1.0}, 1, false},
    {"beta", {1.0}, 1, false},
    {"threshold", {20}, 1, false},
    {"delta", {1.0}, 1, false},
    {"lambd", {0.5}, 1, false},
    {"min_val", {-1, 0}, 2, false},
    {"max_val", {1, 6}, 2, false},
    {"label_smoothing", {0, 0.1}, 2, false},
    {"stride", {1, 2, 4, 8, 14, 16, 32, 3}, 8, true},
    {"padding", {0, 1, 2, 3, 4}, 5, true},
    {"dilation", {1, 2}, 2, true},
    {"output_padding", {0, 1}, 2, true},
    {"kernel_size", {2, 3, 4, 5, 7}, 5, true},
};

static void add_usual(struct choice *choice)
{
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        for (size_t v = 0; is(usual[k].keyword, choice->keyword) && v < usual[k].count; v++)
            if (usual[k].whole)
                add_int(choice, (int64_t)usual[k].values[v]);
            else
                add_float(choice, usual[k].values[v]);
}

static void add_divisors(struct choice *choice, int64_t n)
{
    static const int64_t first[] = {32, 16, 8, 4, 2, 1};
    for (size_t k = 0; k < sizeof first / sizeof *first; k++)
        if (n % first[k] == 0)
            add_int(choice, first[k]);
    for (int64_t k = 1; k <= n && k <= 4096; k++)
        if (n % k == 0)
            add_int(choice, k);
}

/* What follows from the shapes of input, output and weight. False when out of memory. */
static bool add_by_shape(struct choice *choice, const struct module_facts *f, struct arena *arena)
{
    const struct plumb_tensor *x = f->input, *y = f->output, *w = f->weight;
    const char *keyword = choice->keyword;
    if (is(keyword, "normalized_shape")) {
        choice->complete = w || x->rank == 0;
        return add_sizes(choice, w ? w->shape : &x->shape[x->rank ? x->rank - 1 : 0],
                         w ? w->rank : x->rank > 0, arena);
    }
    if (is(keyword, "shape")) {
        choice->complete = true;
        return add_sizes(choice, y->shape, y->rank, arena);
    }
    if (is(keyword, "output_size")) {
        const unsigned n = f->dimensions < y->rank ? f->dimensions : y->rank;
        choice->complete = true;
        return add_sizes(choice, &y->shape[y->rank - n], n, arena);
    }
    if (is(keyword, "groups")) {
        choice->complete = w && w->rank > 1 && x->rank > f->dimensions;
        const int64_t in = choice->complete ? x->shape[x->rank - f->dimensions - 1] : 1;
        const bool transposed = strncmp(f->class->op, "conv_t", 6) == 0;
        const int64_t out = y->rank > f->dimensions ? y->shape[y->rank - f->dimensions - 1] : 1;
        const int64_t each = choice->complete ? w->shape[1] : 1;
        add_int(choice, each > 0 ? (transposed ? out : in) / each : 1);
    } else if (is(keyword, "num_groups")) {
        add_divisors(choice, x->rank > 1 ? x->shape[1] : 1);
    } else if (is(keyword, "dim")) {
        choice->complete = true;
        for (unsigned k = x->rank; k--;)
            add_int(choice, k);
    }
    return true;
}

static void add_words(struct choice *choice, const struct module_facts *f)
{
    const char *keyword = choice->keyword;
    const bool closed = is(keyword, "approximate") || is(keyword, "reduction") ||
                        is(keyword, "training") || is(keyword, "use_input_stats") ||
                        is(keyword, "log_target") || is(keyword, "ceil_mode") ||
                        is(keyword, "count_include_pad");
    choice->complete |= closed;
    if (is(keyword, "approximate")) {
        add_text(choice, "none");
        add_text(choice, "tanh");
    } else if (is(keyword, "reduction")) {
        add_text(choice, f->output->rank ? "none" : "mean");
        if (!f->output->rank)
            add_text(choice, "sum");
        if (!f->output->rank && is(f->class->op, "kl_div"))
            add_text(choice, "batchmean");
    } else if (is(keyword, "training")) {
        if (f->buffers)
            add_bool(choice, false);
        add_bool(choice, true);
        choice->complete = f->buffers;
    } else if (is(keyword, "use_input_stats")) {
        add_bool(choice, true);
        if (f->buffers)
            add_bool(choice, false);
    } else if (is(keyword, "log_target") || is(keyword, "ceil_mode")) {
        add_bool(choice, false);
        add_bool(choice, true);
    } else if (is(keyword, "count_include_pad")) {
        add_bool(choice, true);
        add_bool(choice, false);
    }
}

/* ---- Recorded settings ----------------------------------------------------------------------- */

/* As an argument of a call; false when out of memory. */
static bool convert(const struct case_arg *from, struct plumb_arg *out, struct arena *arena)
{
    *out = from->value;
    if (from->value.kind != PLUMB_ARG_LIST)
        return true;
    struct plumb_arg *items = arena_array(arena, from->n_items + 1, sizeof *items);
    for (size_t k = 0; items && k < from->n_items; k++)
        items[k] = from->items[k].value;
    out->items = items;
    out->n_items = from->n_items;
    return items != NULL;
}

static bool says(const struct module_facts *f, const char *name, const char *text)
{
    const struct case_arg *arg = settings_get(f->settings, name);
    return arg && arg->value.kind == PLUMB_ARG_TEXT && is(arg->value.text, text);
}

static bool is_on(const struct module_facts *f, const char *name)
{
    const struct case_arg *arg = settings_get(f->settings, name);
    return arg && arg->value.kind == PLUMB_ARG_BOOL && arg->value.integer;
}

/* A norm that keeps no statistics always takes those of its input. */
static bool own_statistics(const struct module_facts *f)
{
    return is_on(f, "training") ||
           (settings_get(f->settings, "track_running_stats") && !is_on(f, "track_running_stats"));
}

/* Takes what was recorded under that name; false when out of memory. */
static bool take_recorded(struct choice *choice, const char *attribute,
                          const struct module_facts *f, struct arena *arena)
{
    const struct case_arg *arg = settings_get(f->settings, attribute);
    const bool statistics =
        is(choice->keyword, "training") || is(choice->keyword, "use_input_stats");
    if (!arg && is(attribute, "variance_epsilon"))
        arg = settings_get(f->settings, "eps");
    if (statistics && settings_get(f->settings, "training")) {
        choice->recorded = choice->complete = true;
        add_bool(choice, own_statistics(f));
        return true;
    }
    if (!arg || is(choice->keyword, "shape"))
        return true;
    choice->recorded = choice->complete = true;
    choice->count = 1;
    return convert(arg, &choice->values[0], arena);
}

static enum plumb_code refuse(const struct module_facts *f, struct plumb_error *err)
{
    const struct case_arg *mode = settings_get(f->settings, "padding_mode");
    if (mode && !says(f, "padding_mode", "zeros"))
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "its padding is not of zeros");
    if (is_on(f, "return_indices"))
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "it returns indices as well");
    if (is(f->class->op, "clone") && is_on(f, "training") && settings_get(f->settings, "p"))
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "the results are random");
    return PLUMB_OK;
}

/* ---- All ways -------------------------------------------------------------------------------- */

/* What the class itself says, "mode:reflect" or "dim:-3"; false when out of memory. */
static bool take_constant(struct choice *choice, const char *text, size_t length,
                          struct arena *arena)
{
    const char *value = arena_copy(arena, text, length);
    choice->recorded = choice->complete = true;
    if (value && (*value == '-' || (*value >= '0' && *value <= '9')))
        add_int(choice, strtoll(value, NULL, 10));
    else if (value)
        add_text(choice, value);
    return value != NULL;
}

/* One setting of the class; a setting that has no usual values keeps its default. */
static bool choose(struct choice *choice, const char *word, size_t length,
                   const struct module_facts *f, struct arena *arena)
{
    const char *equals = memchr(word, '=', length), *colon = memchr(word, ':', length);
    const size_t name = equals ? (size_t)(equals - word) : colon ? (size_t)(colon - word) : length;
    *choice = (struct choice){.keyword = arena_copy(arena, word, name)};
    const char *attribute =
        equals ? arena_copy(arena, equals + 1, length - name - 1) : choice->keyword;
    if (choice->keyword && colon)
        return take_constant(choice, colon + 1, length - name - 1, arena);
    if (!choice->keyword || !attribute || !take_recorded(choice, attribute, f, arena))
        return false;
    if (choice->recorded)
        return true;
    if (!add_by_shape(choice, f, arena))
        return false;
    add_words(choice, f);
    add_usual(choice);
    if (is(choice->keyword, "eps") && is(f->class->op, "rms_norm"))
        choice->values[choice->count++] = (struct plumb_arg){.kind = PLUMB_ARG_NONE};
    return true;
}

static bool number_of(const struct module_try *try, const char *keyword, int64_t *out)
{
    for (size_t k = 0; k < try->count; k++)
        if (is(try->kwargs[k].name, keyword) && (try->kwargs[k].value.kind == PLUMB_ARG_INT ||
                                                 try->kwargs[k].value.kind == PLUMB_ARG_BOOL)) {
            *out = try->kwargs[k].value.integer;
            return true;
        }
    return false;
}

/* Small enough to compute with. */
static bool is_size(int64_t value)
{
    return value >= 0 && value <= INT32_MAX / 4;
}

/* Whether the shapes allow it, dimension by dimension; sizes that are lists are not looked at. */
static bool fits(const struct module_try *try, const struct module_facts *f)
{
    const bool conv = strncmp(f->class->op, "conv", 4) == 0;
    const bool transposed = strncmp(f->class->op, "conv_t", 6) == 0;
    int64_t s, p, d = 1, k = 0, more = 0, up = 0;
    if (!number_of(try, "stride", &s) || !number_of(try, "padding", &p))
        return true;
    number_of(try, "dilation", &d);
    number_of(try, "output_padding", &more);
    number_of(try, "kernel_size", &k);
    number_of(try, "ceil_mode", &up);
    if (!is_size(s) || !is_size(p) || !is_size(d) || !is_size(k) || !is_size(more) || !s)
        return false;
    for (unsigned i = 1; i <= f->dimensions && i <= f->input->rank && i <= f->output->rank; i++) {
        const int64_t in = f->input->shape[f->input->rank - i];
        const int64_t out = f->output->shape[f->output->rank - i];
        if (conv)
            k = f->weight && i <= f->weight->rank ? f->weight->shape[f->weight->rank - i] : 1;
        if (!is_size(in) || !is_size(k))
            return true;
        const int64_t reach = d * (k - 1) + 1;
        const int64_t room = in + 2 * p - reach + (up ? s - 1 : 0);
        const int64_t size = transposed ? (in - 1) * s - 2 * p + reach + more : room / s + 1;
        if (size != out || more >= (s > d ? s : d) || (!conv && 2 * p > k))
            return false;
    }
    return true;
}

static enum plumb_code add_try(const struct choice *choices, size_t n, const size_t *which,
                               struct arena *arena, struct module_tries *out,
                               struct plumb_error *err)
{
    struct module_try *try = &out->list[out->count];
    *try =
        (struct module_try){.kwargs = arena_array(arena, n + 1, sizeof *try->kwargs), .eps = NAN};
    if (!try->kwargs)
        return plumb_no_memory(err);
    for (size_t k = 0; k < n; k++) {
        if (!choices[k].count)
            continue;
        try->kwargs[try->count++] =
            (struct plumb_kwarg){.name = choices[k].keyword, .value = choices[k].values[which[k]]};
        const struct plumb_arg *value = &choices[k].values[which[k]];
        if (is(choices[k].keyword, "eps") && !choices[k].recorded && value->kind == PLUMB_ARG_FLOAT)
            try->eps = value->number;
    }
    return PLUMB_OK;
}

/* Every combination that the shapes allow, the last setting moving fastest, up to a limit; the
 * first one in any case. */
static enum plumb_code combine(const struct choice *choices, size_t n, const struct module_facts *f,
                               struct arena *arena, struct module_tries *out,
                               struct plumb_error *err)
{
    size_t which[MAX_SETTINGS] = {0};
    enum plumb_code code = PLUMB_OK;
    out->list = arena_array(arena, MAX_TRIES, sizeof *out->list);
    if (!out->list)
        return plumb_no_memory(err);
    for (bool more = true; more && !code && out->count < MAX_TRIES;) {
        code = add_try(choices, n, which, arena, out, err);
        out->count += !code && fits(&out->list[out->count], f);
        more = false;
        for (size_t k = n; k-- && !more;) {
            more = which[k] + 1 < choices[k].count;
            which[k] = more ? which[k] + 1 : 0;
        }
        if (more && out->count == MAX_TRIES)
            out->complete = false;
    }
    memset(which, 0, sizeof which);
    if (!code && !out->count) {
        code = add_try(choices, n, which, arena, out, err);
        out->count = 1;
    }
    return code;
}

enum plumb_code modules_tries(const struct module_facts *f, struct arena *arena,
                              struct module_tries *out, struct plumb_error *err)
{
    struct choice choices[MAX_SETTINGS];
    size_t n = 0;
    *out = (struct module_tries){.complete = true};
    enum plumb_code code = refuse(f, err);
    for (const char *at = f->class->settings; *at && !code && n < MAX_SETTINGS;) {
        const size_t length = strcspn(at, " ");
        struct choice *choice = &choices[n++];
        const bool needed = at[length - 1] == '!';
        if (!choose(choice, at, length - needed, f, arena))
            return plumb_no_memory(err);
        const bool eps = is(choice->keyword, "eps");
        if (!choice->recorded && needed)
            code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "its %s was not recorded", choice->keyword);
        if (!choice->complete && choice->count) {
            out->guessed = out->guessed
                               ? arena_printf(arena, "%s, %s", out->guessed, choice->keyword)
                               : choice->keyword;
            out->complete &= eps;
            out->any_eps |= eps;
        }
        at += length;
        at += strspn(at, " ");
    }
    if (!code)
        code = combine(choices, n, f, arena, out, err);
    return code;
}
