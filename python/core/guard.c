/* The online check for Python: a Guard, and the Operators that it counts. */
#define _GNU_SOURCE
#include "core.h"

#include "base/arena.h"
#include "plumb/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct guard {
    PyObject_HEAD struct plumb_guard *guard;
};

struct counted {
    PyObject_HEAD struct plumb_guard_op *op;
    PyObject *guard; /* owns op */
};

static PyTypeObject *operator_type;

static struct plumb_guard_op *op_of(PyObject *self)
{
    return ((struct counted *)self)->op;
}

static struct plumb_guard *guard_of(PyObject *self)
{
    return ((struct guard *)self)->guard;
}

static void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Texts of a sequence, in the arena; false with an exception set. */
static bool read_names(struct arena *arena, PyObject *value, const char *what,
                       const char *const **names, size_t *n)
{
    *n = 0;
    if (value == Py_None)
        return true;
    PyObject *texts = core_texts(value, what);
    if (!texts)
        return false;
    const size_t count = (size_t)PyTuple_Size(texts);
    const char **list = arena_alloc(arena, (count + 1) * sizeof *list);
    bool good = list != NULL;
    if (!good)
        PyErr_NoMemory();
    for (size_t i = 0; good && i < count; i++) {
        char *text = core_text(PyTuple_GetItem(texts, (Py_ssize_t)i), what);
        list[i] = text ? arena_copy(arena, text, strlen(text)) : NULL;
        good = list[i] != NULL;
        free(text);
        if (!good && !PyErr_Occurred())
            PyErr_NoMemory();
    }
    Py_DECREF(texts);
    *names = list;
    *n = count;
    return good;
}

/* -- Operators --------------------------------------------------------------------------------- */

static void operator_dealloc(PyObject *self)
{
    Py_XDECREF(((struct counted *)self)->guard);
    free_object(self);
}

static PyObject *operator_call(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return PyLong_FromLong((long)plumb_guard_call(op_of(self)));
}

static PyObject *operator_claim(PyObject *self, PyObject *elements)
{
    int64_t count;
    if (!core_int64(elements, "elements", &count))
        return NULL;
    return PyBool_FromLong(plumb_guard_claim(op_of(self), count < 0 ? 0 : (uint64_t)count));
}

static PyObject *operator_give_up(PyObject *self, PyObject *why)
{
    char *text = core_text(why, "why");
    if (!text)
        return NULL;
    plumb_guard_give_up(op_of(self), text);
    free(text);
    Py_RETURN_NONE;
}

static PyObject *operator_pass_over(PyObject *self, PyObject *why)
{
    char *text = core_text(why, "why");
    if (!text)
        return NULL;
    plumb_guard_pass_over(op_of(self), text);
    free(text);
    Py_RETURN_NONE;
}

static PyObject *operator_trouble(PyObject *self, PyObject *what)
{
    char *text = core_text(what, "what");
    if (!text)
        return NULL;
    plumb_guard_trouble(op_of(self), text);
    free(text);
    Py_RETURN_NONE;
}

static PyObject *verdict_object(const struct plumb_guard_verdict *v)
{
    const bool failed = v->found.fault != PLUMB_FAULT_NONE;
    return Py_BuildValue(
        "{sOss sn ss sd sd sd sd sd ss ss ss ss}", "passed", failed ? Py_False : Py_True, "error",
        plumb_fault_name(v->found.fault), "output", (Py_ssize_t)v->found.output, "label", v->label,
        "rtol", v->found.rtol, "atol", v->found.atol, "max_abs", v->found.max_abs, "max_rel",
        v->found.max_rel, "max_ulp", v->found.max_ulp, "message", v->found.message, "saved",
        v->saved, "verdict", v->judged ? plumb_word_text(v->opinion.word) : "", "why",
        v->judged ? v->opinion.why : "");
}

/* A str or None; false with an exception set. */
static bool optional_text(PyObject *value, const char *what, char **out)
{
    *out = value == Py_None ? NULL : core_text(value, what);
    return *out || value == Py_None;
}

