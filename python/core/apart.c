/* Where two tensors part: single elements, for messages. */
#include "core.h"

#include "plumb/verdict.h"

#include <inttypes.h>

static PyObject *first_apart(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    char *keywords[] = {"target", "golden", "rtol", "atol", "equal_nan", NULL};
    PyObject *first, *second;
    struct plumb_tolerance tolerance;
    int equal_nan = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOdd|p:first_apart", keywords, &first, &second,
                                     &tolerance.rtol, &tolerance.atol, &equal_nan))
        return NULL;
    tolerance.equal_nan = equal_nan;
    const struct plumb_tensor *target = core_tensor_of(first, "target");
    const struct plumb_tensor *golden = target ? core_tensor_of(second, "golden") : NULL;
    if (!golden)
        return NULL;
    if (target->count != golden->count ||
        plumb_dtype_parts(target->dtype) != plumb_dtype_parts(golden->dtype))
        return core_raise_text(PLUMB_E_ARG, "%" PRIu64 " elements against %" PRIu64, target->count,
                               golden->count);
    uint64_t found;
    Py_BEGIN_ALLOW_THREADS;
    found = plumb_first_apart(target, golden, &tolerance);
    Py_END_ALLOW_THREADS;
    if (found == target->count)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(found);
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
