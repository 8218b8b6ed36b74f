/* Operators of real numbers on complex ones, part by part. */
#include "exec/op/parts.h"

#include "exec/op/bind.h"
#include "exec/op/squares.h"

#include <string.h>

/* ---- Blocks ---------------------------------------------------------------------------------- */

struct val *v_part(struct op *o, struct val *z, unsigned part)
{
    int64_t stride[OP_RANK], step = 2;
    if (!z || !z->rank)
        return NULL;
    for (unsigned d = z->rank - 1; d-- > 0; step *= z->shape[d])
        stride[d] = step;
    return v_strided(o, z, z->rank - 1, z->shape, stride, part);
}

static void join_backward(struct op *o, struct val *out)
{
    for (unsigned part = 0; part < 2; part++) {
        real *to = val_grad(o, out->in[part]);
        for (int64_t k = 0; to && k < out->count / 2; k++)
            to[k] += out->grad[2 * k + part];
    }
}

struct val *v_join(struct op *o, struct val *re, struct val *im)
{
    if (!re || !im || o->failed)
        return NULL;
    const enum plumb_dtype dtype = float_dtype(promote(re, im));
    re = v_cast(o, re, dtype);
    im = v_cast(o, im, dtype);
    if (!re || !im)
        return NULL;
    if (!same_shape(re, im))
        return op_fail(o, PLUMB_E_ARG, "%s: real and imaginary parts of different shapes",
                       o->call->name);
    int64_t shape[OP_RANK + 1];
    memcpy(shape, re->shape, re->rank * sizeof *shape);
    shape[re->rank] = 2;
    struct val *z = val_new(o, dtype, re->rank + 1, shape);
    for (int64_t k = 0; z && k < re->count; k++) {
        z->f[2 * k] = re->f[k];
        z->f[2 * k + 1] = im->f[k];
    }
    return val_moved(o, z, join_backward, re, im, NULL, NULL);
}

static void size_backward(struct op *o, struct val *out)
{
    const struct val *z = out->in[0];
    real *to = val_grad(o, out->in[0]);
    for (int64_t k = 0; to && k < z->count; k++)
        to[k] += out->f[k / 2] != 0 ? out->grad[k / 2] * (z->f[k] / out->f[k / 2]) : 0;
}

struct val *v_size(struct op *o, struct val *z)
{
    struct val *y = z ? val_new(o, z->dtype, z->rank - 1, z->shape) : NULL;
    for (int64_t k = 0; y && k < y->count; k++)
        y->f[k] = hypot(z->f[2 * k], z->f[2 * k + 1]);
    return val_node(o, y, size_backward, z, NULL, NULL, NULL);
}

static struct val *zeros(struct op *o, const struct val *x)
{
    return x ? val_new(o, x->dtype, x->rank - x->is_complex, x->shape) : NULL;
}

struct val *v_complex(struct op *o, struct val *x)
{
    if (!x || x->is_complex)
        return x;
    x = v_float(o, x);
    return v_join(o, x, zeros(o, x));
}

void op_return_complex(struct op *o, struct val *z)
{
    if (z)
        z->is_complex = true;
    op_return(o, z);
}

struct val *leaf_part(struct op *o, struct op_leaf *leaf)
{
    struct val *x = leaf->val, **part = &leaf->parts[leaf->part];
    if (!x || *part)
        return *part;
    switch (leaf->part) {
    case PART_REAL:
        *part = x->is_complex ? v_part(o, x, 0) : x;
        break;
    case PART_IMAGINARY:
        *part = x->is_complex ? v_part(o, x, 1) : zeros(o, x);
        break;
    case PART_SIZE:
        *part = x->is_complex ? v_size(o, x) : x;
        break;
    default:
        *part = zeros(o, x);
    }
    return *part;
}

/* ---- How an operator takes them -------------------------------------------------------------- */

enum how {
    REFUSED,
    EACH,    /* each part by itself */
    REAL,    /* real results: ones */
    SIZES,   /* what it makes of |z| is what it makes of z */
    ALL_OF,  /* true where it is true of both parts */
    ANY_OF,  /* true where it is true of either */
    ADDED,   /* what it makes of the parts is added up */
    OF_FORM, /* sums of products */
};

