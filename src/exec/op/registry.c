/* Which operator a name means, and in which number type a call is computed. */
#include "base/arena.h"
#include "base/cpu.h"
#include "base/spares.h"
#include "exec/op/def.h"
#include "exec/op/families.h"
#include "exec/op/library.h"
#include "plumb/cpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *name; /* up to a blank or the end */
    size_t length;
    size_t family, def;
    size_t op; /* index in ops */
};

/* Made from the tables on first use, constant afterwards. */
static struct {
    struct entry *entries; /* by name */
    size_t n_entries;
    struct plumb_op *ops;
    size_t n_ops;
} index_;
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static int compare_names(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return compare_names(x->name, x->length, y->name, y->length);
}

static const char *family_name(size_t family)
{
#define NAME(name, class) #name,
    static const char *const names[] = {OP_FAMILIES(NAME)};
#undef NAME
    return names[family];
}

/* Gradients add up what forward operators only move. */
static enum plumb_op_class class_of(size_t family, const struct op_def *d)
{
#define CLASS(name, class) PLUMB_OP_##class,
    static const enum plumb_op_class of_family[] = {OP_FAMILIES(CLASS)};
#undef CLASS
    static const struct {
        enum op_flag flag;
        enum plumb_op_class class;
    } of_row[] = {
        {OP_RANDOM, PLUMB_OP_RANDOM},       {OP_EXACT, PLUMB_OP_EXACT},
        {OP_DECISION, PLUMB_OP_DECISION},   {OP_ELEMENTWISE, PLUMB_OP_ELEMENTWISE},
        {OP_LINEAR, PLUMB_OP_LINEAR},       {OP_BILINEAR, PLUMB_OP_BILINEAR},
        {OP_COMPOSITE, PLUMB_OP_COMPOSITE},
    };
    for (size_t k = 0; k < sizeof of_row / sizeof *of_row; k++)
        if (d->flags & of_row[k].flag)
            return of_row[k].class;
    return of_family[family];
}

static const char *types_of(const char *family, const struct op_def *d)
{
    static const char *const exact[] = {
        "arrange", "binary",  "compare", "convert", "create",    "cumulative", "divide",
        "einsum",  "extreme", "foreach", "gather",  "histogram", "index",      "join",
        "linear",  "order",   "pad",     "part",    "predicate", "product",    "reduce",
        "scatter", "shape",   "ternary", "unary",   "unique",
    };
    const bool complex = d->flags & OP_COMPLEX || op_in_parts_f64(d);
    if (strncmp(d->names, "Complex.", 8) == 0)
        return "complex numbers";
    if (strcmp(family, "bits") == 0)
        return "integers, bool";
    for (size_t k = 0; k < sizeof exact / sizeof *exact; k++)
        if (strcmp(family, exact[k]) == 0)
            return complex ? "floats, integers, bool, complex numbers" : "floats, integers, bool";
    return complex ? "floats, complex numbers" : "floats";
}

static void add_names(const struct op_def *d, size_t family, size_t def, size_t op)
{
    for (const char *s = d->names; *s;) {
        const size_t length = strcspn(s, " ");
        index_.entries[index_.n_entries++] = (struct entry){s, length, family, def, op};
        s += length + strspn(s + length, " ");
    }
}

static void make_index(void)
{
    size_t names = 0, ops = 0;
    const struct op_def *table;
    for (size_t f = 0; (table = op_family_f64(f)); f++)
        for (size_t d = 0; table[d].names; d++, ops++) {
            names++;
            for (const char *s = table[d].names; *s; s++)
                names += *s == ' ';
        }
    index_.entries = calloc(names + 1, sizeof *index_.entries);
    index_.ops = calloc(ops + 1, sizeof *index_.ops);
    if (!index_.entries || !index_.ops)
        return;
    for (size_t f = 0; (table = op_family_f64(f)); f++)
        for (size_t d = 0; table[d].names; d++) {
            const enum plumb_op_class class = class_of(f, &table[d]);
            index_.ops[index_.n_ops] = (struct plumb_op){
                .names = table[d].names,
                .schema = table[d].schema,
                .family = family_name(f),
                .about = table[d].about,
                .types = types_of(family_name(f), &table[d]),
                .backward = !(table[d].flags & OP_NO_GRAD),
                .closed = op_form_f64(&table[d]) != NULL,
                .random = (table[d].flags & OP_RANDOM) != 0,
                .results = class,
                .exact = class == PLUMB_OP_EXACT ||
                         (class == PLUMB_OP_DECISION && !(table[d].flags & OP_COMPUTED))};
            add_names(&table[d], f, d, index_.n_ops++);
        }
    qsort(index_.entries, index_.n_entries, sizeof *index_.entries, by_name);
}

