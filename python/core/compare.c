/* A pair of tensors: all metrics, and the verdict of a standard. */
#include "core.h"

#include "base/pool.h"
#include "verdict/same.h"

#include <stdlib.h>
#include <string.h>

/* Below this a second thread costs more than it saves. */
enum { THREADED_BYTES = 1 << 20, PART = 64 * PLUMB_METRIC_BLOCK, MAX_THREADS = 4 };

struct work {
    const struct plumb_tensor *target, *golden;
    struct plumb_metric_state *states[MAX_THREADS];
};

static void add_part(void *context, size_t i, unsigned thread)
{
    struct work *work = context;
    plumb_metric_update(work->states[thread], work->target, work->golden, (uint64_t)i * PART, PART);
}

static enum plumb_code measure(const struct plumb_metric_spec *spec,
                               const struct plumb_tensor *target, const struct plumb_tensor *golden,
                               struct plumb_metrics *out, struct plumb_error *err)
{
    const uint64_t bytes = plumb_tensor_bytes(target) + plumb_tensor_bytes(golden);
    if (bytes < THREADED_BYTES || target->count != golden->count)
        return plumb_metric_pair(spec, target, golden, out, err);
    struct work work = {.target = target, .golden = golden};
    const unsigned processors = pool_default_threads();
    const unsigned threads = processors < MAX_THREADS ? processors : MAX_THREADS;
    enum plumb_code code = PLUMB_OK;
    for (unsigned i = 0; i < threads && !code; i++) {
        work.states[i] = plumb_metric_new(spec, target->dtype, golden->dtype, target->count);
        if (!work.states[i])
            code = plumb_no_memory(err);
    }
    if (!code) {
        pool_run(threads, (size_t)((target->count + PART - 1) / PART), add_part, &work);
        for (unsigned i = 1; i < threads; i++)
            plumb_metric_merge(work.states[0], work.states[i]);
        plumb_metric_finish(work.states[0], out);
    }
    for (unsigned i = 0; i < threads; i++)
        plumb_metric_free(work.states[i]);
    return code;
}

/* -- Metrics as a dict ------------------------------------------------------------------------- */

static PyObject *metric_value(const struct plumb_metric_name *name,
                              const struct plumb_metrics *metrics)
{
    if (strcmp(name->name, "max_abs_index") == 0) {
        if (metrics->max_abs_index == metrics->count)
            Py_RETURN_NONE;
        return PyLong_FromUnsignedLongLong(metrics->max_abs_index);
    }
    const double value = name->value(metrics);
    return name->integer ? PyLong_FromDouble(value) : PyFloat_FromDouble(value);
}

static bool put_metric(PyObject *dict, const struct plumb_metric_name *name,
                       const struct plumb_metrics *metrics)
{
    PyObject *value = metric_value(name, metrics);
    const bool good = value && PyDict_SetItemString(dict, name->name, value) == 0;
    Py_XDECREF(value);
    return good;
}

/* Every metric of the groups. */
static PyObject *group_dict(unsigned groups, const struct plumb_metrics *metrics)
{
    PyObject *dict = PyDict_New();
    const struct plumb_metric_name *name = plumb_metric_names();
    for (; dict && name->name; name++)
        if ((name->group & (groups | PLUMB_G_ERROR)) && !put_metric(dict, name, metrics)) {
            Py_DECREF(dict);
            return NULL;
        }
    return dict;
}

static PyObject *named_dict(PyObject *names, const struct plumb_metrics *metrics)
{
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; dict && i < PyTuple_Size(names); i++) {
        char *text = core_text(PyTuple_GetItem(names, i), "a metric");
        if (!text || !put_metric(dict, plumb_metric_find(text), metrics)) {
            Py_DECREF(dict);
            dict = NULL;
        }
        free(text);
    }
    return dict;
}

/* The groups that the named metrics are in; false with an exception set when there is no such. */
static bool groups_of(PyObject *names, unsigned *groups)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
        char *text = core_text(PyTuple_GetItem(names, i), "a metric");
        if (!text)
            return false;
        const struct plumb_metric_name *name = plumb_metric_find(text);
        if (name)
            *groups |= name->group;
        else
            core_raise_text(PLUMB_E_ARG,
                            "there is no metric \"%s\" (plumb help metrics lists them)", text);
        free(text);
        if (!name)
            return false;
    }
    return true;
}

static PyObject *core_compare(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    char *keywords[] = {"target", "golden", "metrics", "rtol", "atol", "gt", "equal_nan", NULL};
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    PyObject *first, *second, *wanted = Py_None, *names = NULL, *result = NULL;
    int equal_nan = spec.equal_nan;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$dddp:compare", keywords, &first, &second,
                                     &wanted, &spec.rtol, &spec.atol, &spec.gt, &equal_nan))
        return NULL;
    spec.equal_nan = equal_nan;
    const struct plumb_tensor *target = core_tensor_of(first, "target");
    const struct plumb_tensor *golden = target ? core_tensor_of(second, "golden") : NULL;
    if (!golden)
        return NULL;
    spec.groups = wanted == Py_None ? PLUMB_G_ALL : PLUMB_G_ERROR;
    if (wanted != Py_None &&
        (!(names = core_texts(wanted, "metrics")) || !groups_of(names, &spec.groups)))
        goto out;

    struct plumb_metrics metrics;
    struct plumb_error err;
    enum plumb_code code;
    Py_BEGIN_ALLOW_THREADS;
    code = measure(&spec, target, golden, &metrics, &err);
    Py_END_ALLOW_THREADS;
    if (code)
        core_raise(&err);
    else
        result = names ? named_dict(names, &metrics) : group_dict(spec.groups, &metrics);
