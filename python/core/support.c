/* Errors as exceptions, and Python's values as C ones. */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PyObject *error_type;

int core_add_errors(PyObject *module)
{
    error_type = PyErr_NewExceptionWithDoc(
        "plumb.Error",
        "What plumb says when it cannot do something; code is one of NOMEM IO FORMAT UNSUPPORTED "
        "ARG.",
        NULL, NULL);
    if (!error_type)
        return -1;
    Py_INCREF(error_type);
    if (PyModule_AddObject(module, "Error", error_type) < 0) {
        Py_DECREF(error_type);
        return -1;
    }
    return 0;
}

static const char *code_name(enum plumb_code code)
{
    switch (code) {
    case PLUMB_E_NOMEM:
        return "NOMEM";
    case PLUMB_E_IO:
        return "IO";
    case PLUMB_E_FORMAT:
        return "FORMAT";
    case PLUMB_E_UNSUPPORTED:
        return "UNSUPPORTED";
    default:
        return "ARG";
    }
}

PyObject *core_raise(const struct plumb_error *err)
{
    char text[sizeof err->file + sizeof err->message + 64];
    plumb_error_text(err, text, sizeof text);
    /* File names need not be UTF-8. */
    PyObject *message =
        PyUnicode_Decode(text, (Py_ssize_t)strlen(text), "utf-8", "backslashreplace");
    PyObject *code = PyUnicode_FromString(code_name(err->code));
    PyObject *error = NULL;
    if (message && code)
        error = PyObject_CallFunctionObjArgs(error_type, message, NULL);
    if (error && PyObject_SetAttrString(error, "code", code) == 0)
        PyErr_SetObject(error_type, error);
    Py_XDECREF(error);
    Py_XDECREF(code);
    Py_XDECREF(message);
    return NULL;
}

PyObject *core_raise_text(enum plumb_code code, const char *format, ...)
{
    struct plumb_error err = {.code = code, .offset = PLUMB_NO_OFFSET};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err.message, sizeof err.message, format, arguments);
    va_end(arguments);
    return core_raise(&err);
}

/* Every integer type that Python knows: numpy's and torch's too, but no float. */
static PyObject *as_index(PyObject *value, const char *what)
{
    if (PyBool_Check(value) || !PyIndex_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must be an int, not %R", what, Py_TYPE(value));
        return NULL;
    }
    return PyNumber_Index(value);
}

bool core_int64(PyObject *value, const char *what, int64_t *out)
{
    PyObject *number = as_index(value, what);
    if (!number)
        return false;
    int overflow;
    long long result = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow) {
        core_raise_text(PLUMB_E_ARG, "%s does not fit in 64 bits", what);
        return false;
    }
    *out = result;
    return !PyErr_Occurred();
}

bool core_address(PyObject *value, const char *what, void **out)
{
    PyObject *number = as_index(value, what);
    if (!number)
        return false;
    unsigned long long result = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        core_raise_text(PLUMB_E_ARG, "%s is no address", what);
        return false;
    }
    *out = (void *)(uintptr_t)result;
    return true;
}

/* Takes over bytes. */
static char *copy_bytes(PyObject *bytes, const char *what)
{
    char *data, *copy = NULL;
    Py_ssize_t size;
    if (!bytes || PyBytes_AsStringAndSize(bytes, &data, &size) < 0)
        goto out;
    if (memchr(data, 0, (size_t)size)) {
        core_raise_text(PLUMB_E_ARG, "%s has a NUL in it", what);
        goto out;
    }
    copy = malloc((size_t)size + 1);
    if (copy)
        memcpy(copy, data, (size_t)size + 1);
    else
        PyErr_NoMemory();
out:
    Py_XDECREF(bytes);
    return copy;
}

char *core_text(PyObject *value, const char *what)
{
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str, not %R", what, Py_TYPE(value));
        return NULL;
    }
    return copy_bytes(PyUnicode_AsEncodedString(value, "utf-8", "backslashreplace"), what);
}

char *core_path(PyObject *value)
{
    PyObject *plain = PyOS_FSPath(value), *bytes = NULL;
    if (!plain)
        return NULL;
    if (PyBytes_Check(plain)) {
        bytes = plain;
        Py_INCREF(bytes);
    } else {
        bytes = PyUnicode_EncodeFSDefault(plain);
    }
    Py_DECREF(plain);
    return copy_bytes(bytes, "path");
}

/* A sequence of str as a tuple; a str by itself is a mistake that would go unnoticed. */
PyObject *core_texts(PyObject *value, const char *what)
{
    if (PyUnicode_Check(value) || !PySequence_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must be a sequence of str, not %R", what, Py_TYPE(value));
        return NULL;
    }
    return PySequence_Tuple(value);
}

PyObject *core_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (!type)
        return NULL;
    Py_INCREF(type); /* the caller's, for as long as the process lives */
    if (PyModule_AddObject(module, strrchr(spec->name, '.') + 1, type) < 0) {
        Py_DECREF(type);
        Py_DECREF(type);
        return NULL;
    }
    return type;
}
