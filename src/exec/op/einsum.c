/* einsum: operands are multiplied two at a time from the left, each pair as one batched matrix
 * product; a label that nobody needs any more is summed on the way.
 *
 * Labels are numbers: 0..51 for letters, then one for each dimension under an ellipsis, counted
 * from the last one. */
#include "exec/op/matmul.h"

#include <stdio.h>
#include <string.h>

enum { LETTERS = 52, LABELS = LETTERS + OP_RANK };

/* A value whose dimensions carry labels. */
struct term {
    struct val *x;
    unsigned label[OP_RANK];
};

struct equation {
    unsigned n_out;
    unsigned out[OP_RANK];
    unsigned uses[LABELS]; /* by operands not yet multiplied, and the output */
    unsigned dots;         /* dimensions under the widest ellipsis */
};

static int letter(char c)
{
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    return c >= 'A' && c <= 'Z' ? c - 'A' : -1;
}

/* Reads subscripts up to a comma, an arrow or the end. `dots` is how many dimensions an ellipsis
 * stands for. Returns how many labels, or -1 when it is malformed. */
static int read_labels(const char **text, unsigned dots, unsigned *label, bool *ellipsis)
{
    int n = 0;
    *ellipsis = false;
    const char *s = *text;
    while (*s && *s != ',' && *s != '-') {
        if (*s == ' ') {
            s++;
            continue;
        }
        if (strncmp(s, "...", 3) == 0) {
            if (*ellipsis || n + (int)dots > OP_RANK)
                return -1;
            *ellipsis = true;
            for (unsigned d = dots; d-- > 0;)
                label[n++] = LETTERS + d;
            s += 3;
            continue;
        }
        int k = letter(*s++);
        if (k < 0 || n == OP_RANK)
            return -1;
        label[n++] = (unsigned)k;
    }
    *text = s;
    return n;
}

static bool malformed(struct op *o, const char *equation)
{
    return op_fail(o, PLUMB_E_ARG, "einsum: cannot read the equation '%.100s'", equation) != NULL;
}

/* The labels of operand k, whose subscripts begin at s. Returns where they end. */
static const char *read_operand(struct op *o, const char *equation, const char *s, size_t k,
                                struct term *term, struct equation *eq)
{
    unsigned named[OP_RANK];
    bool ellipsis;
    const char *end = s;
    int n = read_labels(&end, 0, named, &ellipsis);
    unsigned rank = term->x->rank;
    if (n < 0)
        return malformed(o, equation), NULL;
    if ((unsigned)n > rank || (!ellipsis && (unsigned)n < rank))
        return op_fail(o, PLUMB_E_ARG, "einsum: operand %zu has %u dimensions, the equation %d", k,
                       rank, n);
    unsigned dots = rank - (unsigned)n;
    if (dots > eq->dots)
        eq->dots = dots;
    read_labels(&s, dots, term->label, &ellipsis);
    return s;
}

/* Without an arrow: the ellipsis, then letters that occur once, in alphabetical order. */
static void implicit_output(const struct term *terms, size_t n, struct equation *eq)
{
    unsigned seen[LABELS] = {0};
    for (size_t k = 0; k < n; k++)
        for (unsigned d = 0; d < terms[k].x->rank; d++)
            seen[terms[k].label[d]]++;
    for (unsigned d = eq->dots; d-- > 0;)
        eq->out[eq->n_out++] = LETTERS + d;
    for (unsigned l = 0; l < LETTERS; l++)
        if (seen[l] == 1 && eq->n_out < OP_RANK)
            eq->out[eq->n_out++] = l;
}

