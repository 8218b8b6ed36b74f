/* JSON text as Python's json module writes it with indent=1, which there is slow. */
#include "core.h"

#include "base/buf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool put_value(struct buf *out, PyObject *value, size_t level);

static void put_newline(struct buf *out, size_t level)
{
    buf_append(out, "\n", 1);
    buf_repeat(out, ' ', level);
}

/* The code point at *at of UTF-8 that Python made, so is well-formed but for lone surrogates. */
static uint32_t next_point(const unsigned char **at)
{
    const unsigned char *p = *at;
    if (p[0] < 0xe0) {
        *at += 2;
        return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3fU);
    }
    if (p[0] < 0xf0) {
        *at += 3;
        return (uint32_t)(p[0] & 0xf) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3fU);
    }
    *at += 4;
    return (uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
           (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3fU);
}

static void put_escape(struct buf *out, unsigned char c)
{
    static const char letters[] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    const char letter = c == '"' || c == '\\' ? (char)c : c < sizeof letters ? letters[c] : 0;
    if (letter)
        buf_append(out, (char[]){'\\', letter}, 2);
    else
        buf_printf(out, "\\u%04x", c);
}

static bool plain(unsigned char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static void put_escaped(struct buf *out, const unsigned char *p, const unsigned char *end)
{
    while (p < end) {
        const unsigned char *from = p;
        while (p < end && plain(*p))
            p++;
        buf_append(out, from, (size_t)(p - from));
        if (p == end)
            return;
        if (*p < 0x80) {
            put_escape(out, *p++);
            continue;
        }
        const uint32_t c = next_point(&p);
        if (c < 0x10000)
            buf_printf(out, "\\u%04" PRIx32, c);
        else
            buf_printf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + ((c - 0x10000) >> 10),
                       0xdc00 + ((c - 0x10000) & 0x3ff));
    }
}

static bool put_text(struct buf *out, PyObject *text)
{
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
    char *data;
    Py_ssize_t size;
    if (!bytes || PyBytes_AsStringAndSize(bytes, &data, &size) < 0) {
        Py_XDECREF(bytes);
        return false;
    }
    buf_append(out, "\"", 1);
    put_escaped(out, (const unsigned char *)data, (const unsigned char *)data + size);
    buf_append(out, "\"", 1);
    Py_DECREF(bytes);
    return true;
}

/* Subclasses (enumerations among them) as the plain number they are. */
static bool put_int(struct buf *out, PyObject *value)
{
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (!overflow) {
        char text[24];
        const int length = snprintf(text, sizeof text, "%lld", number);
        buf_append(out, text, (size_t)length);
        return !PyErr_Occurred();
    }
    PyObject *digits = PyNumber_ToBase(value, 10), *bytes = NULL;
    char *data;
    Py_ssize_t size;
    bool good = digits && (bytes = PyUnicode_AsASCIIString(digits)) &&
                PyBytes_AsStringAndSize(bytes, &data, &size) == 0;
    if (good)
        buf_append(out, data, (size_t)size);
    Py_XDECREF(bytes);
    Py_XDECREF(digits);
    return good;
}

static bool put_float(struct buf *out, double value)
{
    if (isnan(value) || isinf(value)) {
        buf_text(out, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
        return true;
    }
    char *text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    if (!text)
        return false;
    buf_text(out, text);
    PyMem_Free(text);
    return true;
}

/* Text, numbers and words; *known tells whether it was one. */
static bool put_scalar(struct buf *out, PyObject *value, bool *known)
{
    *known = true;
    if (PyUnicode_Check(value))
        return put_text(out, value);
    if (value == Py_None || PyBool_Check(value)) {
        buf_text(out, value == Py_None ? "null" : value == Py_True ? "true" : "false");
        return true;
    }
    if (PyLong_Check(value))
        return put_int(out, value);
    if (PyFloat_Check(value))
        return put_float(out, PyFloat_AsDouble(value));
    *known = false;
    return true;
}

static bool put_list(struct buf *out, PyObject *list, size_t level)
{
    const bool tuple = PyTuple_Check(list);
    Py_ssize_t size = tuple ? PyTuple_Size(list) : PyList_Size(list);
    if (!size) {
        buf_append(out, "[]", 2);
        return true;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        buf_append(out, i ? "," : "[", 1);
        put_newline(out, level + 1);
        PyObject *item = tuple ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i);
        if (!item || !put_value(out, item, level + 1))
            return false;
    }
    put_newline(out, level);
    buf_append(out, "]", 1);
    return true;
}