static const struct {
    enum how how;
    const char *names; /* each operator's first */
} table[] = {
    {EACH,
     " reshape reshape_as flatten ravel unflatten squeeze unsqueeze transpose t T adjoint permute "
     "movedim expand expand_as broadcast_tensors clone detach atleast_1d atleast_2d atleast_3d "
     "cat stack hstack vstack dstack column_stack meshgrid split chunk tensor_split hsplit vsplit "
     "dsplit unbind narrow select slice Tensor.unfold diagonal linalg.diagonal as_strided "
     "select_scatter slice_scatter diagonal_scatter select_backward slice_backward "
     "diagonal_backward diag diag_embed diagflat tril triu repeat tile repeat_interleave roll flip "
     "fliplr flipud rot90 gather take take_along_dim index_select masked_select scatter "
     "scatter_add index_add index_copy index_fill masked_fill masked_scatter put_ fill_ "
     "zero_ fill_diagonal_ pad constant_pad_nd reflection_pad1d __getitem__ __setitem__ index "
     "index_put where neg positive rsub full full_like new_full zeros zeros_like new_zeros "
     "scalar_tensor sum nansum mean sum_to_size trace cumsum diff block_diag fft.fftshift "
     "fft.ifftshift pixel_shuffle pixel_unshuffle channel_shuffle Functional.unfold combinations "
     "as_strided_scatter "},
    {REAL, " ones ones_like new_ones eye arange linspace "},
    {SIZES, " norm linalg.vector_norm frobenius_norm count_nonzero all any nonzero argwhere "
            "logical_not logical_and logical_or logical_xor "},
    {ALL_OF, " eq isfinite equal "},
    {ANY_OF, " ne isnan isinf "},
    {ADDED, " var "},
};

/* Whether a list of words between blanks has one of that length. */
static bool has_word(const char *list, const char *word, size_t length)
{
    for (const char *s = list; (s = strchr(s, ' ')) && s[1]; s++)
        if (strncmp(s + 1, word, length) == 0 && s[1 + length] == ' ')
            return true;
    return false;
}

static const char *form_of(const struct op_def *def)
{
    static const struct {
        const char *name, *form;
    } more[] = {{"addcmul ", "input + value * tensor1 * tensor2"},
                {"cross", "input * other"},
                {"linalg.cross", "input * other"},
                {"linalg.multi_dot", "tensors[]"},
                {"chain_matmul", "matrices[]"}};
    for (size_t k = 0; k < sizeof more / sizeof *more; k++)
        if (strncmp(def->names, more[k].name, strlen(more[k].name)) == 0)
            return more[k].form;
    return op_form(def);
}

static enum how how_of(const struct op_def *def)
{
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (has_word(table[k].names, def->names, strcspn(def->names, " ")))
            return table[k].how;
    return form_of(def) ? OF_FORM : REFUSED;
}

bool op_in_parts(const struct op_def *def)
{
    return how_of(def) != REFUSED;
}

/* Arguments that make something else of it. */
static bool has_other_sense(struct op *o)
{
    const char *p = arg_text(o, "p"), *mode = arg_text(o, "reduce");
    return mode || (p && strcmp(p, "nuc") == 0);
}

bool parts_wanted(const struct op *o, const struct op_def *def)
{
    return !(def->flags & OP_COMPLEX) && op_call_is_complex(o->call);
}

/* ---- Running --------------------------------------------------------------------------------- */

struct results {
    struct plumb_arg *args;
    struct val **vals;
    size_t n;
};

static struct results run_once(struct op *o, const struct op_def *def)
{
    struct plumb_result *result = o->result;
    struct results r = {0};
    def->run(o);
    r.args = op_alloc(o, (int64_t)result->n_outputs + 1, sizeof *r.args);
    r.vals = op_alloc(o, (int64_t)result->n_outputs + 1, sizeof *r.vals);
    if (!r.args || !r.vals)
        return r;
    r.n = result->n_outputs;
    if (r.n) {
        memcpy(r.args, result->outputs, r.n * sizeof *r.args);
        memcpy(r.vals, o->outputs, r.n * sizeof *r.vals);
    }
    result->n_outputs = 0;
    return r;
}

