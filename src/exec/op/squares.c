/* Noise of linear and bilinear operators in closed form. When each of m factors of a product is
 * multiplied by 1 + r, r uniform in [-1, 1] times a small number, the mean square change of the
 * product is m/3 of its square; the changes of a sum's terms are independent. So the operator
 * itself, run on the squares of its arguments, gives the mean square changes of its outputs, and
 * its backward those of its gradients, which are products of as many factors.
 *
 * The form of an operator says which arguments are multiplied: "beta * input + alpha * mat1 *
 * mat2". Numbers are exact; "operands[]" are the items of a list; "input / n" is a mean, whose
 * weights are squared too. float64 is scaled by powers of two, so that no square is lost. */
#include "exec/op/squares.h"

#include "exec/op/bind.h"

#include <string.h>

/* ---- Forms ----------------------------------------------------------------------------------- */

const char *op_form(const struct op_def *def)
{
    static const struct {
        const char *name; /* the operator's first */
        const char *form;
    } forms[] = {
        {"add", "input + alpha * other"},
        {"sub", "input - alpha * other"},
        {"mul", "input * other"},
        {"sum", "input"},
        {"nansum", "input"},
        {"mean", "input / n"},
        {"sum_to_size", "input"},
        {"trace", "input"},
        {"cumsum", "input"},
        {"linear", "input * weight + bias"},
        {"matmul", "input * other"},
        {"__rmatmul__", "input * other"},
        {"mm", "input * mat2"},
        {"hspmm", "input * mat2"},
        {"bmm", "input * mat2"},
        {"_grouped_mm", "input * mat2"},
        {"mv", "input * vec"},
        {"dot", "input * other"},
        {"outer", "input * vec2"},
        {"addmm", "beta * input + alpha * mat1 * mat2"},
        {"sspaddmm", "beta * input + alpha * mat1 * mat2"},
        {"addmv", "beta * input + alpha * mat * vec"},
        {"addr", "beta * input + alpha * vec1 * vec2"},
        {"addbmm", "beta * input + alpha * batch1 * batch2"},
        {"baddbmm", "beta * input + alpha * batch1 * batch2"},
        {"linalg.vecdot", "input * other"},
        {"tensordot", "input * other"},
        {"inner", "input * other"},
        {"bilinear", "input1 * input2 * weight + bias"},
        {"_trilinear", "i1 * i2 * i3"},
        {"kron", "input * other"},
        {"einsum", "operands[]"},
        {"conv1d", "input * weight + bias"},
        {"conv_transpose1d", "input * weight + bias"},
        {"convolution", "input * weight + bias"},
        {"npu_conv2d", "input * weight + bias"},
        {"npu_conv_transpose2d", "input * weight + bias"},
        {"conv_tbc", "input * weight + bias"},
        {"fold", "input"},
        {"scatter_add", "input + src"},
        {"index_add", "input + alpha * source"},
    };
    const size_t length = strcspn(def->names, " ");
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (strlen(forms[k].name) == length && memcmp(forms[k].name, def->names, length) == 0)
            return forms[k].form;
    return NULL;
}

/* ---- Reading the form ------------------------------------------------------------------------ */

bool form_next(const char **form, struct form_word *word)
{
    const char *s = *form + strspn(*form, " ");
    size_t length = strcspn(s, " ");
    if (!length || length >= sizeof word->text)
        return false;
    *form = s + length;
    word->list = length > 2 && memcmp(s + length - 2, "[]", 2) == 0;
    length -= word->list ? 2 : 0;
    memcpy(word->text, s, length);
    word->text[length] = '\0';
    return true;
}

static size_t leaf_of(const struct op *o, const struct plumb_arg *arg)
{
    size_t k = 0;
    while (k < o->n_leaves && o->leaves[k].arg != arg)
        k++;
    return k;
}