static bool put_pair(struct buf *out, PyObject *key, PyObject *value, bool first, size_t level)
{
    buf_append(out, first ? "{" : ",", 1);
    put_newline(out, level + 1);
    bool known = true, text = PyUnicode_Check(key);
    if (!text)
        buf_append(out, "\"", 1);
    if (!put_scalar(out, key, &known))
        return false;
    if (!known) {
        PyErr_Format(PyExc_TypeError, "keys must be str, int, float, bool or None, not %R",
                     Py_TYPE(key));
        return false;
    }
    if (!text)
        buf_append(out, "\"", 1);
    buf_append(out, ": ", 2);
    return put_value(out, value, level + 1);
}

/* A subclass may keep an order of its own. */
static bool put_items(struct buf *out, PyObject *dict, size_t level)
{
    PyObject *items = PyMapping_Items(dict);
    if (!items)
        return false;
    bool good = true;
    const Py_ssize_t size = PyList_Size(items);
    for (Py_ssize_t i = 0; i < size && good; i++) {
        PyObject *pair = PyList_GetItem(items, i);
        PyObject *key = pair && PyTuple_Check(pair) ? PyTuple_GetItem(pair, 0) : NULL;
        PyObject *value = key ? PyTuple_GetItem(pair, 1) : NULL;
        if (!value && !PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "items() of a dict must give pairs");
        good = value && put_pair(out, key, value, i == 0, level);
    }
    Py_DECREF(items);
    return good;
}

static bool put_dict(struct buf *out, PyObject *dict, size_t level)
{
    if (!PyDict_Size(dict)) {
        buf_append(out, "{}", 2);
        return true;
    }
    if (PyDict_CheckExact(dict)) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        for (bool first = true; PyDict_Next(dict, &at, &key, &value); first = false)
            if (!put_pair(out, key, value, first, level))
                return false;
    } else if (!put_items(out, dict, level)) {
        return false;
    }
    put_newline(out, level);
    buf_append(out, "}", 1);
    return true;
}

static bool put_value(struct buf *out, PyObject *value, size_t level)
{
    bool known;
    if (!put_scalar(out, value, &known))
        return false;
    if (known)
        return true;
    const bool dict = PyDict_Check(value);
    if (!dict && !PyList_Check(value) && !PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "JSON has no form for %R", Py_TYPE(value));
        return false;
    }
    if (Py_EnterRecursiveCall(" while writing JSON"))
        return false;
    const bool good = (dict ? put_dict : put_list)(out, value, level);
    Py_LeaveRecursiveCall();
    return good;
}

static PyObject *json_text(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    char *keywords[] = {"value", "level", NULL};
    PyObject *value, *result = NULL;
    int level = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|i:json_text", keywords, &value, &level))
        return NULL;
    if (level < 0 || level > 1 << 16)
        return core_raise_text(PLUMB_E_ARG, "level %d", level);
    struct buf out = {0};
    if (put_value(&out, value, (size_t)level)) {
        if (out.failed)
            PyErr_NoMemory();
        else
            result = PyUnicode_FromStringAndSize(out.data, (Py_ssize_t)out.size);
    }
    buf_free(&out);
    return result;
}

int core_add_json(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"json_text", (PyCFunction)(void (*)(void))json_text, METH_VARARGS | METH_KEYWORDS,
         "json_text(value, level=0): as json.dumps(value, indent=1), level deep."},
        {0},
    };
    return PyModule_AddFunctions(module, methods);
}