/* The leaves in an argument, and the argument itself where it is a number. */
static void choose(struct op *o, struct op_bound *bound, const struct plumb_arg *arg,
                   enum op_part part)
{
    bound->part = part;
    for (size_t k = 0; k < o->n_leaves; k++)
        if (o->leaves[k].arg == arg)
            o->leaves[k].part = part;
    for (size_t k = 0; arg->kind == PLUMB_ARG_LIST && k < arg->n_items; k++)
        choose(o, bound, &arg->items[k], part);
}

/* Elements, or what is put among them; other arguments say where, how many or how. */
static bool is_element(const struct op_param *param)
{
    static const char places[] = " index indices mask condition repeats ";
    static const char values[] = " value fill_value ";
    if (param->type == PARAM_NUMBER)
        return has_word(values, param->names, param->names_length);
    return (param->type == PARAM_TENSOR || param->type == PARAM_TENSORS ||
            param->type == PARAM_OPERAND) &&
           !has_word(places, param->names, param->names_length);
}

static void choose_all(struct op *o, enum op_part part)
{
    for (size_t p = 0; p < o->signature->n; p++)
        if (is_element(&o->signature->params[p]))
            choose(o, &o->bound[p], o->bound[p].value, part);
}

/* dtype=torch.float32 asks for real results of complex numbers: their real parts. */
static bool wants_real(struct op *o)
{
    const struct plumb_arg *dtype = arg_raw(o, "dtype");
    return dtype && dtype->kind == PLUMB_ARG_DTYPE && part_dtype(dtype->dtype) == dtype->dtype;
}

static void run_each(struct op *o, const struct op_def *def, bool real_only)
{
    choose_all(o, PART_REAL);
    if (wants_real(o)) {
        def->run(o);
        return;
    }
    const struct results re = run_once(o, def);
    choose_all(o, real_only ? PART_REAL : PART_IMAGINARY);
    const struct results im = run_once(o, def);
    for (size_t k = 0; k < re.n && k < im.n && !o->failed; k++)
        op_return_complex(o, v_join(o, re.vals[k], real_only ? zeros(o, re.vals[k]) : im.vals[k]));
}

static void run_added(struct op *o, const struct op_def *def)
{
    choose_all(o, PART_REAL);
    const struct results re = run_once(o, def);
    choose_all(o, PART_IMAGINARY);
    const struct results im = run_once(o, def);
    for (size_t k = 0; k < re.n && k < im.n && !o->failed; k++)
        op_return(o, v_add(o, re.vals[k], im.vals[k]));
}

static void run_truth(struct op *o, const struct op_def *def, bool all)
{
    choose_all(o, PART_REAL);
    const struct results re = run_once(o, def);
    choose_all(o, PART_IMAGINARY);
    const struct results im = run_once(o, def);
    for (size_t k = 0; k < re.n && k < im.n && !o->failed; k++) {
        struct val *a = re.vals[k], *b = im.vals[k];
        if (!a) { /* a Python bool */
            const bool x = re.args[k].integer != 0, y = im.args[k].integer != 0;
            op_return_bool(o, all ? x && y : x || y);
            continue;
        }
        struct val *out = val_like(o, a, PLUMB_BOOL);
        for (int64_t e = 0; out && e < a->count; e++)
            out->i[e] = all ? a->i[e] && b->i[e] : a->i[e] || b->i[e];
        op_return(o, out);
    }
}

/* ---- Sums of products ------------------------------------------------------------------------ */

enum { MAX_TERMS = 4, MAX_FACTORS = 6 };

/* One product: its factors, and which of them are complex. */
struct product {
    struct op_bound *bounds[MAX_FACTORS];
    const struct plumb_arg *args[MAX_FACTORS];
    unsigned n, n_complex;
    unsigned which[MAX_FACTORS]; /* the complex ones */
};

static bool is_complex(const struct plumb_arg *arg)
{
    return arg->kind == PLUMB_ARG_COMPLEX ||
           (arg->kind == PLUMB_ARG_TENSOR && plumb_dtype_parts(arg->tensor->dtype) == 2);
}