/* The exponent of the largest element; only float64 needs one. */
static int exponent_of(const struct plumb_tensor *t)
{
    enum { PIECE = 256 };
    double piece[PIECE], most = 0;
    if (t->dtype != PLUMB_F64)
        return 0;
    for (uint64_t first = 0; first < t->count; first += PIECE) {
        const size_t n = t->count - first < PIECE ? (size_t)(t->count - first) : PIECE;
        plumb_tensor_to_f64(t, first, n, piece);
        for (size_t k = 0; k < n; k++)
            most = isfinite(piece[k]) && fabs(piece[k]) > most ? fabs(piece[k]) : most;
    }
    int exponent = 0;
    (void)frexp(most, &exponent);
    return exponent > -1000 ? exponent : -1000; /* its inverse is a number too */
}

/* One product of the form: which leaves, how many, and how large it may be. */
struct term {
    unsigned factors;
    int exponent;
    bool minus;
    struct op_bound *number; /* the last one in it, or NULL */
};

static bool add_factor(struct op *o, const struct plumb_arg *arg, unsigned number,
                       struct term *term)
{
    const size_t k = leaf_of(o, arg);
    if (k == o->n_leaves || !dtype_is_float(arg->tensor->dtype)) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: no closed form for %s", o->call->name,
                plumb_arg_kind_text(arg->kind));
        return false;
    }
    struct op_leaf *leaf = &o->leaves[k];
    leaf->term = number;
    leaf->exponent = exponent_of(arg->tensor);
    leaf->minus = term->minus && !term->factors;
    term->factors++;
    term->exponent += leaf->exponent;
    return true;
}

/* A number of the form is exact, and squared like everything else. */
static void square_number(struct op_bound *bound, struct term *term)
{
    const struct plumb_arg *arg = bound->value;
    const double x = arg->kind == PLUMB_ARG_FLOAT ? arg->number : (double)arg->integer;
    bound->arg = (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = x * x};
    bound->value = &bound->arg;
    term->number = bound;
}

static bool add_word(struct op *o, const struct form_word *word, unsigned number, struct term *term)
{
    const size_t p = op_param_index(o, word->text);
    if (p == o->signature->n)
        return true; /* another signature has it */
    struct op_bound *bound = &o->bound[p];
    const struct plumb_arg *arg = bound->value;
    if (arg->kind == PLUMB_ARG_TENSOR)
        return add_factor(o, arg, number, term);
    bool good = true;
    for (size_t k = 0; arg->kind == PLUMB_ARG_LIST && k < arg->n_items && good; k++)
        good =
            arg->items[k].kind == PLUMB_ARG_TENSOR && add_factor(o, &arg->items[k], number, term);
    if (arg->kind == PLUMB_ARG_FLOAT || arg->kind == PLUMB_ARG_INT || arg->kind == PLUMB_ARG_BOOL)
        square_number(bound, term);
    return good;
}

/* What the leaves of a term are weighed with, so that all terms have one scale. */
static void weigh_terms(struct op *o, const struct term *terms)
{
    for (size_t k = 0; k < o->n_leaves; k++) {
        struct op_leaf *leaf = &o->leaves[k];
        if (!leaf->term)
            continue;
        leaf->factors = terms[leaf->term].factors;
        if (!o->squares.factors || terms[leaf->term].exponent > o->squares.exponent)
            o->squares.exponent = terms[leaf->term].exponent;
        if (leaf->factors > o->squares.factors)
            o->squares.factors = leaf->factors;
    }
    bool seen[8] = {false};
    for (size_t k = 0; k < o->n_leaves; k++) {
        struct op_leaf *leaf = &o->leaves[k];
        if (!leaf->term || seen[leaf->term])
            continue;
        seen[leaf->term] = true; /* the first of a term takes what brings it to the common scale */
        leaf->exponent += o->squares.exponent - terms[leaf->term].exponent;
        leaf->first = true;
    }
}

