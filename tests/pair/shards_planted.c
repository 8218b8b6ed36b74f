/* Tensors cut into parts in known ways. */
#include "shards_planted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double planted_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(*state >> 11) / (double)(INT64_C(1) << 52) - 1.0;
}

const char *planted_name(enum planted_kind kind)
{
    static const char *const names[] = {"replica", "concat", "uneven", "zigzag", "fused2", "fused3",
                                        "heads",   "grid",   "mixed",  "sum",    "mean",   "flat"};
    return names[kind];
}

static double *numbers(const struct plumb_tensor *tensor)
{
    double *out = calloc(tensor->count + 1, sizeof *out);
    plumb_tensor_to_f64(tensor, 0, (size_t)tensor->count, out);
    return out;
}

static void make(struct plumb_tensor *tensor, void **data, enum plumb_dtype dtype, unsigned rank,
                 const int64_t *shape, const double *values)
{
    uint64_t bytes;
    plumb_tensor_init(tensor, dtype, rank, shape, NULL);
    plumb_dtype_bytes(dtype, tensor->count, &bytes);
    *data = calloc(bytes + 1, 1);
    plumb_from_f64(dtype, values, (size_t)tensor->count, *data);
    tensor->data = *data;
}

/* The rows of an axis that a part has. */
struct rows {
    int64_t at[512];
    int64_t count;
};

static void add_rows(struct rows *rows, int64_t from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        rows->at[rows->count++] = from + i;
}

/* As numpy.take along two axes. */
static void take(struct planted *out, unsigned part, const double *whole, unsigned axis,
                 const struct rows *rows, unsigned second, const struct rows *columns, double noise,
                 uint64_t *seed)
{
    int64_t shape[PLUMB_MAX_RANK], at[PLUMB_MAX_RANK];
    const unsigned rank = out->whole.rank;
    int64_t count = 1;
    for (unsigned a = 0; a < rank; a++) {
        shape[a] = a == axis                ? rows->count
                   : columns && a == second ? columns->count
                                            : out->whole.shape[a];
        count *= shape[a];
    }
    double *values = calloc((size_t)count + 1, sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, from = 0;
        for (unsigned a = rank; a-- > 0; rest /= shape[a])
            at[a] = rest % shape[a];
        for (unsigned a = 0; a < rank; a++) {
            int64_t place = at[a];
            if (rank && a == axis)
                place = rows->at[place];
            else if (columns && a == second)
                place = columns->at[place];
            from = from * out->whole.shape[a] + place;
        }
        values[i] = whole[from] * (1 + noise * planted_random(seed));
    }
    make(&out->part[part], &out->data[part + 1], out->whole.dtype, rank, shape, values);
    free(values);
}

static void add_segments(struct rows *rows, int64_t size, unsigned slot, unsigned count,
                         const int64_t *weights, unsigned segments)
{
    int64_t sum = 0, begin = 0;
    for (unsigned k = 0; k < segments; k++)
        sum += weights[k];
    for (unsigned k = 0; k < segments; k++) {
        const int64_t all = size * weights[k] / sum, share = all / count;
        add_rows(rows, begin + share * slot, share);
        begin += all;
    }
}

static void cut_rows(struct rows *rows, enum planted_kind kind, int64_t size, unsigned slot,
                     unsigned count)
{
    static const int64_t even[] = {1, 1, 1}, heads[] = {4, 1, 1};
    const int64_t chunk = size / (2 * (int64_t)count);
    rows->count = 0;
    switch (kind) {
    case PLANTED_ZIGZAG:
        add_rows(rows, chunk * slot, chunk);
        add_rows(rows, chunk * (2 * count - 1 - slot), chunk);
        break;
    case PLANTED_FUSED2:
        add_segments(rows, size, slot, count, even, 2);
        break;
    case PLANTED_FUSED3:
        add_segments(rows, size, slot, count, even, 3);
        break;
    case PLANTED_HEADS:
        add_segments(rows, size, slot, count, heads, 3);
        break;
    case PLANTED_UNEVEN: { /* as torch.chunk: the last ones are smaller, or empty */
        const int64_t most = (size + count - 1) / count, from = most * slot;
        add_rows(rows, from < size ? from : size,
                 from >= size         ? 0
                 : from + most > size ? size - from
                                      : most);
        break;
    }
    default:
        add_rows(rows, size / count * slot, size / count);
    }
}

static void shuffle(unsigned *order, unsigned count, uint64_t *seed)
{
    for (unsigned i = count; i > 1; i--) {
        const unsigned k = (unsigned)((planted_random(seed) + 1) / 2 * i) % i;
        const unsigned swap = order[i - 1];
        order[i - 1] = order[k];
        order[k] = swap;
    }
}