static const struct entry *find(const char *name, size_t length)
{
    size_t low = 0, high = index_.n_entries;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const struct entry *e = &index_.entries[middle];
        const int order = compare_names(name, length, e->name, e->length);
        if (order == 0)
            return e;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* A name as it is looked up: "aten::add_.Tensor" is add_ under Aten. */
struct spelling {
    const char *prefix;
    char name[96];
};

static const struct entry *find_under(const char *prefix, const char *name)
{
    char full[128];
    const size_t a = prefix ? strlen(prefix) : 0, b = strlen(name);
    if (!a || a + b + 1 >= sizeof full)
        return NULL;
    memcpy(full, prefix, a);
    full[a] = '.';
    memcpy(full + a + 1, name, b);
    return find(full, a + 1 + b);
}

static const struct entry *find_bound(const struct spelling *s, bool complex)
{
    const struct entry *e = complex ? find_under("Complex", s->name) : NULL;
    if (!e)
        e = find_under(s->prefix, s->name);
    return e ? e : find(s->name, strlen(s->name));
}

/* What a dispatcher trace puts before a name, and the prefix of dumps that it stands for. */
static const char *skip_namespace(const char *name, const char **prefix)
{
    static const struct {
        const char *text, *prefix;
    } spaces[] = {{"aten::", "Aten"}, {"aten.", "Aten"}, {"npu::", "NPU"},
                  {"npu.", "NPU"},    {"_C::", "_C"},    {"transformers::", "transformers"}};
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++) {
        const size_t length = strlen(spaces[k].text);
        if (strncmp(name, spaces[k].text, length) == 0) {
            *prefix = spaces[k].prefix;
            return name + length;
        }
    }
    return name;
}

/* Tries the name whole, then without the overload behind its last dot. */
static const struct entry *lookup(const char *prefix, const char *name, bool complex,
                                  struct spelling *s)
{
    pthread_once(&index_once, make_index);
    s->prefix = prefix;
    name = skip_namespace(name, &s->prefix);
    const size_t length = strlen(name);
    if (length >= sizeof s->name)
        return NULL;
    memcpy(s->name, name, length + 1);
    const struct entry *e = find_bound(s, complex);
    char *overload = e ? NULL : strrchr(s->name, '.');
    if (!overload)
        return e;
    *overload = '\0';
    return find_bound(s, complex);
}

static const struct plumb_op *find_op(const char *prefix, const char *name)
{
    struct spelling s;
    const struct entry *e = lookup(prefix, name, false, &s);
    return e ? &index_.ops[e->op] : NULL;
}

static const struct plumb_op *op_of(const struct plumb_call *call)
{
    struct spelling s;
    const struct entry *e = lookup(call->prefix, call->name, op_call_is_complex(call), &s);
    return e ? &index_.ops[e->op] : NULL;
}

static const struct plumb_op *op_at(size_t i)
{
    pthread_once(&index_once, make_index);
    return i < index_.n_ops ? &index_.ops[i] : NULL;
}

static bool is_wide(const struct plumb_arg *arg)
{
    const enum plumb_dtype dtype = arg->kind == PLUMB_ARG_TENSOR  ? arg->tensor->dtype
                                   : arg->kind == PLUMB_ARG_DTYPE ? arg->dtype
                                                                  : PLUMB_DTYPE_COUNT;
    return dtype == PLUMB_F64 || dtype == PLUMB_C128;
}

static bool is_complex(const struct plumb_arg *arg)
{
    const enum plumb_dtype dtype = arg->kind == PLUMB_ARG_TENSOR  ? arg->tensor->dtype
                                   : arg->kind == PLUMB_ARG_DTYPE ? arg->dtype
                                                                  : PLUMB_DTYPE_COUNT;
    return dtype == PLUMB_C64 || dtype == PLUMB_C128 || arg->kind == PLUMB_ARG_COMPLEX;
}

static bool holds(const struct plumb_arg *arg, bool (*is)(const struct plumb_arg *arg))
{
    if (arg->kind == PLUMB_ARG_LIST)
        for (size_t k = 0; k < arg->n_items; k++)
            if (holds(&arg->items[k], is))
                return true;
    return is(arg);
}

static bool call_holds(const struct plumb_call *call, bool (*is)(const struct plumb_arg *arg))
{
    for (size_t k = 0; k < call->n_args; k++)
        if (holds(&call->args[k], is))
            return true;
    for (size_t k = 0; k < call->n_kwargs; k++)
        if (holds(&call->kwargs[k].value, is))
            return true;
    return false;
}

bool op_call_is_complex(const struct plumb_call *call)
{
    return call_holds(call, is_complex);
}

static op_call_fn *copy_for(enum plumb_precision precision, bool wide)
{
    if (precision == PLUMB_RAISED && wide)
        return op_call_f128;
    const bool f64 = precision == PLUMB_RAISED || wide;
#ifdef OP_HAVE_AVX2
    if (cpu_has_avx2(cpu_mask()))
        return f64 ? op_call_f64_avx2 : op_call_f32_avx2;
#endif
    return f64 ? op_call_f64 : op_call_f32;
}

/* What results and the steps to them lay in, for the next call. */
static struct spares spares = SPARES((size_t)256 << 20);

static enum plumb_code run_op(const struct plumb_call *call, enum plumb_precision precision,
                              unsigned mask, struct plumb_result *out, struct plumb_error *err)
{
    struct spelling s;
    const struct entry *e = lookup(call->prefix, call->name, op_call_is_complex(call), &s);
    if (!e)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "plumb has no operator '%s'", call->name);
    struct arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory in %s", call->name);
    arena->spares = &spares;
    out->memory = arena;
    struct plumb_call plain = *call; /* operators read the name: add_ stays add_, conv2d conv2d */
    plain.prefix = s.prefix;
    plain.name = s.name;
    plumb_cpu_mask(mask); /* this library has a copy of that state */
    /* What errors do can be seen with larger ones: they need no binary128. */
    const bool wide = call_holds(call, is_wide);
    op_call_fn *const run =
        copy_for(precision, call->noise ? precision == PLUMB_OWN && wide : wide);
    return run(e->family, e->def, &plain, precision == PLUMB_RAISED, arena, out, err);
}

const struct op_library plumb_operators = {
    .version = PLUMB_VERSION, .find = find_op, .of = op_of, .at = op_at, .run = run_op};
