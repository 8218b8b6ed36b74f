/* Results of a call against what right arithmetic shows. */
#include "core.h"

#include "base/arena.h"
#include "plumb/blame.h"
#include "plumb/expected.h"

#include <stdlib.h>
#include <string.h>

static PyObject *make_opinion(const struct plumb_opinion *o)
{
    return Py_BuildValue("{sssOsdsdsKsdsdsdsssssssi}", "verdict", plumb_word_text(o->word),
                         "allowed", o->allowed ? Py_True : Py_False, "worst", o->worst, "limit",
                         o->limit, "at", (unsigned long long)o->at, "got", o->got, "expected",
                         o->expected, "differing", o->differing, "arithmetic", o->arithmetic,
                         "pattern", o->pattern, "why", o->why, "version", PLUMB_EXPECTED_VERSION);
}

/* What was got of one part, judged into the list; values of None are passed over but for outputs.
 * */
static bool judge_part(struct plumb_expected *e, enum plumb_expected_part part, const char *name,
                       const struct plumb_arg *got, PyObject *list)
{
    for (size_t k = 0; k < got->n_items; k++) {
        if (part != PLUMB_PART_OUTPUT && got->items[k].kind == PLUMB_ARG_NONE)
            continue;
        struct plumb_opinion opinion;
        struct plumb_error err;
        enum plumb_code code;
        Py_BEGIN_ALLOW_THREADS;
        code = plumb_expected_judge(e, part, k, &got->items[k], &opinion, &err);
        Py_END_ALLOW_THREADS;
        PyObject *row = code ? core_raise(&err)
                             : Py_BuildValue("snN", name, (Py_ssize_t)k, make_opinion(&opinion));
        const bool added = row && PyList_Append(list, row) == 0;
        Py_XDECREF(row);
        if (!added)
            return false;
    }
    return true;
}

/* Outputs of the reference that were not given are said, not passed over. */
static bool name_missing(const struct plumb_expected *e, size_t given, PyObject *list)
{
    const size_t all = plumb_expected_reference(e)->n_outputs;
    for (size_t k = given; given && k < all; k++) {
        struct plumb_opinion opinion = {.word = PLUMB_WORD_NOT_JUDGED};
        memcpy(opinion.why, "not given", sizeof "not given");
        PyObject *row = Py_BuildValue("snN", "output", (Py_ssize_t)k, make_opinion(&opinion));
        const bool added = row && PyList_Append(list, row) == 0;
        Py_XDECREF(row);
        if (!added)
            return false;
    }
    return true;
}

static PyObject *judge_call(PyObject *module, PyObject *arguments, PyObject *named)
{
    (void)module;
    char *keywords[] = {"prefix",    "name", "args", "kwargs",     "grads",   "outputs",
                        "got_grads", "seed", "runs", "arithmetic", "written", NULL};
    PyObject *args, *kwargs, *grads, *outputs, *got_grads, *written = NULL, *answer = NULL;
    struct plumb_call call = {0};
    struct plumb_expected_options options = {0};
    unsigned long long seed = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "zsOO!OOO|$KIzO:judge_call", keywords,
                                     &call.prefix, &call.name, &args, &PyDict_Type, &kwargs, &grads,
                                     &outputs, &got_grads, &seed, &options.runs,
                                     &options.arithmetic, &written))
        return NULL;
    options.seed = seed;
    struct plumb_error err;
    if (plumb_arithmetic_check(options.arithmetic, &err))
        return core_raise(&err);
    struct arena arena = {0};
    struct plumb_arg parts[3] = {{0}};
    struct plumb_expected *e = NULL;
    enum plumb_code code;
    /* Copies, so that the tensors in them outlive the call whatever other threads do. */
    PyObject *kept = Py_BuildValue("NNNNN", PySequence_Tuple(args), PyDict_Copy(kwargs),
                                   grads == Py_None ? Py_BuildValue("") : PySequence_Tuple(grads),
                                   PySequence_Tuple(outputs), PySequence_Tuple(got_grads));
    PyObject *last = written ? PySequence_Tuple(written) : PyTuple_New(0);
    if (!kept || !last)
        goto out;
    if (!core_read_call(&arena, PyTuple_GetItem(kept, 0), PyTuple_GetItem(kept, 1), &call) ||
        !core_read_grads(&arena, PyTuple_GetItem(kept, 2), &call) ||
        !core_read_value(&arena, PyTuple_GetItem(kept, 3), &parts[0]) ||
        !core_read_value(&arena, PyTuple_GetItem(kept, 4), &parts[1]) ||
        !core_read_value(&arena, last, &parts[2]))
        goto out;
    Py_BEGIN_ALLOW_THREADS;
    code = plumb_expected_new(&call, NULL, &options, &e, &err);
    Py_END_ALLOW_THREADS;
    if (code) {
        core_raise(&err);
        goto out;
    }
    answer = PyList_New(0);
    if (answer && !(judge_part(e, PLUMB_PART_OUTPUT, "output", &parts[0], answer) &&
                    name_missing(e, parts[0].n_items, answer) &&
                    judge_part(e, PLUMB_PART_GRADIENT, "gradient", &parts[1], answer) &&
                    judge_part(e, PLUMB_PART_WRITTEN, "written", &parts[2], answer))) {
        Py_DECREF(answer);
        answer = NULL;
    }
out:
    plumb_expected_free(e);
    arena_free(&arena);
    Py_XDECREF(last);
    Py_XDECREF(kept);
    return answer;
}

/* Who is wrong in a whole run: the report for programs, and for people. */
static PyObject *blame(PyObject *module, PyObject *arguments, PyObject *named)
{
    (void)module;
    char *keywords[] = {"target", "golden", "arithmetic", "seed", "threads", "weights", NULL};
    struct plumb_blame_options options = {0};
    unsigned long long seed = 1234;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "s|zz$KIz:blame", keywords, &options.target,
                                     &options.golden, &options.arithmetic, &seed, &options.threads,
                                     &options.weights))
        return NULL;
    options.seed = seed;
    struct plumb_blame *found = NULL;
    struct plumb_error err;
    char *json = NULL, *text = NULL;
    enum plumb_code code;
    Py_BEGIN_ALLOW_THREADS;
    code = plumb_blame_run(&options, &found, &err);
    if (!code) {
        json = plumb_blame_json(found, &options);
        text = plumb_blame_text(found, &options, 100);
    }
    plumb_blame_free(found);
    Py_END_ALLOW_THREADS;
    PyObject *answer = code           ? core_raise(&err)
                       : json && text ? Py_BuildValue("ss", json, text)
                                      : PyErr_NoMemory();
    free(json);
    free(text);
    return answer;
}

int core_add_expected(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"judge_call", (PyCFunction)(void (*)(void))judge_call, METH_VARARGS | METH_KEYWORDS,
         "judge_call(prefix, name, args, kwargs, grads, outputs, got_grads, *, seed=0, runs=0, "
         "arithmetic=None, written=()): opinions."},
        {"blame", (PyCFunction)(void (*)(void))blame, METH_VARARGS | METH_KEYWORDS,
         "blame(target, golden=None, arithmetic=None, *, seed=1234, threads=0): JSON and text."},
        {0},
    };
    return PyModule_AddFunctions(module, methods);
}
