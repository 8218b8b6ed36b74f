/* Statistics of one tensor, as a named tuple. */
#include "core.h"
#include "parts.h"
#include "team.h"

#include "metric/dense.h"
#include "metric/stats.h"

#include <libdeflate.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Elements whose bytes are still in the cache when the second look at them is taken. */
enum { LOOK = 4 * PLUMB_METRIC_BLOCK };

struct work {
    const struct plumb_tensor *tensor;
    struct kernels kernels;
    struct stats_state states[MAX_THREADS];
    uint64_t marks[MAX_THREADS];
    bool stats, mark;
};

/* |x| of complex elements: what torch calls their size. */
static void add_sizes(struct stats_state *stats, const struct kernels *kernels,
                      const struct plumb_tensor *tensor, uint64_t first, uint64_t count)
{
    struct room room;
    double parts[2 * PLUMB_METRIC_BLOCK], size[PLUMB_METRIC_BLOCK];
    const uint64_t end = count < tensor->count - first ? first + count : tensor->count;
    while (first < end) {
        const size_t n =
            end - first < PLUMB_METRIC_BLOCK ? (size_t)(end - first) : PLUMB_METRIC_BLOCK;
        dense_load(kernels, tensor->dtype, dense_block(tensor, first, n, &room), 2 * n, parts);
        for (size_t i = 0; i < n; i++)
            size[i] = hypot(parts[2 * i], parts[2 * i + 1]);
        stats_values(stats, kernels, size, n);
        first += n;
    }
}

/* Statistics of a part, and its mark, in one walk through memory. */
static void add_part(void *context, size_t i, unsigned thread)
{
    struct work *work = context;
    const struct plumb_tensor *tensor = work->tensor;
    const uint64_t first = (uint64_t)i * PART;
    const uint64_t end = tensor->count - first < PART ? tensor->count : first + PART;
    const size_t size = plumb_dtype_info(tensor->dtype)->bits / 8;
    const bool complex = plumb_dtype_parts(tensor->dtype) == 2;
    uint32_t crc = 0;
    for (uint64_t at = first; at < end; at += LOOK) {
        const uint64_t n = end - at < LOOK ? end - at : LOOK;
        if (work->mark)
            crc = libdeflate_crc32(crc, (const char *)tensor->data + at * size, (size_t)n * size);
        if (work->stats)
            (complex ? add_sizes : stats_tensor)(&work->states[thread], &work->kernels, tensor, at,
                                                 n);
    }
    work->marks[thread] += part_mark(crc, i);
}

static void walk(struct work *work)
{
    static struct team_pace paces[2][2];
    const struct plumb_tensor *tensor = work->tensor;
    work->kernels = kernels_current();
    const unsigned threads = team_run(&paces[work->stats][work->mark],
                                      plumb_tensor_bytes(tensor) < THREADED_BYTES ? 1 : MAX_THREADS,
                                      (size_t)((tensor->count + PART - 1) / PART), add_part, work);
    for (unsigned i = 1; i < threads; i++) {
        stats_merge(&work->states[0], &work->states[i]);
        work->marks[0] += work->marks[i];
    }
}

uint64_t core_tensor_mark(const struct plumb_tensor *tensor)
{
    struct work work = {.tensor = tensor, .mark = true};
    walk(&work);
    return work.marks[0];
}

static void measure(const struct plumb_tensor *tensor, struct plumb_stats *out, struct ends *ends,
                    uint64_t *mark)
{
    struct work work = {.tensor = tensor, .stats = true, .mark = mark != NULL};
    walk(&work);
    stats_finish(&work.states[0], out);
    *ends = work.states[0].ends;
    if (mark)
        *mark = work.marks[0];
}

/* -- Integers that float64 does not hold ------------------------------------------------------- */

static PyObject *from_end(enum plumb_dtype dtype, uint64_t bits)
{
    return dtype == PLUMB_I64 ? PyLong_FromLongLong((int64_t)bits)
                              : PyLong_FromUnsignedLongLong(bits);
}

/* -- The tuple --------------------------------------------------------------------------------- */

enum { FIELDS = 8 };
static PyTypeObject *stats_type;

static PyObject *from_limit(enum plumb_kind kind, double value)
{
    switch (kind) {
    case PLUMB_KIND_BOOL:
        return PyBool_FromLong(value != 0);
    case PLUMB_KIND_INT:
    case PLUMB_KIND_UINT:
        return PyLong_FromLongLong((int64_t)value);
    default:
        return PyFloat_FromDouble(value);
    }
}

static PyObject *none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

PyObject *core_stats_new(const struct plumb_tensor *tensor, const struct plumb_stats *stats,
                         const struct ends *ends)
{
    const enum plumb_kind kind = plumb_dtype_info(tensor->dtype)->kind;
    const bool exact = ends_needed(ends);
    PyObject *result = PyStructSequence_New(stats_type);
    if (!result)
        return NULL;
    const bool empty = tensor->count == 0;
    PyObject *fields[FIELDS] = {
        empty   ? none()
        : exact ? from_end(tensor->dtype, ends_min(ends))
                : from_limit(kind, stats->min),
        empty   ? none()
        : exact ? from_end(tensor->dtype, ends_max(ends))
                : from_limit(kind, stats->max),
        empty ? none() : PyFloat_FromDouble(stats->mean),
        empty ? none() : PyFloat_FromDouble(stats->std),
        empty || kind == PLUMB_KIND_COMPLEX ? none() : PyFloat_FromDouble(stats->norm),
        PyLong_FromUnsignedLongLong(stats->nan),
        PyLong_FromUnsignedLongLong(stats->pos_inf),
        PyLong_FromUnsignedLongLong(stats->neg_inf),
    };
    bool failed = false;
    for (int i = 0; i < FIELDS; i++) {
        failed = failed || !fields[i];
        PyStructSequence_SetItem(result, i, fields[i]);
    }
    if (failed) {
        Py_DECREF(result);
        return NULL;
    }
    return result;
}

PyObject *core_tensor_stats(const struct plumb_tensor *tensor, uint64_t *mark)
{
    struct plumb_stats stats;
    struct ends ends;
    Py_BEGIN_ALLOW_THREADS;
    measure(tensor, &stats, &ends, mark);
    Py_END_ALLOW_THREADS;
    return core_stats_new(tensor, &stats, &ends);
}

int core_add_stats(PyObject *module)
{
    static PyStructSequence_Field fields[FIELDS + 1] = {
        {"min", NULL},
        {"max", NULL},
        {"mean", NULL},
        {"std", "of the sample"},
        {"norm", "the root of the sum of squares"},
        {"nan", "how many elements are NaN"},
        {"pos_inf", "how many elements are +infinity"},
        {"neg_inf", "how many elements are -infinity"},
    };
    static PyStructSequence_Desc description = {
        .name = "plumb._core.Stats",
        .doc = "What plumb says about one tensor.",
        .fields = fields,
        .n_in_sequence = FIELDS,
    };
    stats_type = PyStructSequence_NewType(&description);
    if (!stats_type)
        return -1;
    Py_INCREF(stats_type);
    if (PyModule_AddObject(module, "Stats", (PyObject *)stats_type) < 0) {
        Py_DECREF(stats_type);
        return -1;
    }
    return 0;
}
