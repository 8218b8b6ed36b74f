/* plumb's operators, called with Python's values. */
#include "core.h"

#include "base/arena.h"
#include "plumb/op.h"

#include <stdlib.h>
#include <string.h>

static PyTypeObject *dtype_type, *device_type;

/* -- From Python ------------------------------------------------------------------------------- */

static char *keep_text(struct arena *arena, PyObject *value, const char *what)
{
    char *text = core_text(value, what), *kept = NULL;
    if (text && !(kept = arena_copy(arena, text, strlen(text))))
        PyErr_NoMemory();
    free(text);
    return kept;
}

static bool read_value(struct arena *arena, PyObject *value, struct plumb_arg *arg);

static bool read_list(struct arena *arena, PyObject *value, struct plumb_arg *arg)
{
    PyObject *items = PySequence_Tuple(value);
    if (!items)
        return false;
    const size_t count = (size_t)PyTuple_Size(items);
    struct plumb_arg *list = arena_alloc(arena, (count + 1) * sizeof *list);
    bool good = list != NULL;
    if (!good)
        PyErr_NoMemory();
    for (size_t i = 0; i < count && good; i++)
        good = read_value(arena, PyTuple_GetItem(items, (Py_ssize_t)i), &list[i]);
    Py_DECREF(items);
    arg->kind = PLUMB_ARG_LIST;
    arg->items = list;
    arg->n_items = count;
    return good;
}

static bool read_slice(struct arena *arena, PyObject *value, struct plumb_arg *arg)
{
    static const char *const ends[] = {"start", "stop", "step"};
    struct plumb_arg *items = arena_alloc(arena, 3 * sizeof *items);
    if (!items) {
        PyErr_NoMemory();
        return false;
    }
    arg->kind = PLUMB_ARG_SLICE;
    arg->items = items;
    arg->n_items = 3;
    bool good = true;
    for (int i = 0; i < 3 && good; i++) {
        PyObject *end = PyObject_GetAttrString(value, ends[i]);
        good = end && read_value(arena, end, &items[i]);
        Py_XDECREF(end);
    }
    return good;
}

/* A str, or one that says it is a dtype or a device. */
static bool read_word(struct arena *arena, PyObject *value, struct plumb_arg *arg)
{
    char *text = keep_text(arena, value, "an argument");
    if (!text)
        return false;
    arg->kind = PLUMB_ARG_TEXT;
    arg->text = text;
    if (PyObject_TypeCheck(value, device_type)) {
        arg->kind = PLUMB_ARG_DEVICE;
    } else if (PyObject_TypeCheck(value, dtype_type)) {
        arg->kind = PLUMB_ARG_DTYPE;
        arg->dtype = plumb_dtype_from_name(text);
        if (arg->dtype == PLUMB_DTYPE_COUNT) {
            core_raise_text(PLUMB_E_UNSUPPORTED, "plumb knows no dtype \"%s\"", text);
            return false;
        }
    }
    return true;
}

/* What operators take no part in: dicts. They are told of it, and refuse. */
static bool read_other(struct arena *arena, PyObject *value, struct plumb_arg *arg)
{
    PyObject *text = PyObject_Repr(value);
    arg->kind = PLUMB_ARG_OTHER;
    arg->text = text ? keep_text(arena, text, "an argument") : NULL;
    Py_XDECREF(text);
    return arg->text != NULL;
}

static bool read_value(struct arena *arena, PyObject *value, struct plumb_arg *arg)
{
    *arg = (struct plumb_arg){.kind = PLUMB_ARG_NONE};
    if (value == Py_None)
        return true;
    if (core_tensor_is(value)) {
        arg->kind = PLUMB_ARG_TENSOR;
        arg->tensor = core_tensor_of(value, "an argument");
        arg->requires_grad = core_tensor_requires_grad(value);
        return true;
    }
    if (PyBool_Check(value)) {
        arg->kind = PLUMB_ARG_BOOL;
        arg->integer = value == Py_True;
        return true;
    }
    if (PyFloat_Check(value)) {
        arg->kind = PLUMB_ARG_FLOAT;
        arg->number = PyFloat_AsDouble(value);
        return true;
    }
    if (PyUnicode_Check(value))
        return read_word(arena, value, arg);
    if (value == Py_Ellipsis) {
        arg->kind = PLUMB_ARG_ELLIPSIS;
        return true;
    }
    if (PyIndex_Check(value)) {
        arg->kind = PLUMB_ARG_INT;
        return core_int64(value, "an argument", &arg->integer);
    }
    if (PyComplex_Check(value)) {
        arg->kind = PLUMB_ARG_COMPLEX;
        arg->number = PyComplex_RealAsDouble(value);
        arg->imaginary = PyComplex_ImagAsDouble(value);
        return true;
    }
    if (PyDict_Check(value))
        return read_other(arena, value, arg);
    const bool slice = Py_TYPE(value) == &PySlice_Type;
    if (!slice && !PyList_Check(value) && !PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "operators take no argument of %R", Py_TYPE(value));
        return false;
    }
    if (Py_EnterRecursiveCall(" in the arguments of an operator"))
        return false;
    const bool good = (slice ? read_slice : read_list)(arena, value, arg);
    Py_LeaveRecursiveCall();
    return good;
}