/* A gradient of float64 may be as large as any argument. */
static void scale_grads(struct op *o)
{
    bool any = false;
    for (size_t k = 0; k < o->call->n_grads; k++) {
        const int exponent = o->call->grads[k] ? exponent_of(o->call->grads[k]) : 0;
        if (o->call->grads[k] && (!any || exponent > o->squares.grad_exponent))
            o->squares.grad_exponent = exponent;
        any |= o->call->grads[k] != NULL;
    }
}

bool squares_begin(struct op *o, const char *form)
{
    enum { TERMS = 8 };
    struct term terms[TERMS] = {{0}};
    struct form_word word;
    unsigned term = 1;
    while (!o->failed && form && form_next(&form, &word)) {
        const bool minus = strcmp(word.text, "-") == 0;
        if (strcmp(word.text, "*") == 0)
            continue;
        if (strcmp(word.text, "/") == 0) {
            o->squares.mean = true; /* by the number of elements that an output is the mean of */
            break;
        }
        if ((minus || strcmp(word.text, "+") == 0) && term + 1 < TERMS)
            terms[++term].minus = minus;
        else
            add_word(o, &word, term, &terms[term]);
    }
    for (unsigned t = 1; t <= term; t++)
        if (!terms[t].factors && terms[t].number)
            terms[t].number->arg.number = 0; /* nothing in it changes */
    bool any = false;
    for (size_t k = 0; k < o->n_leaves && !o->failed; k++) {
        any |= o->leaves[k].term != 0;
        if (!o->leaves[k].term && dtype_is_float(o->leaves[k].arg->tensor->dtype))
            op_fail(o, PLUMB_E_UNSUPPORTED, "%s: no closed form", o->call->name);
    }
    if (!any && !o->failed)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: no closed form", o->call->name);
    weigh_terms(o, terms);
    scale_grads(o);
    return !o->failed;
}

/* ---- Squares, and roots ---------------------------------------------------------------------- */

static void square(real *x, int64_t n, int exponent, real weight)
{
    const real scale = (real)ldexp(1, -exponent);
    for (int64_t k = 0; k < n; k++) {
        const real scaled = x[k] * scale;
        x[k] = isfinite(x[k]) ? scaled * scaled * weight : 0;
    }
}

static real share_of(const struct op *o, const struct op_leaf *leaf)
{
    return leaf->first ? (real)leaf->factors / (real)o->squares.factors : 1;
}

void squares_input(struct op *o, size_t k)
{
    const struct op_leaf *leaf = &o->leaves[k];
    if (leaf->term && leaf->val && leaf->val->f)
        square(leaf->val->f, leaf->val->count, leaf->exponent,
               share_of(o, leaf) * (leaf->minus ? -1 : 1));
}

void squares_grad(struct op *o, struct val *grad)
{
    square(grad->f, grad->count, o->squares.grad_exponent, 1);
}

/* The elements that one of x is the mean of. */
static real mean_of(const struct op *o, const struct val *x)
{
    const struct val *from = o->leaves[0].val;
    return o->squares.mean && from && x->count ? (real)from->count / (real)x->count : 1;
}

/* In place: nobody else needs the squares any more. */
static const real *roots(real *squares, int64_t n, real factor, int exponent)
{
    const real scale = (real)ldexp(1, exponent);
    for (int64_t k = 0; k < n; k++)
        squares[k] = (real)sqrt((double)(fabs(squares[k]) * factor)) * scale;
    return squares;
}

const real *squares_output(struct op *o, const struct val *x)
{
    return roots(x->f, x->count, (real)o->squares.factors / 3 / mean_of(o, x), o->squares.exponent);
}

const real *squares_leaf(struct op *o, size_t k)
{
    const struct op_leaf *leaf = &o->leaves[k];
    const struct val *out = o->result->n_outputs ? o->outputs[0] : NULL;
    return roots(leaf->val->grad, leaf->val->count,
                 share_of(o, leaf) * (real)o->squares.factors / 3 / (out ? mean_of(o, out) : 1),
                 o->squares.grad_exponent + o->squares.exponent - leaf->exponent);
}