static bool read_equation(struct op *o, const char *text, struct term *terms, size_t n,
                          struct equation *eq)
{
    const char *s = text;
    for (size_t k = 0; k < n; k++) {
        s = read_operand(o, text, s, k, &terms[k], eq);
        if (!s)
            return false;
        if (k + 1 < n && *s++ != ',')
            return op_fail(o, PLUMB_E_ARG, "einsum: %zu operands, but fewer in '%.100s'", n,
                           text) != NULL;
    }
    if (*s == 0) {
        implicit_output(terms, n, eq);
    } else {
        bool ellipsis;
        if (strncmp(s, "->", 2) != 0)
            return malformed(o, text);
        s += 2;
        int count = read_labels(&s, eq->dots, eq->out, &ellipsis);
        if (count < 0 || *s)
            return malformed(o, text);
        eq->n_out = (unsigned)count;
    }
    bool known[LABELS] = {false};
    for (size_t k = 0; k < n; k++)
        for (unsigned d = 0; d < terms[k].x->rank; d++)
            known[terms[k].label[d]] = true;
    for (unsigned d = 0; d < eq->n_out; d++) {
        if (!known[eq->out[d]] || eq->uses[eq->out[d]]++)
            return op_fail(o, PLUMB_E_ARG,
                           "einsum: a label of the output occurs twice, or in no operand") != NULL;
    }
    return true;
}

/* Repeated labels of one operand become one: the diagonal. */
static bool take_diagonals(struct op *o, struct term *t)
{
    int64_t shape[OP_RANK], stride[OP_RANK], step = 1, steps[OP_RANK];
    unsigned n = 0, label[OP_RANK];
    for (unsigned d = t->x->rank; d-- > 0;) {
        steps[d] = step;
        step *= t->x->shape[d];
    }
    for (unsigned d = 0; d < t->x->rank; d++) {
        unsigned k = 0;
        while (k < n && label[k] != t->label[d])
            k++;
        if (k < n) {
            if (shape[k] != t->x->shape[d])
                return op_fail(o, PLUMB_E_ARG, "einsum: a repeated label has sizes %lld and %lld",
                               (long long)shape[k], (long long)t->x->shape[d]) != NULL;
            stride[k] += steps[d];
            continue;
        }
        label[n] = t->label[d];
        shape[n] = t->x->shape[d];
        stride[n++] = steps[d];
    }
    if (n < t->x->rank)
        t->x = v_strided(o, t->x, n, shape, stride, 0);
    memcpy(t->label, label, n * sizeof *label);
    return t->x != NULL;
}

/* The place of a label in a term, or -1. */
static int find_label(const struct term *t, unsigned label)
{
    for (unsigned d = 0; d < t->x->rank; d++)
        if (t->label[d] == label)
            return (int)d;
    return -1;
}

/* Sums t over the dimensions of the mask. */
static void sum_out(struct op *o, struct term *t, uint64_t mask)
{
    unsigned rank = t->x->rank, n = 0;
    if (!mask)
        return;
    t->x = v_sum(o, t->x, mask, false);
    for (unsigned d = 0; d < rank; d++)
        if (!(mask >> d & 1))
            t->label[n++] = t->label[d];
}

/* The dimensions of t that are needed neither by the other term nor later. */
static uint64_t spent(const struct equation *eq, const struct term *t, const struct term *other)
{
    uint64_t mask = 0;
    for (unsigned d = 0; d < t->x->rank; d++)
        if (eq->uses[t->label[d]] == 0 && (!other || find_label(other, t->label[d]) < 0))
            mask |= (uint64_t)1 << d;
    return mask;
}

/* Dimensions that are to be summed with a partner of size 1 can be summed before. */
static uint64_t stretched(const struct equation *eq, const struct term *t, const struct term *other)
{
    uint64_t mask = 0;
    for (unsigned d = 0; d < t->x->rank; d++) {
        int e = find_label(other, t->label[d]);
        if (e >= 0 && eq->uses[t->label[d]] == 0 && t->x->shape[d] != other->x->shape[e] &&
            (t->x->shape[d] == 1 || other->x->shape[e] == 1))
            mask |= (uint64_t)1 << d;
    }
    return mask;
}

/* The labels of a pair by what becomes of them. */
struct roles {
    unsigned n_batch, n_left, n_right, n_sum;
    unsigned batch[OP_RANK], left[OP_RANK], right[OP_RANK], sum[OP_RANK];
};