/* (on, word, why) or None; false with an exception set. */
static bool read_opinion(PyObject *value, struct plumb_opinion *opinion,
                         struct plumb_guard_case *about)
{
    Py_ssize_t on;
    const char *word, *why;
    if (value == Py_None)
        return true;
    if (!PyTuple_Check(value) || !PyArg_ParseTuple(value, "nss:opinion", &on, &word, &why)) {
        if (!PyErr_Occurred())
            core_raise_text(PLUMB_E_ARG, "opinion must be a tuple of a number and two texts");
        return false;
    }
    int k = 0;
    while (k < PLUMB_WORDS && strcmp(plumb_word_text((enum plumb_word)k), word) != 0)
        k++;
    if (k == PLUMB_WORDS || on < 0) {
        core_raise_text(PLUMB_E_ARG, "\"%s\" is no verdict", word);
        return false;
    }
    opinion->word = (enum plumb_word)k;
    snprintf(opinion->why, sizeof opinion->why, "%s", why);
    about->opinion = opinion;
    about->opinion_on = (size_t)on;
    return true;
}

static PyObject *operator_judge(PyObject *self, PyObject *arguments, PyObject *given)
{
    char *keywords[] = {"name",  "args",    "kwargs", "outputs", "reference", "raised",
                        "where", "changed", "judged", "labels",  "opinion",   NULL};
    PyObject *args, *kwargs, *outputs, *reference = Py_None, *where = Py_None, *answer = NULL;
    PyObject *changed = Py_None, *judged = Py_None, *labels = Py_None;
    PyObject *own_opinion = Py_None;
    struct plumb_opinion opinion = {0};
    struct plumb_guard_case about = {.call = {.prefix = "Aten"}};
    struct plumb_call sides[3] = {0};
    int raised = 0;
    size_t n_labels = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, given, "sOO!O|OpOOOOO:judge", keywords,
                                     &about.call.name, &args, &PyDict_Type, &kwargs, &outputs,
                                     &reference, &raised, &where, &changed, &judged, &labels,
                                     &own_opinion))
        return NULL;
    struct arena arena = {0};
    struct plumb_guard_verdict verdict;
    struct plumb_error err;
    enum plumb_code code;
    char *stack = NULL, *change = NULL;
    const bool own = reference == Py_None, derived = judged != Py_None;
    PyObject *none = PyDict_New();
    /* Copies, so that the tensors in them outlive the call whatever other threads do. */
    args = PySequence_Tuple(args);
    kwargs = PyDict_Copy(kwargs);
    outputs = PySequence_Tuple(outputs);
    reference = own ? PyTuple_New(0) : PySequence_Tuple(reference);
    judged = derived ? PySequence_Tuple(judged) : PyTuple_New(0);
    if (!none || !args || !kwargs || !outputs || !reference || !judged)
        goto out;
    if (!read_opinion(own_opinion, &opinion, &about) || !optional_text(where, "where", &stack) ||
        !optional_text(changed, "changed", &change) ||
        !core_read_call(&arena, args, kwargs, &about.call) ||
        !core_read_call(&arena, outputs, none, &sides[0]) ||
        !core_read_call(&arena, reference, none, &sides[1]) ||
        !core_read_call(&arena, judged, none, &sides[2]) ||
        !read_names(&arena, labels, "labels", &about.labels, &n_labels))
        goto out;
    if (derived && (own || n_labels != sides[2].n_args)) {
        answer = core_raise_text(PLUMB_E_ARG, "what is judged needs a reference and labels");
        goto out;
    }
    about.where = stack;
    about.changed = change;
    about.raised = raised != 0;
    about.outputs = sides[0].args;
    about.n_outputs = sides[0].n_args;
    about.reference = own ? NULL : sides[1].args;
    about.n_reference = sides[1].n_args;
    about.judged = derived ? sides[2].args : NULL;
    about.n_judged = sides[2].n_args;
    Py_BEGIN_ALLOW_THREADS;
    code = plumb_guard_judge(op_of(self), &about, &verdict, &err);
    Py_END_ALLOW_THREADS;
    answer = code ? core_raise(&err) : verdict_object(&verdict);
out:
    free(stack);
    free(change);
    arena_free(&arena);
    Py_XDECREF(none);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    Py_XDECREF(outputs);
    Py_XDECREF(reference);
    Py_XDECREF(judged);
    return answer;
}

static PyObject *operator_counts(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    struct plumb_guard_counts c;
    plumb_guard_op_counts(op_of(self), &c);
    return Py_BuildValue("{sK sK sK sK sO}", "calls", (unsigned long long)c.calls, "checked",
                         (unsigned long long)c.checked, "failed", (unsigned long long)c.failed,
                         "troubles", (unsigned long long)c.troubles, "open",
                         c.open ? Py_True : Py_False);
}

