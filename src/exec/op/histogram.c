/* Counting into bins. */
#include "exec/op/op.h"

/* More bins than anybody looks at are a mistake or a lie; they are refused before they are laid. */
static bool check_bins(struct op *o, int64_t bins)
{
    const int64_t most = (int64_t)1 << 26;
    if (bins <= 0 || bins > most)
        op_fail(o, PLUMB_E_ARG, "%s: %lld bins; 1 to %lld are possible", o->call->name,
                (long long)bins, (long long)most);
    return !o->failed;
}

static void run_bincount(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *weights = arg_tensor(o, "weights");
    const int64_t least = arg_int(o, "minlength");
    if (!x)
        return;
    if (x->rank != 1 || x->f || least < 0 || (weights && weights->count != x->count)) {
        op_fail(o, PLUMB_E_ARG,
                "bincount takes a list of integers, as many weights, and a "
                "minlength that is not negative");
        return;
    }
    int64_t bins = least;
    for (int64_t k = 0; k < x->count; k++) {
        if (x->i[k] < 0 || x->i[k] == INT64_MAX) {
            op_fail(o, PLUMB_E_ARG, "bincount: element %lld is %lld", (long long)k,
                    (long long)x->i[k]);
            return;
        }
        bins = x->i[k] >= bins ? x->i[k] + 1 : bins;
    }
    enum plumb_dtype dtype = !weights                      ? PLUMB_I64
                             : weights->dtype == PLUMB_F32 ? PLUMB_F32
                                                           : PLUMB_F64;
    struct val *out = bins == 0 || check_bins(o, bins) ? val_new(o, dtype, 1, &bins) : NULL;
    for (int64_t k = 0; out && k < x->count; k++) {
        if (weights)
            out->f[x->i[k]] += val_at(weights, k);
        else
            out->i[x->i[k]]++;
    }
    op_return(o, out);
}

/* The range of the elements, widened when it is a point. */
static bool data_range(struct op *o, const struct val *x, real *low, real *high)
{
    if (*low == *high && x->count > 0) {
        *low = *high = x->f[0];
        for (int64_t k = 1; k < x->count; k++) {
            *low = x->f[k] < *low ? x->f[k] : *low;
            *high = x->f[k] > *high ? x->f[k] : *high;
        }
    }
    if (*low == *high) {
        *low -= 1;
        *high += 1;
    }
    if (!(*low < *high) || !isfinite(*high - *low)) {
        op_fail(o, PLUMB_E_ARG, "%s: bins cannot be laid from %g to %g", o->call->name,
                (double)*low, (double)*high);
        return false;
    }
    return true;
}

static void run_histc(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const int64_t bins = arg_int(o, "bins");
    real low = (real)arg_number(o, "min"), high = (real)arg_number(o, "max");
    if (!x)
        return;
    if (!x->f)
        op_fail(o, PLUMB_E_ARG, "histc takes floating-point numbers");
    if (!check_bins(o, bins))
        return;
    struct val *out = val_new(o, x->dtype, 1, &bins);
    if (!out || !data_range(o, x, &low, &high))
        return;
    for (int64_t k = 0; k < x->count; k++) {
        if (!(x->f[k] >= low && x->f[k] <= high))
            continue;
        int64_t bin = (int64_t)((x->f[k] - low) * (real)bins / (high - low));
        out->f[bin < bins ? bin : bins - 1]++;
    }
    op_return(o, out);
}

/* ---- histogram: bins by count and range, or by their edges ----------------------------------- */

static struct val *even_edges(struct op *o, const struct val *x, int64_t bins)
{
    size_t n;
    const double *range = arg_numbers(o, "range", &n);
    real low = 0, high = 0;
    const int64_t count = bins + 1;
    if (n == 2) {
        low = (real)range[0];
        high = (real)range[1];
        if (low == high) {
            low -= R(0.5);
            high += R(0.5);
        }
    } else if (x->count > 0) {
        low = high = x->f[0];
        for (int64_t k = 1; k < x->count; k++) {
            low = x->f[k] < low ? x->f[k] : low;
            high = x->f[k] > high ? x->f[k] : high;
        }
        if (low == high) {
            low -= R(0.5);
            high += R(0.5);
        }
    } else {
        high = 1;
    }
    if (!(low < high) || !isfinite(high - low))
        return op_fail(o, PLUMB_E_ARG, "histogram: bins cannot be laid from %g to %g", (double)low,
                       (double)high);
    struct val *edges = val_new(o, x->dtype, 1, &count);
    for (int64_t k = 0; edges && k < count; k++)
        edges->f[k] = 2 * k < count ? low + (high - low) / (real)bins * (real)k
                                    : high - (high - low) / (real)bins * (real)(bins - k);
    return edges;
}

/* The last bin whose lower edge is not above v; the last edge belongs to the last bin; -1: none. */
static int64_t bin_of(const struct val *edges, real v)
{
    const int64_t n = edges->count;
    if (n < 2 || !(v >= edges->f[0] && v <= edges->f[n - 1]))
        return -1;
    int64_t low = 0, high = n - 1;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (edges->f[middle] <= v)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* What is counted between edges in any other order is nobody's promise. */
static bool check_edges(struct op *o, const struct val *edges)
{
    for (int64_t k = 1; edges && k < edges->count; k++)
        if (!(edges->f[k - 1] <= edges->f[k]))
            op_fail(o, PLUMB_E_ARG, "histogram: edge %lld is below the one before it",
                    (long long)k);
    return !o->failed;
}

static void run_histogram(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *edges = arg_tensor(o, "bins");
    struct val *weight = arg_tensor(o, "weight");
    if (!x)
        return;
    if (!x->f || (weight && weight->count != x->count) ||
        (edges && (edges->rank != 1 || !edges->f))) {
        op_fail(o, PLUMB_E_ARG,
                "histogram takes floating-point numbers, as many weights, and a list "
                "of edges");
        return;
    }
    if (!edges) {
        const int64_t bins = arg_int(o, "bins");
        edges = check_bins(o, bins) ? even_edges(o, x, bins) : NULL;
    }
    const int64_t bins = edges && edges->count > 0 ? edges->count - 1 : 0;
    struct val *out = edges && check_edges(o, edges) ? val_new(o, x->dtype, 1, &bins) : NULL;
    if (!out)
        return;
    for (int64_t k = 0; k < x->count; k++) {
        const int64_t bin = bin_of(edges, x->f[k]);
        if (bin >= 0)
            out->f[bin] += weight ? val_at(weight, k) : 1;
    }
    if (arg_bool(o, "density")) {
        const real total = real_sum(out->f, bins, 1);
        for (int64_t k = 0; k < bins; k++)
            out->f[k] /= total * (edges->f[k + 1] - edges->f[k]);
    }
    op_return(o, out);
    op_return(o, v_detach(o, edges));
}

const struct op_def op_histogram[] = {
    {"bincount", "bincount(Tensor input|self, Tensor? weights=None, int minlength=0)", run_bincount,
     OP_NO_GRAD | OP_LINEAR, NULL},
    {"histc", "histc(Tensor input|self, int bins=100, number min=0, number max=0)", run_histc,
     OP_NO_GRAD | OP_DECISION | OP_COMPUTED, "counts in equal bins from min to max, both included"},
    {"histogram",
     "histogram(Tensor input|self, Tensor bins, *, Tensor? weight=None, bool density=False)\n"
     "histogram(Tensor input|self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
     "bool density=False)",
     run_histogram, OP_NO_GRAD, "(counts, edges of the bins)"},
    {0},
};