static bool assign_roles(struct op *o, const struct equation *eq, const struct term *a,
                         const struct term *b, struct roles *r)
{
    *r = (struct roles){0};
    for (unsigned d = 0; d < a->x->rank; d++) {
        unsigned l = a->label[d];
        int e = find_label(b, l);
        if (e < 0) {
            r->left[r->n_left++] = l;
            continue;
        }
        int64_t p = a->x->shape[d], q = b->x->shape[e];
        if (p != q && p != 1 && q != 1)
            return op_fail(o, PLUMB_E_ARG, "einsum: a label has sizes %lld and %lld", (long long)p,
                           (long long)q) != NULL;
        if (eq->uses[l])
            r->batch[r->n_batch++] = l;
        else
            r->sum[r->n_sum++] = l;
    }
    for (unsigned d = 0; d < b->x->rank; d++)
        if (find_label(a, b->label[d]) < 0)
            r->right[r->n_right++] = b->label[d];
    if (r->n_batch + r->n_left + r->n_right + 2 > OP_RANK)
        return op_fail(o, PLUMB_E_ARG, "einsum: a product with too many dimensions") != NULL;
    return true;
}

/* t with its dimensions in the order of three groups of labels; the second and third become one
 * dimension each. */
static struct val *arrange(struct op *o, const struct term *t, const struct roles *r,
                           const unsigned *second, unsigned n_second, const unsigned *third,
                           unsigned n_third)
{
    unsigned order[OP_RANK], at = 0;
    int64_t shape[OP_RANK], sizes[2] = {1, 1};
    for (unsigned k = 0; k < r->n_batch; k++) {
        order[at] = (unsigned)find_label(t, r->batch[k]);
        shape[at] = t->x->shape[order[at]];
        at++;
    }
    for (unsigned k = 0; k < n_second; k++) {
        order[at] = (unsigned)find_label(t, second[k]);
        sizes[0] *= t->x->shape[order[at++]];
    }
    for (unsigned k = 0; k < n_third; k++) {
        order[at] = (unsigned)find_label(t, third[k]);
        sizes[1] *= t->x->shape[order[at++]];
    }
    shape[r->n_batch] = sizes[0];
    shape[r->n_batch + 1] = sizes[1];
    return v_reshape(o, v_permute(o, t->x, order), r->n_batch + 2, shape);
}

static bool multiply_terms(struct op *o, const struct equation *eq, struct term *a, struct term *b)
{
    uint64_t a_mask = spent(eq, a, b) | stretched(eq, a, b);
    uint64_t b_mask = spent(eq, b, a) | stretched(eq, b, a);
    sum_out(o, a, a_mask);
    sum_out(o, b, b_mask);
    struct roles r;
    if (!a->x || !b->x || !assign_roles(o, eq, a, b, &r))
        return false;
    struct val *left = arrange(o, a, &r, r.left, r.n_left, r.sum, r.n_sum);
    struct val *right = arrange(o, b, &r, r.sum, r.n_sum, r.right, r.n_right);
    /* Nothing to sum: elementwise beats a great many 1 x 1 products. */
    struct val *y = r.n_sum ? v_matmul(o, left, right) : v_mul(o, left, right);
    if (!y)
        return false;

    struct term out = {0};
    int64_t shape[OP_RANK];
    unsigned at = 0;
    for (unsigned k = 0; k < r.n_batch; k++, at++) {
        out.label[at] = r.batch[k];
        shape[at] = y->shape[k];
    }
    for (unsigned k = 0; k < r.n_left; k++, at++) {
        out.label[at] = r.left[k];
        shape[at] = a->x->shape[find_label(a, r.left[k])];
    }
    for (unsigned k = 0; k < r.n_right; k++, at++) {
        out.label[at] = r.right[k];
        shape[at] = b->x->shape[find_label(b, r.right[k])];
    }
    out.x = v_reshape(o, y, at, shape);
    *a = out;
    return out.x != NULL;
}