static PyObject *operator_name(PyObject *self, void *nothing)
{
    (void)nothing;
    return PyUnicode_FromString(plumb_guard_op_name(op_of(self)));
}

/* -- Guards ------------------------------------------------------------------------------------ */

static void guard_dealloc(PyObject *self)
{
    plumb_guard_close(guard_of(self));
    free_object(self);
}

/* False with an exception set. */
static bool read_verdict(const char *text, enum plumb_deciding *out)
{
    static const char *const words[] = {"rules", "expected", "both"};
    for (int k = 0; k < 3; k++)
        if (strcmp(text, words[k]) == 0) {
            *out = (enum plumb_deciding)k;
            return true;
        }
    core_raise_text(PLUMB_E_ARG, "verdict is \"rules\", \"expected\" or \"both\", not \"%s\"",
                    text);
    return false;
}

static PyObject *guard_new(PyTypeObject *type, PyObject *arguments, PyObject *given)
{
    char *keywords[] = {"rtol",       "atol",         "max_checks", "log_once", "path",
                        "log_format", "max_elements", "save",       "include",  "exclude",
                        "verdict",    "arithmetic",   NULL};
    struct plumb_guard_config config;
    plumb_guard_config_init(&config);
    PyObject *path = Py_None, *save = Py_None, *include = Py_None, *exclude = Py_None;
    const char *format = "text", *verdict = "rules";
    unsigned long long checks = config.max_checks, elements = config.max_elements;
    int once = config.log_once;
    if (!PyArg_ParseTupleAndKeywords(arguments, given, "|ddKpOsKOOOsz:Guard", keywords,
                                     &config.rtol, &config.atol, &checks, &once, &path, &format,
                                     &elements, &save, &include, &exclude, &verdict,
                                     &config.arithmetic))
        return NULL;
    if (!read_verdict(verdict, &config.verdict))
        return NULL;
    config.max_checks = checks;
    config.max_elements = elements;
    config.log_once = once != 0;
    if (strcmp(format, "text") != 0 && strcmp(format, "jsonl") != 0)
        return core_raise_text(PLUMB_E_ARG, "log_format is \"text\" or \"jsonl\", not \"%s\"",
                               format);
    config.format = strcmp(format, "jsonl") == 0 ? PLUMB_GUARD_JSONL : PLUMB_GUARD_TEXT;
    struct arena arena = {0};
    struct plumb_error err;
    struct guard *self = NULL;
    char *log = NULL, *folder = NULL;
    if ((path != Py_None && !(log = core_path(path))) ||
        (save != Py_None && !(folder = core_path(save))) ||
        !read_names(&arena, include, "include", &config.include, &config.n_include) ||
        !read_names(&arena, exclude, "exclude", &config.exclude, &config.n_exclude))
        goto out;
    config.path = log;
    config.save = folder;
    struct plumb_guard *guard = NULL;
    if (plumb_guard_open(&guard, &config, &err)) {
        core_raise(&err);
        goto out;
    }
    self = (struct guard *)PyType_GenericAlloc(type, 0);
    if (self)
        self->guard = guard;
    else
        plumb_guard_close(guard);
out:
    arena_free(&arena);
    free(log);
    free(folder);
    return (PyObject *)self;
}

static PyObject *counted_new(PyObject *guard, struct plumb_guard_op *op)
{
    struct counted *object = (struct counted *)PyType_GenericAlloc(operator_type, 0);
    if (!object)
        return NULL;
    Py_INCREF(guard);
    object->op = op;
    object->guard = guard;
    return (PyObject *)object;
}

static PyObject *guard_operator(PyObject *self, PyObject *arguments)
{
    const char *name, *unfit = NULL;
    if (!PyArg_ParseTuple(arguments, "s|z:operator", &name, &unfit))
        return NULL;
    struct plumb_guard_op *op = plumb_guard_operator(guard_of(self), name, unfit);
    if (!op)
        return PyErr_NoMemory();
    return counted_new(self, op);
}

static PyObject *guard_function(PyObject *self, PyObject *name)
{
    char *text = core_text(name, "name");
    struct plumb_guard_op *op = text ? plumb_guard_function(guard_of(self), text) : NULL;
    if (text && !op)
        PyErr_NoMemory();
    free(text);
    return op ? counted_new(self, op) : NULL;
}