out:
    Py_XDECREF(names);
    return result;
}

/* -- Verdicts ---------------------------------------------------------------------------------- */

static struct plumb_standard *load_standard(PyObject *name, PyObject *settings)
{
    struct plumb_standard *standard = NULL;
    struct plumb_error err;
    char *text = core_path(name);
    PyObject *items = text ? core_texts(settings, "settings") : NULL;
    enum plumb_code code = PLUMB_OK;
    if (!items)
        goto out;
    code = plumb_standard_load(&standard, text, &err);
    for (Py_ssize_t i = 0; i < PyTuple_Size(items) && !code; i++) {
        char *setting = core_text(PyTuple_GetItem(items, i), "a setting");
        if (!setting) {
            plumb_standard_free(standard);
            standard = NULL;
            goto out;
        }
        code = plumb_standard_override(standard, setting, &err);
        free(setting);
    }
    if (code) {
        core_raise(&err);
        plumb_standard_free(standard);
        standard = NULL;
    }
out:
    Py_XDECREF(items);
    free(text);
    return standard;
}

static const char *const words[] = {"pass", "suspicious", "fail"};

static PyObject *core_judge(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    char *keywords[] = {"target", "golden", "standard", "settings", NULL};
    PyObject *first, *second, *name, *settings = NULL, *none = NULL, *result = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:judge", keywords, &first, &second, &name,
                                     &settings))
        return NULL;
    const struct plumb_tensor *target = core_tensor_of(first, "target");
    const struct plumb_tensor *golden = target ? core_tensor_of(second, "golden") : NULL;
    if (!golden || (!settings && !(none = PyTuple_New(0))))
        return NULL;
    struct plumb_standard *standard = load_standard(name, settings ? settings : none);
    Py_XDECREF(none);
    if (!standard)
        return NULL;

    struct plumb_metric_spec spec;
    struct plumb_metrics metrics;
    struct plumb_verdict verdict;
    struct plumb_error err;
    enum plumb_code code;
    plumb_metric_spec_init(&spec);
    plumb_standard_spec(standard, &spec);
    Py_BEGIN_ALLOW_THREADS;
    code = measure(&spec, target, golden, &metrics, &err);
    Py_END_ALLOW_THREADS;
    if (code) {
        core_raise(&err);
    } else {
        plumb_standard_judge(standard, &metrics, &verdict);
        result = Py_BuildValue("ssN", words[verdict.severity], verdict.rule,
                               group_dict(spec.groups, &metrics));
    }
    plumb_standard_free(standard);
    return result;
}

static PyObject *core_same(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *first, *second, *result = NULL;
    double precision;
    if (!PyArg_ParseTuple(args, "OOd:same", &first, &second, &precision))
        return NULL;
    const struct plumb_tensor *before = core_tensor_of(first, "before");
    const struct plumb_tensor *after = before ? core_tensor_of(second, "after") : NULL;
    if (!after)
        return NULL;

    struct same_rule rule;
    struct plumb_metrics metrics;
    struct plumb_verdict verdict;
    struct plumb_error err;
    enum plumb_code code = same_rule_init(&rule, precision, &err);
    if (!code) {
        struct plumb_metric_spec spec = same_spec(&rule, before->dtype);
        spec.groups = PLUMB_G_ALL;
        Py_BEGIN_ALLOW_THREADS;
        code = measure(&spec, after, before, &metrics, &err);
        Py_END_ALLOW_THREADS;
    }
    if (code) {
        core_raise(&err);
    } else {
        plumb_standard_judge(rule.standard, &metrics, &verdict);
        result = Py_BuildValue("ssN", words[verdict.severity], verdict.rule,
                               group_dict(PLUMB_G_ALL, &metrics));
    }
    same_rule_destroy(&rule);
    return result;
}

int core_add_compare(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"compare", (PyCFunction)(void (*)(void))core_compare, METH_VARARGS | METH_KEYWORDS,
         "compare(target, golden, metrics=None, *, rtol, atol, gt, equal_nan): a dict of metrics."},
        {"judge", (PyCFunction)(void (*)(void))core_judge, METH_VARARGS | METH_KEYWORDS,
         "judge(target, golden, standard, settings=()): (verdict, rule, metrics)."},
        {"same", core_same, METH_VARARGS,
         "same(before, after, precision): (verdict, rule, metrics) of the pass check."},
        {0},
    };
    return PyModule_AddFunctions(module, methods);
}