static struct val *einsum(struct op *o, const char *text, struct val **xs, size_t n)
{
    struct term *terms = op_alloc(o, (int64_t)n, sizeof *terms);
    struct equation *eq = op_alloc(o, 1, sizeof *eq);
    if (!terms || !eq)
        return NULL;
    for (size_t k = 0; k < n; k++)
        terms[k].x = xs[k];
    if (!read_equation(o, text, terms, n, eq))
        return NULL;
    for (size_t k = 0; k < n; k++)
        if (!take_diagonals(o, &terms[k]))
            return NULL;
    for (size_t k = 1; k < n; k++)
        for (unsigned d = 0; d < terms[k].x->rank; d++)
            eq->uses[terms[k].label[d]]++;
    for (size_t k = 1; k < n; k++) {
        for (unsigned d = 0; d < terms[k].x->rank; d++)
            eq->uses[terms[k].label[d]]--;
        if (!multiply_terms(o, eq, &terms[0], &terms[k]))
            return NULL;
    }
    sum_out(o, &terms[0], spent(eq, &terms[0], NULL));
    if (!terms[0].x)
        return NULL;
    unsigned order[OP_RANK];
    for (unsigned d = 0; d < eq->n_out; d++)
        order[d] = (unsigned)find_label(&terms[0], eq->out[d]);
    return v_permute(o, terms[0].x, order);
}

static char *put(char *to, const char *text)
{
    while (*text)
        *to++ = *text++;
    return to;
}

/* Operands, each followed by a list of numbers for labels, and perhaps one more list for the
 * output: the same as an equation. */
static char *sublist_equation(struct op *o, const struct plumb_arg *list)
{
    size_t room = 4;
    for (size_t k = 0; k < list->n_items; k++)
        room += 4 + 3 * list->items[k].n_items;
    char *text = op_alloc(o, (int64_t)room, 1), *to = text;
    for (size_t k = 1; text && k < list->n_items; k += k + 2 == list->n_items ? 1 : 2) {
        const struct plumb_arg *labels = &list->items[k];
        const bool output = list->n_items % 2 == 1 && k == list->n_items - 1;
        if (labels->kind != PLUMB_ARG_LIST)
            return op_fail(o, PLUMB_E_ARG, "einsum: argument %zu must be a list of labels", k);
        if (k > 1)
            to = put(to, output ? "->" : ",");
        for (size_t d = 0; d < labels->n_items; d++) {
            const struct plumb_arg *label = &labels->items[d];
            if (label->kind == PLUMB_ARG_ELLIPSIS)
                to = put(to, "...");
            else if (label->kind == PLUMB_ARG_INT && label->integer >= 0 &&
                     label->integer < LETTERS)
                *to++ =
                    (char)(label->integer < 26 ? 'A' + label->integer : 'a' + label->integer - 26);
            else
                return op_fail(o, PLUMB_E_ARG, "einsum: labels are numbers from 0 to 51");
        }
    }
    return text;
}

static void run_einsum(struct op *o)
{
    size_t n = 0;
    struct val **xs = arg_tensors(o, "operands", &n);
    const char *text = arg_text(o, "equation");
    const struct plumb_arg *list = arg_raw(o, "sublist");
    if (list && list->n_items >= 2) {
        n = list->n_items / 2;
        xs = op_alloc(o, (int64_t)n, sizeof(struct val *));
        for (size_t k = 0; xs && k < n; k++)
            xs[k] = arg_value(o, &list->items[2 * k]);
        text = sublist_equation(o, list);
    }
    if (o->failed)
        return;
    for (size_t k = 0; k < n; k++)
        if (!xs[k]) {
            op_fail(o, PLUMB_E_ARG, "einsum: operand %zu is not a tensor", k);
            return;
        }
    if (n == 0 || !text)
        op_fail(o, PLUMB_E_ARG, "einsum: an equation and at least one operand are needed");
    else
        op_return(o, einsum(o, text, xs, n));
}

const struct op_def op_einsum[] = {
    {"einsum",
     "einsum(str equation, Tensor[]... operands|tensors, *, any path=None)\n"
     "einsum(any... sublist)",
     run_einsum, 0, NULL},
    {0},
};
