/* A report in the making: plumb.report() puts results of Python on a page. */
#define PY_SSIZE_T_CLEAN
#include "core.h"

#include "plumb/report.h"

#include <stdlib.h>
#include <string.h>

struct page {
    PyObject_HEAD struct plumb_report *report;
};

static PyTypeObject *page_type;

static struct plumb_report *report_of(PyObject *self)
{
    return ((struct page *)self)->report;
}

PyObject *core_page_new(struct plumb_report *report)
{
    PyObject *self = report ? PyType_GenericAlloc(page_type, 0) : PyErr_NoMemory();
    if (self)
        ((struct page *)self)->report = report;
    else
        plumb_report_free(report);
    return self;
}

static PyObject *page_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type;
    char *keywords[] = {"command", "title", NULL};
    const char *command, *title;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ss:Page", keywords, &command, &title))
        return NULL;
    return core_page_new(plumb_report_new(command, title));
}

static void page_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    plumb_report_free(report_of(self));
    PyObject_Free(self);
    Py_DECREF(type);
}

static bool check_mood(int mood)
{
    if (mood >= 0 && mood < PLUMB_MOODS)
        return true;
    core_raise_text(PLUMB_E_ARG, "mood %d is none of 0 to 3", mood);
    return false;
}

static PyObject *page_answer(PyObject *self, PyObject *args, PyObject *kwargs)
{
    char *keywords[] = {"mood", "sentence", "where", "row", "sure", NULL};
    struct plumb_report_answer answer = {.where = "", .row = -1, .sure = ""};
    long long row = -1;
    int mood;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "is|sLs:answer", keywords, &mood,
                                     &answer.sentence, &answer.where, &row, &answer.sure) ||
        !check_mood(mood))
        return NULL;
    answer.mood = (enum plumb_mood)mood;
    answer.row = row;
    plumb_report_answer(report_of(self), &answer);
    Py_RETURN_NONE;
}

static PyObject *page_count(PyObject *self, PyObject *args)
{
    const char *word;
    unsigned long long count;
    int mood;
    if (!PyArg_ParseTuple(args, "sKi:count", &word, &count, &mood) || !check_mood(mood))
        return NULL;
    plumb_report_count(report_of(self), word, count, (enum plumb_mood)mood);
    Py_RETURN_NONE;
}

static PyObject *page_fact(PyObject *self, PyObject *args)
{
    const char *label, *value;
    if (!PyArg_ParseTuple(args, "ss:fact", &label, &value))
        return NULL;
    plumb_report_fact(report_of(self), label, value);
    Py_RETURN_NONE;
}

static PyObject *page_note(PyObject *self, PyObject *args)
{
    const char *text;
    if (!PyArg_ParseTuple(args, "s:note", &text))
        return NULL;
    plumb_report_note(report_of(self), text);
    Py_RETURN_NONE;
}

static PyObject *page_table(PyObject *self, PyObject *args)
{
    const char *name, *moods = NULL;
    Py_ssize_t count = 0;
    PyObject *object;
    if (!PyArg_ParseTuple(args, "sO|z#:table", &name, &object, &moods, &count))
        return NULL;
    const struct plumb_table *table = core_table_of(object);
    if (!table)
        return NULL;
    if (moods && (size_t)count != plumb_table_rows(table))
        return core_raise_text(PLUMB_E_ARG, "%zd moods for %zu rows", count,
                               plumb_table_rows(table));
    for (Py_ssize_t k = 0; k < count; k++)
        if (!check_mood((unsigned char)moods[k]))
            return NULL;
    plumb_report_table(report_of(self), name, table, (const unsigned char *)moods, NULL);
    Py_RETURN_NONE;
}

static PyObject *page_copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return core_page_new(plumb_report_copy(report_of(self)));
}

static PyObject *page_html(PyObject *self, PyObject *unused)
{
    (void)unused;
    size_t size;
    char *page;
    Py_BEGIN_ALLOW_THREADS;
    page = plumb_report_html(report_of(self), &size);
    Py_END_ALLOW_THREADS;
    PyObject *text =
        page ? PyUnicode_Decode(page, (Py_ssize_t)size, "utf-8", "replace") : PyErr_NoMemory();
    free(page);
    return text;
}

static PyObject *page_save(PyObject *self, PyObject *argument)
{
    struct plumb_error err;
    enum plumb_code code;
    char *path = core_path(argument);
    if (!path)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    code = plumb_report_save(report_of(self), path, &err);
    Py_END_ALLOW_THREADS;
    free(path);
    if (code)
        return core_raise(&err);
    Py_RETURN_NONE;
}

int core_add_page(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"answer", (PyCFunction)(void (*)(void))page_answer, METH_VARARGS | METH_KEYWORDS,
         "answer(mood, sentence, where='', row=-1, sure=''): what a person reads first."},
        {"count", page_count, METH_VARARGS, "count(word, number, mood)"},
        {"fact", page_fact, METH_VARARGS, "fact(label, value)"},
        {"note", page_note, METH_VARARGS, "note(text)"},
        {"table", page_table, METH_VARARGS,
         "table(name, table, moods=None): a byte for each row; None: by their severity."},
        {"copy", page_copy, METH_NOARGS, "Another page that knows the same."},
        {"html", page_html, METH_NOARGS, "The page as a text."},
        {"save", page_save, METH_O, "save(path): the page, whole or not at all."},
        {0},
    };
    static PyType_Slot slots[] = {{Py_tp_new, CORE_SLOT(page_new)},
                                  {Py_tp_dealloc, CORE_SLOT(page_dealloc)},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {.name = "plumb._core.Page",
                               .basicsize = sizeof(struct page),
                               .flags = Py_TPFLAGS_DEFAULT,
                               .slots = slots};
    page_type = (PyTypeObject *)core_add_type(module, &spec);
    return page_type ? 0 : -1;
}
