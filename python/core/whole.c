/* A result of a whole graph against runs of that graph in float64, with and without errors. */
#include "core.h"

#include "base/arena.h"
#include "plumb/expected.h"
#include "verdict/whole.h"

/* The numbers of a float64 tensor, or NULL with an exception set. */
static const double *numbers_of(PyObject *object, const char *what, uint64_t count)
{
    static const double nothing = 0; /* an empty tensor may have no address */
    const struct plumb_tensor *t = core_tensor_of(object, what);
    if (t && (t->dtype != PLUMB_F64 || t->count != count || !t->dense)) {
        core_raise_text(PLUMB_E_ARG, "%s must be %llu numbers of float64 in one piece", what,
                        (unsigned long long)count);
        return NULL;
    }
    return !t ? NULL : count ? t->data : &nothing;
}

/* A tuple of such tensors. */
static bool read_runs(PyObject *list, const char *what, uint64_t count, struct whole_runs *out)
{
    const Py_ssize_t n = PyTuple_Size(list);
    if (n > WHOLE_MAX_RUNS)
        core_raise_text(PLUMB_E_ARG, "at most %d runs of %s", WHOLE_MAX_RUNS, what);
    for (Py_ssize_t k = 0; k < n && n <= WHOLE_MAX_RUNS; k++) {
        const double *run = numbers_of(PyTuple_GetItem(list, k), what, count);
        if (!run)
            return false;
        out->run[out->n++] = run;
    }
    return n >= 0 && n <= WHOLE_MAX_RUNS;
}

static bool read_item(struct arena *arena, PyObject *given, struct plumb_arg *sides,
                      struct whole_item *item)
{
    if (!core_read_value(arena, PyTuple_GetItem(given, 0), &sides[0]) ||
        !core_read_value(arena, PyTuple_GetItem(given, 1), &sides[1]))
        return false;
    item->before = sides[0].kind == PLUMB_ARG_NONE ? NULL : &sides[0];
    item->after = sides[1].kind == PLUMB_ARG_NONE ? NULL : &sides[1];
    if (sides[0].kind != PLUMB_ARG_TENSOR || PyTuple_GetItem(given, 2) == Py_None)
        return true;
    const struct plumb_tensor *before = sides[0].tensor;
    const uint64_t n = before->count * plumb_dtype_parts(before->dtype);
    item->y = numbers_of(PyTuple_GetItem(given, 2), "y", n);
    if (!item->y)
        return false;
    if (PyTuple_GetItem(given, 3) != Py_None) {
        item->formula = numbers_of(PyTuple_GetItem(given, 3), "formula", n);
        if (!item->formula)
            return false;
    }
    return read_runs(PyTuple_GetItem(given, 4), "noise", n, &item->noise) &&
           read_runs(PyTuple_GetItem(given, 5), "fine", n, &item->fine) &&
           read_runs(PyTuple_GetItem(given, 6), "constants", n, &item->constants) &&
           read_runs(PyTuple_GetItem(given, 7), "changed", n, &item->changed);
}

static PyObject *judge_whole(PyObject *module, PyObject *arguments, PyObject *named)
{
    (void)module;
    char *keywords[] = {"before",    "after",   "y",         "formula",    "noise",  "fine",
                        "constants", "changed", "narrowest", "arithmetic", "called", NULL};
    PyObject *part[8];
    const char *narrowest = NULL;
    struct whole_item item = {.narrowest = PLUMB_DTYPE_COUNT};
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "OOOOOOOO|$zzz:judge_whole", keywords,
                                     &part[0], &part[1], &part[2], &part[3], &part[4], &part[5],
                                     &part[6], &part[7], &narrowest, &item.arithmetic,
                                     &item.called))
        return NULL;
    if (narrowest)
        item.narrowest = plumb_dtype_from_name(narrowest);
    struct plumb_error err;
    if (plumb_arithmetic_check(item.arithmetic, &err))
        return core_raise(&err);
    struct arena arena = {0};
    struct plumb_arg sides[2] = {{0}};
    struct plumb_opinion opinion;
    PyObject *answer = NULL;
    PyObject *given = Py_BuildValue("OOOONNNN", part[0], part[1], part[2], part[3],
                                    PySequence_Tuple(part[4]), PySequence_Tuple(part[5]),
                                    PySequence_Tuple(part[6]), PySequence_Tuple(part[7]));
    if (given && read_item(&arena, given, sides, &item)) {
        enum plumb_code code;
        Py_BEGIN_ALLOW_THREADS;
        code = whole_judge(&item, &opinion, &err);
        Py_END_ALLOW_THREADS;
        answer = code ? core_raise(&err) : core_opinion(&opinion);
    }
    Py_XDECREF(given);
    arena_free(&arena);
    return answer;
}

int core_add_whole(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"judge_whole", (PyCFunction)(void (*)(void))judge_whole, METH_VARARGS | METH_KEYWORDS,
         "judge_whole(before, after, y, formula, noise, fine, constants, changed, *, "
         "narrowest=None, arithmetic=None, called=None): an opinion."},
        {0},
    };
    return PyModule_AddFunctions(module, methods);
}
