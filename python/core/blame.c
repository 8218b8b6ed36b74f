/* plumb.blame: who is wrong in a whole run. */
#include "core.h"

#include "plumb/blame.h"
#include "plumb/report.h"

#include <stdlib.h>

/* Copies of the texts of a tuple; NULL with an exception. To be freed with free_texts. */
static char **copy_texts(PyObject *tuple, size_t *n)
{
    const Py_ssize_t size = PyTuple_Size(tuple);
    char **texts = calloc((size_t)size + 1, sizeof *texts);
    *n = 0;
    if (!texts)
        PyErr_NoMemory();
    for (Py_ssize_t k = 0; texts && k < size; k++) {
        if (!(texts[k] = core_path(PyTuple_GetItem(tuple, k)))) {
            for (Py_ssize_t j = 0; j < k; j++)
                free(texts[j]);
            free(texts);
            return NULL;
        }
        *n = (size_t)k + 1;
    }
    return texts;
}

static void free_texts(char **texts, size_t n)
{
    for (size_t k = 0; k < n; k++)
        free(texts[k]);
    free(texts);
}

/* What plumb_blame_run finds, in the forms that Python wants. */
struct answer {
    char *json, *text;
    struct plumb_report *report;
};

static enum plumb_code tell(const struct plumb_blame *found,
                            const struct plumb_blame_options *options, struct answer *answer,
                            struct plumb_error *err)
{
    answer->json = plumb_blame_json(found, options);
    answer->text = plumb_blame_text(found, options, 100);
    answer->report = plumb_report_new("blame", "Which calls are wrong");
    if (!answer->json || !answer->text || !answer->report)
        return plumb_no_memory(err);
    plumb_report_fact(answer->report, "target", options->target);
    if (options->golden)
        plumb_report_fact(answer->report, "golden", options->golden);
    return plumb_blame_report(answer->report, found, options, err);
}

/* What it is beside the baseline, and what is accepted from now on. */
struct baseline {
    const char *read, *write;
    struct plumb_baseline *accepted, *found;
};

static enum plumb_code run(struct plumb_blame_options *options, struct baseline *baseline,
                           struct answer *answer, struct plumb_error *err)
{
    const struct plumb_baseline_options how = {.seed = options->seed,
                                               .arithmetic = options->arithmetic};
    struct plumb_blame *found = NULL;
    enum plumb_code code = PLUMB_OK;
    if (baseline->read)
        code = plumb_baseline_read(baseline->read, &how, &baseline->accepted, err);
    if (!code)
        code = plumb_baseline_new(&how, &baseline->found, err);
    options->accepted = baseline->accepted;
    options->found = baseline->found;
    if (!code)
        code = plumb_blame_run(options, &found, err);
    if (!code)
        code = tell(found, options, answer, err);
    plumb_blame_free(found);
    if (!code && baseline->write)
        code = plumb_baseline_write(baseline->found, baseline->write, err);
    plumb_baseline_free(baseline->accepted);
    plumb_baseline_free(baseline->found);
    return code;
}

static PyObject *blame(PyObject *module, PyObject *arguments, PyObject *named)
{
    (void)module;
    char *keywords[] = {"target", "golden",   "arithmetic",     "seed",    "threads",
                        "repeat", "baseline", "write_baseline", "weights", NULL};
    struct plumb_blame_options options = {0};
    struct baseline baseline = {0};
    unsigned long long seed = 1234;
    PyObject *repeat = NULL;
    char **repeats = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "s|zz$KIO!zzz:blame", keywords,
                                     &options.target, &options.golden, &options.arithmetic, &seed,
                                     &options.threads, &PyTuple_Type, &repeat, &baseline.read,
                                     &baseline.write, &options.weights))
        return NULL;
    if (repeat && !(repeats = copy_texts(repeat, &options.n_repeats)))
        return NULL;
    options.seed = seed;
    options.pages = true;
    options.repeats = (const char *const *)repeats;
    struct plumb_error err;
    struct answer found = {0};
    enum plumb_code code;
    Py_BEGIN_ALLOW_THREADS;
    code = run(&options, &baseline, &found, &err);
    Py_END_ALLOW_THREADS;
    PyObject *answer = NULL;
    if (code) {
        core_raise(&err);
        plumb_report_free(found.report);
    } else {
        PyObject *page = core_page_new(found.report);
        answer = page ? Py_BuildValue("ssN", found.json, found.text, page) : NULL;
    }
    free(found.json);
    free(found.text);
    free_texts(repeats, options.n_repeats);
    return answer;
}

int core_add_blame(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"blame", (PyCFunction)(void (*)(void))blame, METH_VARARGS | METH_KEYWORDS,
         "blame(target, golden=None, arithmetic=None, *, seed=1234, threads=0, repeat=(), "
         "baseline=None, write_baseline=None, weights=None): JSON, text, Page."},
        {0},
    };
    return PyModule_AddFunctions(module, methods);
}