static void add_factor(struct op *o, struct product *p, struct op_bound *bound,
                       const struct plumb_arg *arg)
{
    if (arg->kind == PLUMB_ARG_LIST) {
        for (size_t k = 0; k < arg->n_items; k++)
            add_factor(o, p, bound, &arg->items[k]);
        return;
    }
    if (arg->kind == PLUMB_ARG_NONE || arg->kind == PLUMB_ARG_TEXT)
        return;
    if (p->n == MAX_FACTORS) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: more than %d complex factors", o->call->name,
                MAX_FACTORS);
        return;
    }
    if (is_complex(arg))
        p->which[p->n_complex++] = p->n;
    p->bounds[p->n] = bound;
    p->args[p->n++] = arg;
}

static unsigned read_products(struct op *o, const char *form, struct product *products)
{
    unsigned n = 1;
    struct form_word word;
    while (!o->failed && form_next(&form, &word) && strcmp(word.text, "/") != 0) {
        if (strcmp(word.text, "+") == 0 || strcmp(word.text, "-") == 0) {
            n++;
            continue;
        }
        const size_t p = op_param_index(o, word.text);
        if (strcmp(word.text, "*") != 0 && p < o->signature->n && n <= MAX_TERMS)
            add_factor(o, &products[n - 1], &o->bound[p], o->bound[p].value);
    }
    return n;
}

static unsigned ones(unsigned bits)
{
    return (unsigned)__builtin_popcount(bits);
}

/* The j-th choice of parts, a bit for each complex factor, set where the imaginary one is taken,
 * that gives i^power; false when there are fewer. */
static bool choice_at(const struct product *p, unsigned power, unsigned j, unsigned *bits)
{
    for (unsigned choice = 0; choice < 1u << p->n_complex; choice++)
        if (ones(choice) % 4 == power && j-- == 0) {
            *bits = choice;
            return p->n > 0;
        }
    return false;
}

/* Lets each product have its j-th choice, or vanish. False when all vanish. */
static bool choose_products(struct op *o, const struct product *products, unsigned n,
                            unsigned power, unsigned j)
{
    bool any = false;
    for (unsigned t = 0; t < n; t++) {
        const struct product *p = &products[t];
        unsigned bits = 0, at = 0;
        const bool there = choice_at(p, power, j, &bits);
        for (unsigned f = 0; f < p->n; f++) {
            enum op_part part = there ? PART_REAL : PART_ZERO;
            if (there && at < p->n_complex && p->which[at] == f)
                part = bits >> at++ & 1 ? PART_IMAGINARY : PART_REAL;
            choose(o, p->bounds[f], p->args[f], part);
        }
        any |= there;
    }
    return any;
}

static void run_products(struct op *o, const struct op_def *def)
{
    struct product products[MAX_TERMS] = {{{0}, {0}, 0, 0, {0}}};
    const unsigned n = read_products(o, form_of(def), products);
    struct val **sums[2] = {NULL, NULL};
    size_t n_outputs = 0;
    for (unsigned power = 0; power < 4 && !o->failed; power++)
        for (unsigned j = 0; !o->failed && choose_products(o, products, n, power, j); j++) {
            const struct results r = run_once(o, def);
            struct val **to = sums[power % 2];
            n_outputs = r.n;
            for (size_t k = 0; to && k < r.n; k++)
                to[k] = (power < 2 ? v_add : v_sub)(o, to[k], r.vals[k]);
            if (to || o->failed)
                continue;
            sums[power % 2] = r.vals;
            for (size_t k = 0; power > 1 && k < r.n; k++)
                r.vals[k] = v_neg(o, r.vals[k]);
        }
    for (size_t k = 0; k < n_outputs && !o->failed; k++) {
        struct val *re = sums[0] ? sums[0][k] : NULL, *im = sums[1] ? sums[1][k] : NULL;
        op_return_complex(o, v_join(o, re ? re : zeros(o, im), im ? im : zeros(o, re)));
    }
}

void parts_run(struct op *o, const struct op_def *def)
{
    const enum how how = has_other_sense(o) ? REFUSED : how_of(def);
    o->in_parts = true;
    switch (how) {
    case EACH:
    case REAL:
        run_each(o, def, how == REAL);
        break;
    case SIZES:
        choose_all(o, PART_SIZE);
        def->run(o);
        break;
    case ALL_OF:
    case ANY_OF:
        run_truth(o, def, how == ALL_OF);
        break;
    case ADDED:
        run_added(o, def);
        break;
    case OF_FORM:
        run_products(o, def);
        break;
    case REFUSED:
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: plumb does not compute it of complex numbers",
                o->call->name);
    }
}
