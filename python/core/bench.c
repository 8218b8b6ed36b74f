/* An earlier run's sketches, which a running program's are held against. */
#include "core.h"

#include "base/map.h"
#include "plumb/run.h"
#include "task/condense/measure.h"
#include "verdict/parted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Not in the object itself: a map and a run are freed by their own functions. */
struct bench {
    struct plumb_run *run;
    struct map names; /* of data files, to records */
    bool *seen;
};

struct bench_object {
    PyObject_HEAD struct bench *bench;
};

static struct bench *self_of(PyObject *object)
{
    return ((struct bench_object *)object)->bench;
}

static void bench_free(struct bench *bench)
{
    if (!bench)
        return;
    map_free(&bench->names);
    plumb_run_free(bench->run);
    free(bench->seen);
    free(bench);
}

static enum plumb_code list_names(struct bench *bench, struct plumb_error *err)
{
    const size_t count = plumb_run_count(bench->run);
    bench->seen = calloc(count + 1, sizeof *bench->seen);
    if (!bench->seen)
        return plumb_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const struct plumb_recorded *recorded = plumb_run_record(bench->run, i)->recorded;
        if (!recorded || !recorded->tensor || !recorded->data_name)
            continue;
        uint64_t *number =
            map_put(&bench->names, recorded->data_name, strlen(recorded->data_name), NULL);
        if (!number)
            return plumb_no_memory(err);
        *number = i;
    }
    if (!bench->names.count)
        return plumb_fail(err, PLUMB_E_ARG,
                          "%s has no tensors to compare with: make it with task=\"sketch\"",
                          plumb_run_path(bench->run));
    return PLUMB_OK;
}

static PyObject *bench_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *path, *object = NULL;
    char *name;
    if (!PyArg_ParseTuple(args, "O:Bench", &path) || !(name = core_path(path)))
        return NULL;
    struct plumb_error err = {0};
    struct bench *bench = calloc(1, sizeof *bench);
    enum plumb_code code = bench ? PLUMB_OK : plumb_no_memory(&err);
    Py_BEGIN_ALLOW_THREADS;
    if (!code)
        code = plumb_run_open(&bench->run, name, &err);
    if (!code)
        code = list_names(bench, &err);
    Py_END_ALLOW_THREADS;
    free(name);
    if (code)
        core_raise(&err);
    else if ((object = PyType_GenericAlloc(type, 0)))
        ((struct bench_object *)object)->bench = bench;
    if (!object)
        bench_free(bench);
    return object;
}

static void bench_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    bench_free(self_of(object));
    PyObject_Free(object);
    Py_DECREF(type);
}

/* -- Comparing --------------------------------------------------------------------------------- */

/* What was measured, as a condensed file would say it. Points into measured. */
static struct plumb_kept kept_of(const struct measured *measured, enum plumb_dtype dtype,
                                 char hash[HASH_BYTES])
{
    hash_text(&measured->hash, hash);
    return (struct plumb_kept){.nan = measured->stats.nan,
                               .pos_inf = measured->stats.pos_inf,
                               .neg_inf = measured->stats.neg_inf,
                               .dtype = dtype,
                               .hash = hash,
                               .sketch = &measured->sketch};
}

static double norm_of(const struct plumb_recorded *recorded)
{
    struct plumb_value norm = plumb_recorded_kept(recorded)->finite[PLUMB_STATISTIC_NORM];
    if (norm.kind != PLUMB_VALUE_NUMBER)
        norm = plumb_recorded_statistic(recorded, PLUMB_STATISTIC_NORM);
    return norm.kind == PLUMB_VALUE_NUMBER && isfinite(norm.number) ? fabs(norm.number) : NAN;
}

/* The earlier tensor is there with its values: what a sketch of it would say. */
static enum plumb_code measure_record(const struct plumb_run *run, size_t index,
                                      struct measured *out, struct plumb_error *err)
{
    struct plumb_payload payload;
    struct plumb_file_guard guard;
    enum plumb_code code = plumb_run_load(run, index, &payload, err);
    if (code)
        return code;
    plumb_file_guard_enter(&guard, &payload.file);
    if (measure(out, &payload.tensor, PLUMB_KEEP_ALL, NULL, NULL) == MEASURE_NO_MEMORY)
        code = plumb_no_memory(err);
    if (plumb_file_guard_leave(&guard))
        code = plumb_fail(err, PLUMB_E_IO, "it became shorter while it was read");
    plumb_payload_release(&payload);
    return code;
}