static PyObject *guard_table(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    struct plumb_table *table = plumb_guard_table(guard_of(self));
    return table ? core_table_new(table) : PyErr_NoMemory();
}

static PyObject *guard_forked(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    plumb_guard_forked(guard_of(self));
    Py_RETURN_NONE;
}

static PyObject *guard_closing(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    char *text = plumb_guard_closing(guard_of(self));
    if (!text)
        return PyErr_NoMemory();
    PyObject *answer =
        PyUnicode_Decode(text, (Py_ssize_t)strlen(text), "utf-8", "backslashreplace");
    free(text);
    return answer;
}

/* -- The module -------------------------------------------------------------------------------- */

static PyObject *skips(PyObject *module, PyObject *name)
{
    (void)module;
    char *text = core_text(name, "name");
    if (!text)
        return NULL;
    const char *why = plumb_guard_skips(text);
    free(text);
    if (!why)
        Py_RETURN_NONE;
    return PyUnicode_FromString(why);
}

static PyObject *named(PyObject *module, PyObject *arguments)
{
    (void)module;
    const char *full, *written;
    if (!PyArg_ParseTuple(arguments, "ss:guard_named", &full, &written))
        return NULL;
    return PyBool_FromLong(plumb_guard_named(full, written));
}

int core_add_guard(PyObject *module)
{
    static PyMethodDef operator_methods[] = {
        {"call", operator_call, METH_NOARGS, "Counts a call: 0 pass, 1 check, 2 quiet."},
        {"claim", operator_claim, METH_O, "Takes a check for a call of that many elements."},
        {"give_up", operator_give_up, METH_O, "There is no reference for this operator."},
        {"pass_over", operator_pass_over, METH_O, "There is no reference for this call."},
        {"trouble", operator_trouble, METH_O, "A check went wrong inside."},
        {"judge", (PyCFunction)(void (*)(void))operator_judge, METH_VARARGS | METH_KEYWORDS,
         "judge(name, args, kwargs, outputs, reference=None, raised=False, where=None, "
         "changed=None, judged=None, labels=None, opinion=None): the verdict."},
        {"counts", operator_counts, METH_NOARGS, "calls, checked, failed, troubles, open."},
        {0},
    };
    static PyGetSetDef operator_fields[] = {
        {"name", operator_name, NULL, "As the log calls it.", NULL}, {0}};
    static PyType_Slot operator_slots[] = {{Py_tp_dealloc, CORE_SLOT(operator_dealloc)},
                                           {Py_tp_methods, operator_methods},
                                           {Py_tp_getset, operator_fields},
                                           {0, NULL}};
    static PyType_Spec operator_spec = {.name = "plumb._core.GuardOperator",
                                        .basicsize = sizeof(struct counted),
                                        .flags = Py_TPFLAGS_DEFAULT,
                                        .slots = operator_slots};
    static PyMethodDef guard_methods[] = {
        {"operator", guard_operator, METH_VARARGS, "operator(name, unfit=None)"},
        {"function", guard_function, METH_O, "A function of the user's own, by its name."},
        {"table", guard_table, METH_NOARGS, "A row for each operator that was checked."},
        {"closing", guard_closing, METH_NOARGS, "The lines after the table."},
        {"forked", guard_forked, METH_NOARGS,
         "This is a forked process: what it counts goes to the account of the first one."},
        {0},
    };
    static PyType_Slot guard_slots[] = {{Py_tp_new, CORE_SLOT(guard_new)},
                                        {Py_tp_dealloc, CORE_SLOT(guard_dealloc)},
                                        {Py_tp_methods, guard_methods},
                                        {0, NULL}};
    static PyType_Spec guard_spec = {.name = "plumb._core.Guard",
                                     .basicsize = sizeof(struct guard),
                                     .flags = Py_TPFLAGS_DEFAULT,
                                     .slots = guard_slots};
    static PyMethodDef functions[] = {
        {"guard_skips", skips, METH_O, "Why operators of that name are never checked, or None."},
        {"guard_named", named, METH_VARARGS, "Whether a written name means the operator."},
        {0},
    };
    operator_type = (PyTypeObject *)core_add_type(module, &operator_spec);
    if (!operator_type || !core_add_type(module, &guard_spec))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