static bool read_kwargs(struct arena *arena, PyObject *dict, struct plumb_call *call)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    size_t i = 0;
    struct plumb_kwarg *list = arena_alloc(arena, ((size_t)PyDict_Size(dict) + 1) * sizeof *list);
    if (!list) {
        PyErr_NoMemory();
        return false;
    }
    bool good = true;
    while (good && PyDict_Next(dict, &at, &key, &value)) {
        list[i].name = keep_text(arena, key, "the name of an argument");
        good = list[i].name && read_value(arena, value, &list[i].value);
        i++;
    }
    call->kwargs = list;
    call->n_kwargs = i;
    return good;
}

bool core_read_value(struct arena *arena, PyObject *value, struct plumb_arg *arg)
{
    return read_value(arena, value, arg);
}

bool core_read_call(struct arena *arena, PyObject *args, PyObject *kwargs, struct plumb_call *call)
{
    struct plumb_arg list;
    if (!read_list(arena, args, &list) || !read_kwargs(arena, kwargs, call))
        return false;
    call->args = list.items;
    call->n_args = list.n_items;
    return true;
}

bool core_read_grads(struct arena *arena, PyObject *grads, struct plumb_call *call)
{
    if (grads == Py_None)
        return true;
    struct plumb_arg list;
    if (!read_list(arena, grads, &list))
        return false;
    const struct plumb_tensor **tensors = arena_alloc(arena, (list.n_items + 1) * sizeof *tensors);
    if (!tensors) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < list.n_items; i++) {
        const enum plumb_arg_kind kind = list.items[i].kind;
        if (kind != PLUMB_ARG_TENSOR && kind != PLUMB_ARG_NONE) {
            PyErr_SetString(PyExc_TypeError, "each of grads must be a Tensor or None");
            return false;
        }
        tensors[i] = kind == PLUMB_ARG_TENSOR ? list.items[i].tensor : NULL;
    }
    call->grads = tensors;
    call->n_grads = list.n_items;
    return true;
}

/* -- To Python --------------------------------------------------------------------------------- */

static PyObject *make_value(const struct plumb_arg *arg, PyObject *owner);

static PyObject *make_list(const struct plumb_arg *items, size_t count, PyObject *owner)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = make_value(&items[i], owner);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            Py_DECREF(list);
            list = NULL;
        }
    }
    return list;
}

static PyObject *make_value(const struct plumb_arg *arg, PyObject *owner)
{
    switch (arg->kind) {
    case PLUMB_ARG_TENSOR:
        return core_tensor_new(arg->tensor, arg->requires_grad, owner);
    case PLUMB_ARG_BOOL:
        return PyBool_FromLong(arg->integer != 0);
    case PLUMB_ARG_INT:
        return PyLong_FromLongLong(arg->integer);
    case PLUMB_ARG_FLOAT:
        return PyFloat_FromDouble(arg->number);
    case PLUMB_ARG_COMPLEX:
        return PyComplex_FromDoubles(arg->number, arg->imaginary);
    case PLUMB_ARG_TEXT:
    case PLUMB_ARG_OTHER:
        return PyUnicode_FromString(arg->text ? arg->text : "");
    case PLUMB_ARG_DTYPE:
        return PyObject_CallFunction((PyObject *)dtype_type, "s",
                                     plumb_dtype_info(arg->dtype)->name);
    case PLUMB_ARG_DEVICE:
        return PyObject_CallFunction((PyObject *)device_type, "s", arg->text);
    case PLUMB_ARG_LIST:
    case PLUMB_ARG_SLICE:
        return make_list(arg->items, arg->n_items, owner);
    case PLUMB_ARG_ELLIPSIS:
        Py_INCREF(Py_Ellipsis);
        return Py_Ellipsis;
    case PLUMB_ARG_NONE:
        break;
    }
    Py_RETURN_NONE;
}

static void free_result(PyObject *capsule)
{
    struct plumb_result *result = PyCapsule_GetPointer(capsule, NULL);
    plumb_result_destroy(result);
    free(result);
}