static enum plumb_code judge(const struct plumb_run *run, size_t index,
                             const struct core_sketch *sketch, double limit, enum parted *outcome,
                             char *why, size_t size, struct plumb_error *err)
{
    const struct plumb_record *record = plumb_run_record(run, index);
    const struct plumb_recorded *recorded = record->recorded;
    struct measured *there = NULL;
    char hashes[2][HASH_BYTES];
    struct plumb_kept kept[2] = {kept_of(sketch->measured, sketch->tensor->dtype, hashes[0])};
    struct parted_side target = {sketch->tensor->dtype, sketch->tensor->rank, sketch->tensor->shape,
                                 &kept[0], NAN};
    struct parted_side golden = {record->dtype, record->ndim, record->shape,
                                 plumb_recorded_kept(recorded), NAN};
    if (golden.kept) {
        golden.norm = norm_of(recorded);
    } else {
        enum plumb_code code = PLUMB_OK;
        if (!(there = malloc(sizeof *there)))
            code = plumb_no_memory(err);
        else
            code = measure_record(run, index, there, err);
        if (code) {
            free(there);
            return code;
        }
        kept[1] = kept_of(there, record->dtype, hashes[1]);
        golden.kept = &kept[1];
        golden.norm = there->finite.norm;
    }
    *outcome = parted_judge(&target, &golden, limit, why, size);
    free(there);
    return PLUMB_OK;
}

static PyObject *bench_compare(PyObject *object, PyObject *args)
{
    static const char *const words[] = {[PARTED_EQUAL] = "equal",
                                        [PARTED_NEAR] = "near",
                                        [PARTED_APART] = "parted",
                                        [PARTED_UNKNOWN] = "unknown"};
    PyObject *name, *given;
    double limit;
    struct core_sketch sketch;
    if (!PyArg_ParseTuple(args, "OOd:compare", &name, &given, &limit) ||
        !core_sketch_of(given, &sketch))
        return NULL;
    struct bench *bench = self_of(object);
    char *text = core_text(name, "name");
    if (!text)
        return NULL;
    const uint64_t *number = map_get(&bench->names, text, strlen(text));
    free(text);
    if (!number)
        return Py_BuildValue("(ss)", "alone", "not in the earlier run");
    bench->seen[*number] = true;
    char why[400];
    enum parted outcome = PARTED_UNKNOWN;
    struct plumb_error err;
    enum plumb_code code;
    Py_BEGIN_ALLOW_THREADS;
    code = judge(bench->run, (size_t)*number, &sketch, limit, &outcome, why, sizeof why, &err);
    Py_END_ALLOW_THREADS;
    if (code)
        return core_raise(&err);
    return Py_BuildValue("(ss)", words[outcome], why);
}

static PyObject *bench_unseen(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct bench *bench = self_of(object);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < plumb_run_count(bench->run); i++) {
        const struct plumb_recorded *recorded = plumb_run_record(bench->run, i)->recorded;
        if (!recorded || !recorded->tensor || !recorded->data_name || bench->seen[i])
            continue;
        PyObject *name =
            PyUnicode_Decode(recorded->data_name, (Py_ssize_t)strlen(recorded->data_name), "utf-8",
                             "backslashreplace");
        if (!name || PyList_Append(list, name) < 0) {
            Py_DECREF(list);
            list = NULL;
        }
        Py_XDECREF(name);
    }
    return list;
}

int core_add_bench(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"compare", bench_compare, METH_VARARGS,
         "compare(name, sketch, limit): (\"equal\", \"near\", \"parted\", \"unknown\" or "
         "\"alone\", why)."},
        {"unseen", bench_unseen, METH_NOARGS, "Names that nothing was compared with."},
        {0},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Bench(path): the sketches of one step and rank of an earlier run."},
        {Py_tp_new, CORE_SLOT(bench_new)},
        {Py_tp_dealloc, CORE_SLOT(bench_dealloc)},
        {Py_tp_methods, methods},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "plumb._core.Bench",
        .basicsize = sizeof(struct bench_object),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };
    return core_add_type(module, &spec) ? 0 : -1;
}