static void make_terms(struct planted *out, const double *whole, bool mean, uint64_t *seed)
{
    const size_t count = (size_t)out->whole.count;
    double *left = calloc(count + 1, sizeof *left), *term = calloc(count + 1, sizeof *term);
    const bool real = plumb_dtype_info(out->whole.dtype)->kind == PLUMB_KIND_FLOAT;
    const double scale = real ? 1.0 / 16 : 3;
    memcpy(left, whole, count * sizeof *left);
    for (unsigned p = 0; p < out->count; p++) {
        for (size_t i = 0; i < count; i++) {
            /* Terms of the type: their sum is not exact, but near. */
            term[i] = p + 1 < out->count ? round(planted_random(seed) * 64) * scale : left[i];
            left[i] -= term[i];
            term[i] *= mean ? out->count : 1;
        }
        make(&out->part[p], &out->data[p + 1], out->whole.dtype, out->whole.rank, out->whole.shape,
             term);
    }
    free(left);
    free(term);
}

static void make_flat(struct planted *out, const double *whole)
{
    const int64_t count = (int64_t)out->whole.count;
    const int64_t each = (count + out->count - 1) / out->count;
    double *row = calloc((size_t)each + 1, sizeof *row);
    for (unsigned p = 0; p < out->count; p++) {
        for (int64_t i = 0; i < each; i++) {
            const int64_t at = each * p + i;
            row[i] = at < count ? whole[at] : 0;
        }
        make(&out->part[p], &out->data[p + 1], out->whole.dtype, 1, &each, row);
    }
    free(row);
}

static void cut(struct planted *out, enum planted_kind kind, uint64_t seed, bool shuffled,
                double noise)
{
    const unsigned rank = out->whole.rank, count = out->count;
    const unsigned axis = out->axis;
    unsigned order[PLANTED_PARTS];
    double *whole = numbers(&out->whole);
    struct rows rows, columns;
    for (unsigned p = 0; p < count; p++)
        order[p] = p;
    if (shuffled)
        shuffle(order, count, &seed);
    if (kind == PLANTED_SUM || kind == PLANTED_MEAN)
        make_terms(out, whole, kind == PLANTED_MEAN, &seed);
    else if (kind == PLANTED_FLAT)
        make_flat(out, whole);
    for (unsigned p = 0; p < count; p++) {
        const unsigned slot = order[p];
        if (kind == PLANTED_SUM || kind == PLANTED_MEAN || kind == PLANTED_FLAT) {
        } else if (kind == PLANTED_REPLICA) {
            rows.count = 0;
            if (rank)
                add_rows(&rows, 0, out->whole.shape[axis]);
            take(out, p, whole, axis, &rows, 0, NULL, noise, &seed);
        } else if (kind == PLANTED_GRID) {
            cut_rows(&rows, PLANTED_CONCAT, out->whole.shape[0], slot / 2, count / 2);
            cut_rows(&columns, PLANTED_CONCAT, out->whole.shape[1], slot % 2, 2);
            take(out, p, whole, 0, &rows, 1, &columns, noise, &seed);
        } else if (kind == PLANTED_MIXED) {
            cut_rows(&rows, PLANTED_CONCAT, out->whole.shape[axis], slot % (count / 2), count / 2);
            take(out, p, whole, axis, &rows, 0, NULL, noise, &seed);
        } else {
            cut_rows(&rows, kind, out->whole.shape[axis], slot, count);
            take(out, p, whole, axis, &rows, 0, NULL, noise, &seed);
        }
    }
    for (unsigned p = 0; p < count; p++)
        out->parts[p] = &out->part[p];
    free(whole);
}

static double value_for(enum plumb_dtype dtype, uint64_t *seed)
{
    const double value = planted_random(seed);
    return plumb_dtype_info(dtype)->kind == PLUMB_KIND_FLOAT ? value : floor(value * 100);
}

void planted_make(struct planted *out, enum planted_kind kind, enum plumb_dtype dtype,
                  unsigned count, uint64_t seed, bool shuffled, double noise)
{
    *out = (struct planted){.count = count};
    const unsigned rank = kind == PLANTED_REPLICA || kind == PLANTED_SUM ? (unsigned)(seed % 4)
                                                                         : 2 + (unsigned)(seed % 2);
    int64_t shape[4] = {0}, all = 1;
    out->axis = rank > 1 && kind != PLANTED_GRID ? (unsigned)(seed / 2 % 2) : 0;
    for (unsigned a = 0; a < rank; a++) {
        shape[a] = kind == PLANTED_UNEVEN || kind == PLANTED_FLAT ? 5 + (int64_t)(seed / 4 % 7)
                   : a == out->axis                               ? 12 * (int64_t)count
                   : a == 2                                       ? 3
                                                                  : 6;
        all *= shape[a];
    }
    double *values = calloc((size_t)all + 1, sizeof *values);
    for (int64_t i = 0; i < all; i++)
        values[i] = value_for(dtype, &seed);
    make(&out->whole, &out->data[0], dtype, rank, shape, values);
    free(values);
    cut(out, kind, seed, shuffled, noise);
}

void planted_again(struct planted *out, const struct planted *from, enum planted_kind kind,
                   unsigned count, uint64_t seed)
{
    *out = (struct planted){.whole = from->whole, .count = count, .axis = from->axis};
    cut(out, kind, seed, false, 0);
}

void planted_free(struct planted *planted)
{
    for (unsigned p = 0; p <= PLANTED_PARTS; p++)
        free(planted->data[p]);
}
