/* The table of results as a Python sequence of rows. */
#define _GNU_SOURCE
#include "core.h"

#include "plumb/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table {
    PyObject_HEAD struct plumb_table *table; /* NULL until the first row tells what columns hold */
    PyObject *titles;                        /* tuple of str */
};

static PyTypeObject *table_type;

static struct table *self_of(PyObject *object)
{
    return (struct table *)object;
}

/* -- Cells ------------------------------------------------------------------------------------- */

static PyObject *from_cell(const struct plumb_cell *cell)
{
    switch (cell->type) {
    case PLUMB_CELL_TEXT:
        return PyUnicode_Decode(cell->as.text, (Py_ssize_t)strlen(cell->as.text), "utf-8",
                                "backslashreplace");
    case PLUMB_CELL_INT:
        return PyLong_FromLongLong(cell->as.integer);
    case PLUMB_CELL_REAL:
        return PyFloat_FromDouble(cell->as.real);
    default:
        Py_RETURN_NONE;
    }
}

/* Anything that is no number is shown as str() has it. */
static bool set_text(struct plumb_table *table, size_t column, PyObject *cell)
{
    PyObject *text = PyObject_Str(cell);
    char *bytes = text ? core_text(text, "a cell") : NULL;
    bool good = bytes && plumb_table_text(table, column, bytes);
    if (bytes && !good)
        PyErr_NoMemory();
    free(bytes);
    Py_XDECREF(text);
    return good;
}

static bool set_cell(struct plumb_table *table, size_t column, PyObject *cell)
{
    if (cell == Py_None)
        return true;
    if (PyLong_Check(cell) && !PyBool_Check(cell)) {
        int overflow;
        const long long number = PyLong_AsLongLongAndOverflow(cell, &overflow);
        if (!overflow) {
            plumb_table_int(table, column, number);
            return true;
        }
    }
    if (PyFloat_Check(cell)) {
        plumb_table_real(table, column, PyFloat_AsDouble(cell));
        return true;
    }
    return set_text(table, column, cell);
}

/* Text is aligned left and may be cut; what it is, the first row shows. */
static bool make_table(struct table *self, PyObject *cells)
{
    const Py_ssize_t count = PyTuple_Size(self->titles);
    struct plumb_column *columns = calloc((size_t)count + 1, sizeof *columns);
    char **titles = calloc((size_t)count + 1, sizeof *titles);
    bool good = columns && titles;
    if (!good)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && good; i++) {
        PyObject *cell = cells ? PyTuple_GetItem(cells, i) : Py_None;
        const bool text = PyUnicode_Check(cell);
        titles[i] = core_text(PyTuple_GetItem(self->titles, i), "a column");
        columns[i] = (struct plumb_column){
            .title = titles[i], .style = PLUMB_STYLE_DIGITS, .left = text, .elastic = text};
        good = titles[i] != NULL;
    }
    if (good) {
        self->table = plumb_table_new(columns, (size_t)count);
        if (!self->table)
            PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; titles && i < count; i++)
        free(titles[i]);
    free(titles);
    free(columns);
    return self->table != NULL;
}

static bool add_row(struct table *self, PyObject *row, long severity)
{
    const Py_ssize_t columns = PyTuple_Size(self->titles);
    if (PyUnicode_Check(row) || !PySequence_Check(row)) {
        PyErr_Format(PyExc_TypeError, "a row must be a sequence, not %R", Py_TYPE(row));
        return false;
    }
    PyObject *cells = PySequence_Tuple(row);
    bool good = false;
    if (!cells)
        return false;
    if (PyTuple_Size(cells) != columns) {
        core_raise_text(PLUMB_E_ARG, "a row of %zd cells for %zd columns", PyTuple_Size(cells),
                        columns);
        goto out;
    }
    if (severity < PLUMB_NORMAL || severity > PLUMB_FAILED) {
        core_raise_text(PLUMB_E_ARG, "severity %ld is none of 0, 1, 2", severity);
        goto out;
    }
    if (!self->table && !make_table(self, cells))
        goto out;
    const size_t rows = plumb_table_rows(self->table);
    if (!plumb_table_add_row(self->table, (enum plumb_severity)severity)) {
        PyErr_NoMemory();
        goto out;
    }
    good = true;
    for (Py_ssize_t i = 0; i < columns && good; i++)
        good = set_cell(self->table, (size_t)i, PyTuple_GetItem(cells, i));
    if (!good)
        plumb_table_limit(self->table, rows);
out:
    Py_DECREF(cells);
    return good;
}