/* Results may be views of the arguments: their owner holds on to both. Takes over result. */
static PyObject *make_results(struct plumb_result *result, PyObject *args, PyObject *kwargs)
{
    PyObject *capsule = PyCapsule_New(result, NULL, free_result);
    if (!capsule) {
        plumb_result_destroy(result);
        free(result);
        return NULL;
    }
    PyObject *answer = NULL, *owner = Py_BuildValue("NOO", capsule, args, kwargs);
    if (!owner)
        return NULL;
    PyObject *outputs = make_list(result->outputs, result->n_outputs, owner);
    PyObject *grads = make_list(result->grads, result->n_grads, owner);
    if (outputs && grads)
        answer = Py_BuildValue("OOO", outputs, result->tuple ? Py_True : Py_False, grads);
    Py_XDECREF(outputs);
    Py_XDECREF(grads);
    Py_DECREF(owner);
    return answer;
}

/* -- The functions ----------------------------------------------------------------------------- */

static PyObject *has_op(PyObject *module, PyObject *args)
{
    (void)module;
    const char *prefix, *name;
    if (!PyArg_ParseTuple(args, "zs:has_op", &prefix, &name))
        return NULL;
    struct plumb_error err;
    if (plumb_op_ready(&err))
        return core_raise(&err);
    return PyBool_FromLong(plumb_op_find(prefix, name) != NULL);
}

/* Every name of every operator, one after the other; names may come more than once. */
static PyObject *op_names(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    struct plumb_error err;
    if (plumb_op_ready(&err))
        return core_raise(&err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && plumb_op_at(i); i++) {
        PyObject *names = PyUnicode_FromString(plumb_op_at(i)->names);
        const bool added = names && PyList_Append(list, names) == 0;
        Py_XDECREF(names);
        if (!added) {
            Py_DECREF(list);
            list = NULL;
        }
    }
    return list;
}

static PyObject *run_op(PyObject *module, PyObject *arguments, PyObject *keywords_given)
{
    (void)module;
    char *keywords[] = {"prefix", "name", "args", "kwargs", "grads", "raised", NULL};
    PyObject *args, *kwargs, *grads = Py_None, *answer = NULL;
    struct plumb_call call = {0};
    int raised = 1;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords_given, "zsOO!|Op:run_op", keywords,
                                     &call.prefix, &call.name, &args, &PyDict_Type, &kwargs, &grads,
                                     &raised))
        return NULL;
    if (PyUnicode_Check(args) || !PySequence_Check(args)) {
        PyErr_Format(PyExc_TypeError, "args must be a sequence, not %R", Py_TYPE(args));
        return NULL;
    }
    struct arena arena = {0};
    struct plumb_arg list;
    struct plumb_error err;
    enum plumb_code code;
    /* Copies, so that the tensors in them outlive the call whatever other threads do. */
    args = PySequence_Tuple(args);
    kwargs = PyDict_Copy(kwargs);
    grads = grads == Py_None ? Py_BuildValue("") : PySequence_Tuple(grads);
    struct plumb_result *result = calloc(1, sizeof *result);
    if (!args || !kwargs || !grads)
        goto out;
    if (!result) {
        PyErr_NoMemory();
        goto out;
    }
    if (!read_list(&arena, args, &list) || !read_kwargs(&arena, kwargs, &call) ||
        !core_read_grads(&arena, grads, &call))
        goto out;
    call.args = list.items;
    call.n_args = list.n_items;
    Py_BEGIN_ALLOW_THREADS;
    code = plumb_op_run(&call, raised ? PLUMB_RAISED : PLUMB_OWN, result, &err);
    Py_END_ALLOW_THREADS;
    if (code) {
        plumb_result_destroy(result);
        core_raise(&err);
        goto out;
    }
    answer = make_results(result, args, kwargs);
    result = NULL;
out:
    free(result);
    arena_free(&arena);
    Py_XDECREF(grads);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    return answer;
}

/* A str with a meaning. */
static PyTypeObject *add_word(PyObject *module, const char *name, const char *doc)
{
    PyObject *type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){sssssN}", name,
                                           &PyUnicode_Type, "__module__", "plumb._core", "__doc__",
                                           doc, "__slots__", PyTuple_New(0));
    if (!type)
        return NULL;
    Py_INCREF(type);
    if (PyModule_AddObject(module, name, type) < 0) {
        Py_DECREF(type);
        Py_DECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}

int core_add_ops(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"has_op", has_op, METH_VARARGS, "has_op(prefix, name): whether plumb has the operator."},
        {"op_names", op_names, METH_NOARGS, "op_names(): a text of names for each operator."},
        {"run_op", (PyCFunction)(void (*)(void))run_op, METH_VARARGS | METH_KEYWORDS,
         "run_op(prefix, name, args, kwargs, grads=None, raised=True): (outputs, tuple, grads)."},
        {0},
    };
    dtype_type = add_word(module, "DType", "A dtype as an operator's argument.");
    device_type = add_word(module, "Device", "A device as an operator's argument.");
    return dtype_type && device_type ? PyModule_AddFunctions(module, methods) : -1;
}
