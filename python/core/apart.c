/* Where two tensors part: single elements, for messages. */
#include "core.h"

#include "metric/kernel.h"
#include "plumb/metric.h"

#include <inttypes.h>
#include <math.h>

struct tolerance {
    struct close_limits limits;
    bool equal_nan;
};

static bool is_close(double target, double golden, const struct tolerance *tolerance)
{
    if (isnan(target) || isnan(golden))
        return tolerance->equal_nan && isnan(target) && isnan(golden);
    if (isinf(target) || isinf(golden))
        return target == golden;
    return fabs(target - golden) <= close_room(&tolerance->limits, golden);
}

/* The number (not element) of the first pair that is not close, or the count of numbers. */
static uint64_t find_apart(const struct plumb_tensor *target, const struct plumb_tensor *golden,
                           const struct tolerance *tolerance)
{
    double t[PLUMB_METRIC_BLOCK], g[PLUMB_METRIC_BLOCK];
    const unsigned parts = plumb_dtype_parts(target->dtype);
    const uint64_t step = PLUMB_METRIC_BLOCK / parts;
    for (uint64_t at = 0; at < target->count; at += step) {
        const uint64_t left = target->count - at;
        const size_t n = left < step ? (size_t)left : (size_t)step;
        plumb_tensor_to_f64(target, at, n, t);
        plumb_tensor_to_f64(golden, at, n, g);
        for (size_t i = 0; i < n * parts; i++)
            if (!is_close(t[i], g[i], tolerance))
                return at * parts + i;
    }
    return target->count * parts;
}

static PyObject *first_apart(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    char *keywords[] = {"target", "golden", "rtol", "atol", "equal_nan", NULL};
    PyObject *first, *second;
    struct tolerance tolerance = {0};
    int equal_nan = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOdd|p:first_apart", keywords, &first, &second,
                                     &tolerance.limits.rtol, &tolerance.limits.atol, &equal_nan))
        return NULL;
    tolerance.equal_nan = equal_nan;
    const struct plumb_tensor *target = core_tensor_of(first, "target");
    const struct plumb_tensor *golden = target ? core_tensor_of(second, "golden") : NULL;
    if (!golden)
        return NULL;
    const unsigned parts = plumb_dtype_parts(target->dtype);
    if (target->count != golden->count || parts != plumb_dtype_parts(golden->dtype))
        return core_raise_text(PLUMB_E_ARG, "%" PRIu64 " elements against %" PRIu64, target->count,
                               golden->count);
    uint64_t found;
    Py_BEGIN_ALLOW_THREADS;
    found = find_apart(target, golden, &tolerance);
    Py_END_ALLOW_THREADS;
    if (found == target->count * parts)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(found / parts);
}

static PyObject *element(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *tensor, *number;
    int64_t index;
    if (!PyArg_ParseTuple(args, "OO:element", &tensor, &number) ||
        !core_int64(number, "index", &index))
        return NULL;
    const struct plumb_tensor *view = core_tensor_of(tensor, "tensor");
    if (!view)
        return NULL;
    if (index < 0 || (uint64_t)index >= view->count) {
        PyErr_SetString(PyExc_IndexError, "there is no such element");
        return NULL;
    }
    return core_tensor_element(view, (uint64_t)index);
}

int core_add_apart(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"first_apart", (PyCFunction)(void (*)(void))first_apart, METH_VARARGS | METH_KEYWORDS,
         "first_apart(target, golden, rtol, atol, equal_nan=False): the first element, in C "
         "order, that is not close; or None."},
        {"element", element, METH_VARARGS,
         "element(tensor, index): one element, counted in C order, as a Python number."},
        {0},
    };
    return PyModule_AddFunctions(module, methods);
}