const struct plumb_table *core_table_of(PyObject *object)
{
    if (!PyObject_TypeCheck(object, table_type)) {
        PyErr_SetString(PyExc_TypeError, "no Table");
        return NULL;
    }
    struct table *self = self_of(object);
    return self->table || make_table(self, NULL) ? self->table : NULL;
}

/* -- The object -------------------------------------------------------------------------------- */

PyObject *core_table_new(struct plumb_table *table)
{
    PyObject *object = PyType_GenericAlloc(table_type, 0);
    const size_t count = plumb_table_columns(table);
    PyObject *titles = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; titles && i < count; i++) {
        PyObject *title = PyUnicode_FromString(plumb_table_column(table, i)->title);
        if (!title || PyTuple_SetItem(titles, (Py_ssize_t)i, title) < 0) {
            Py_DECREF(titles);
            titles = NULL;
        }
    }
    if (!object || !titles) {
        plumb_table_free(table);
        Py_XDECREF(titles);
        Py_XDECREF(object);
        return NULL;
    }
    self_of(object)->table = table;
    self_of(object)->titles = titles;
    return object;
}

static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    char *keywords[] = {"columns", "rows", "severities", NULL};
    PyObject *titles, *rows = NULL, *severities = Py_None, *object = NULL, *list = NULL,
                      *levels = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:Table", keywords, &titles, &rows,
                                     &severities) ||
        !(titles = core_texts(titles, "columns")))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(titles); i++)
        if (!PyUnicode_Check(PyTuple_GetItem(titles, i))) {
            PyErr_SetString(PyExc_TypeError, "columns must be a sequence of str");
            goto out;
        }
    list = rows ? PySequence_Tuple(rows) : PyTuple_New(0);
    if (!list)
        goto out;
    levels = severities == Py_None ? NULL : PySequence_Tuple(severities);
    if (severities != Py_None && !levels)
        goto out;
    if (levels && PyTuple_Size(levels) != PyTuple_Size(list)) {
        core_raise_text(PLUMB_E_ARG, "%zd severities for %zd rows", PyTuple_Size(levels),
                        PyTuple_Size(list));
        goto out;
    }
    object = PyType_GenericAlloc(type, 0);
    if (!object)
        goto out;
    Py_INCREF(titles);
    self_of(object)->titles = titles;
    for (Py_ssize_t i = 0; i < PyTuple_Size(list); i++) {
        const long severity = levels ? PyLong_AsLong(PyTuple_GetItem(levels, i)) : 0;
        if (PyErr_Occurred() || !add_row(self_of(object), PyTuple_GetItem(list, i), severity)) {
            Py_DECREF(object);
            object = NULL;
            break;
        }
    }
out:
    Py_XDECREF(levels);
    Py_XDECREF(list);
    Py_DECREF(titles);
    return object;
}

static void table_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    plumb_table_free(self_of(object)->table);
    Py_XDECREF(self_of(object)->titles);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *get_columns(PyObject *object, void *closure)
{
    (void)closure;
    return PySequence_List(self_of(object)->titles);
}

static Py_ssize_t table_length(PyObject *object)
{
    struct plumb_table *table = self_of(object)->table;
    return table ? (Py_ssize_t)plumb_table_rows(table) : 0;
}

static PyObject *table_item(PyObject *object, Py_ssize_t row)
{
    struct table *self = self_of(object);
    if (row < 0 || row >= table_length(object)) {
        PyErr_SetString(PyExc_IndexError, "there is no such row");
        return NULL;
    }
    const Py_ssize_t count = PyTuple_Size(self->titles);
    PyObject *cells = PyTuple_New(count);
    for (Py_ssize_t i = 0; cells && i < count; i++) {
        PyObject *cell = from_cell(plumb_table_cell(self->table, (size_t)row, (size_t)i));
        if (!cell || PyTuple_SetItem(cells, i, cell) < 0) {
            Py_DECREF(cells);
            cells = NULL;
        }
    }
    return cells;
}

/* -- Methods ----------------------------------------------------------------------------------- */

static PyObject *table_severity(PyObject *object, PyObject *number)
{
    int64_t row;
    if (!core_int64(number, "row", &row))
        return NULL;
    if (row < 0 || row >= table_length(object)) {
        PyErr_SetString(PyExc_IndexError, "there is no such row");
        return NULL;
    }
    return PyLong_FromLong((long)plumb_table_severity(self_of(object)->table, (size_t)row));
}

static PyObject *table_add(PyObject *object, PyObject *args, PyObject *kwargs)
{
    char *keywords[] = {"cells", "severity", NULL};
    PyObject *cells;
    long severity = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|l:add", keywords, &cells, &severity) ||
        !add_row(self_of(object), cells, severity))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *table_save(PyObject *object, PyObject *path)
{
    struct table *self = self_of(object);
    char *name = core_path(path);
    if (!name || (!self->table && !make_table(self, NULL))) {
        free(name);
        return NULL;
    }
    struct plumb_error err;
    enum plumb_table_format format;
    enum plumb_code code;
    const struct plumb_table_look look = {.wide = true};
    if (plumb_table_format_of(name, &format)) {
        Py_BEGIN_ALLOW_THREADS;
        code = plumb_table_save(self->table, name, format, &look, &err);
        Py_END_ALLOW_THREADS;
    } else {
        code = plumb_fail(&err, PLUMB_E_ARG, "a table is saved as .csv .json .md .xlsx or .txt");
        plumb_error_in_file(&err, name);
    }
    free(name);
    if (code)
        return core_raise(&err);
    Py_RETURN_NONE;
}

static bool find_format(const char *name, enum plumb_table_format *format)
{
    static const char *const names[] = {
        [PLUMB_TABLE_BOX] = "box",
        [PLUMB_TABLE_CSV] = "csv",
        [PLUMB_TABLE_JSON] = "json",
        [PLUMB_TABLE_MARKDOWN] = "markdown",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            *format = (enum plumb_table_format)i;
            return true;
        }
    return false;
}

static PyObject *table_text(PyObject *object, PyObject *args, PyObject *kwargs)
{
    char *keywords[] = {"width", "wide", "colour", "format", NULL};
    struct table *self = self_of(object);
    int width = 0, wide = 0, colour = 0;
    const char *name = "box";
    enum plumb_table_format format;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|ipps:text", keywords, &width, &wide, &colour,
                                     &name))
        return NULL;
    if (width < 0)
        return core_raise_text(PLUMB_E_ARG, "a width of %d", width);
    if (!find_format(name, &format))
        return core_raise_text(PLUMB_E_ARG, "format \"%s\" is none of box, csv, json, markdown",
                               name);
    if (!self->table && !make_table(self, NULL))
        return NULL;
    const struct plumb_table_look look = {.width = (unsigned)width, .wide = wide, .colour = colour};
    struct plumb_error err;
    enum plumb_code code;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return PyErr_NoMemory();
    code = plumb_table_print(self->table, format, &look, out, &err);
    if (fclose(out) != 0 && !code)
        code = plumb_no_memory(&err);
    PyObject *result = code ? core_raise(&err)
                            : PyUnicode_Decode(text, (Py_ssize_t)size, "utf-8", "backslashreplace");
    free(text);
    return result;
}

static PyObject *table_shown(PyObject *object)
{
    PyObject *nothing = PyTuple_New(0);
    PyObject *text = nothing ? table_text(object, nothing, NULL) : NULL;
    Py_XDECREF(nothing);
    return text;
}

int core_add_table(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"severity", table_severity, METH_O, "severity(row): 0 normal, 1 suspicious, 2 failed."},
        {"add", (PyCFunction)(void (*)(void))table_add, METH_VARARGS | METH_KEYWORDS,
         "add(cells, severity=0): appends a row."},
        {"save", table_save, METH_O, "save(path): .csv .json .md .xlsx .txt."},
        {"text", (PyCFunction)(void (*)(void))table_text, METH_VARARGS | METH_KEYWORDS,
         "text(width=0, wide=False, colour=False, format=\"box\")."},
        {0},
    };
    static PyGetSetDef attributes[] = {
        {"columns", get_columns, NULL, "the titles", NULL},
        {0},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Table(columns, rows=(), severities=None)\nRows of results."},
        {Py_tp_new, CORE_SLOT(table_new)},
        {Py_tp_dealloc, CORE_SLOT(table_dealloc)},
        {Py_tp_repr, CORE_SLOT(table_shown)},
        {Py_sq_length, CORE_SLOT(table_length)},
        {Py_sq_item, CORE_SLOT(table_item)},
        {Py_tp_methods, methods},
        {Py_tp_getset, attributes},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "plumb._core.Table",
        .basicsize = sizeof(struct table),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };
    table_type = (PyTypeObject *)core_add_type(module, &spec);
    return table_type ? 0 : -1;
}
