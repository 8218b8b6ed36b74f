/* Whole runs on disk: compared, and summed up. */
#include "core.h"

#include "base/buf.h"
#include "plumb/compare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool find_mode(const char *name, enum plumb_pair_mode *mode)
{
    static const char *const names[] = {
        [PLUMB_PAIR_AUTO] = "auto",
        [PLUMB_PAIR_EXACT] = "exact",
        [PLUMB_PAIR_FUZZY] = "fuzzy",
        [PLUMB_PAIR_ORDER] = "order",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            *mode = (enum plumb_pair_mode)i;
            return true;
        }
    return false;
}

static bool find_verdict(const char *name, enum plumb_deciding *verdict)
{
    static const char *const names[] = {
        [PLUMB_BY_RULES] = "rules",
        [PLUMB_BY_EXPECTED] = "expected",
        [PLUMB_BY_BOTH] = "both",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            *verdict = (enum plumb_deciding)i;
            return true;
        }
    return false;
}

/* What is odd of both runs, as lines before the closing ones of a comparison; a copy that the
 * caller frees, or NULL when out of memory. */
static char *with_warnings(struct plumb_run *const runs[2], const char *closing)
{
    struct buf text = {0};
    for (int k = 0; k < 2; k++) {
        const char *line;
        for (size_t i = 0; (line = plumb_run_warning(runs[k], i)); i++) {
            buf_text(&text, "warning: ");
            buf_text(&text, line);
            buf_text(&text, "\n");
        }
    }
    buf_text(&text, closing ? closing : "");
    if (!text.failed)
        return text.data;
    buf_free(&text);
    return NULL;
}

/* Both runs compared, as one of wholes where shards are wanted. *lines: what is told, to be
 * freed. */
static enum plumb_code compare_paths(char *const paths[2], const struct core_shards *shards,
                                     const struct plumb_compare_options *options,
                                     struct plumb_comparison *out, char **lines,
                                     struct plumb_error *err)
{
    struct plumb_run *runs[2] = {0}, *joined[2] = {0};
    enum plumb_code code = plumb_run_open(&runs[0], paths[0], err);
    if (!code)
        code = plumb_run_open(&runs[1], paths[1], err);
    if (!code && shards->wanted) {
        struct plumb_shards_options how = shards->options;
        how.match = options->match;
        code = plumb_shards_join(joined, runs[0], runs[1], &how, err);
    }
    if (!code)
        code = shards->wanted ? plumb_compare(out, joined[0], joined[1], options, err)
                              : plumb_compare(out, runs[0], runs[1], options, err);
    if (!code && !(*lines = with_warnings(runs, out->closing)))
        code = plumb_no_memory(err);
    for (int k = 0; k < 2; k++) {
        plumb_run_free(joined[k]);
        plumb_run_free(runs[k]);
    }
    return code;
}

static bool add_count(PyObject *counts, const char *name, size_t count)
{
    PyObject *value = PyLong_FromSize_t(count);
    const bool good = value && PyDict_SetItemString(counts, name, value) == 0;
    Py_XDECREF(value);
    return good;
}

/* What second opinions say. */
static bool add_words(PyObject *counts, const struct plumb_comparison *comparison)
{
    bool good = add_count(counts, "bad", comparison->bad);
    for (int word = 0; word < PLUMB_WORDS && good; word++)
        good = add_count(counts, plumb_word_text((enum plumb_word)word), comparison->words[word]);
    return good;
}

/* Takes the comparison apart. */
static PyObject *from_comparison(struct plumb_comparison *comparison, const char *closing)
{
    PyObject *lines =
        PyUnicode_Decode(closing, (Py_ssize_t)strlen(closing), "utf-8", "backslashreplace");
    PyObject *table = core_table_new(comparison->table);
    comparison->table = NULL;
    if (!lines || !table) {
        Py_XDECREF(lines);
        Py_XDECREF(table);
        return NULL;
    }
    PyObject *result = Py_BuildValue(
        "NN{snsnsnsnsnsnsn}", table, lines, "compared", (Py_ssize_t)comparison->compared, "passed",
        (Py_ssize_t)comparison->passed, "suspicious", (Py_ssize_t)comparison->suspicious, "failed",
        (Py_ssize_t)comparison->failed, "unjudged", (Py_ssize_t)comparison->unjudged, "unmatched",
        (Py_ssize_t)comparison->unmatched, "unreadable", (Py_ssize_t)comparison->unreadable);
    if (result && comparison->verdict != PLUMB_BY_RULES &&
        !add_words(PyTuple_GetItem(result, 2), comparison)) {
        Py_DECREF(result);
        result = NULL;
    }
    return result;
}

/* NULL with an exception set. */
static struct plumb_report *begin_page(char *const paths[2])
{
    struct plumb_report *report = plumb_report_new("compare", "Comparison of two runs");
    if (!report) {
        PyErr_NoMemory();
        return NULL;
    }
    plumb_report_fact(report, "target", paths[0]);
    plumb_report_fact(report, "golden", paths[1]);
    return report;
}

/* The result with its page behind it; takes over both. */
static PyObject *with_page(PyObject *result, struct plumb_report *report)
{
    PyObject *page = core_page_new(report), *all = NULL;
    if (result && page)
        all = Py_BuildValue("OOOO", PyTuple_GetItem(result, 0), PyTuple_GetItem(result, 1),
                            PyTuple_GetItem(result, 2), page);
    Py_XDECREF(page);
    Py_XDECREF(result);
    return all;
}

static PyObject *compare_runs(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    char *keywords[] = {"target", "golden",  "standard",   "settings", "metrics", "match",
                        "wide",   "verdict", "arithmetic", "shards",   "page",    NULL};
    PyObject *sides[2], *standard = Py_None, *settings = NULL, *parts = Py_None;
    const char *metrics = NULL, *match = NULL, *verdict = "rules", *arithmetic = NULL;
    int wide = 0, page = 0;
    struct plumb_compare_options options = {.reasons = true, .modules = true, .seed = 1234};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOzzpszOp:compare_runs", keywords, &sides[0],
                                     &sides[1], &standard, &settings, &metrics, &match, &wide,
                                     &verdict, &arithmetic, &parts, &page))
        return NULL;
    if (!find_verdict(verdict, &options.verdict))
        return core_raise_text(PLUMB_E_ARG, "verdict \"%s\" is none of rules, expected, both",
                               verdict);
    if (match && !find_mode(match, &options.match.mode))
        return core_raise_text(PLUMB_E_ARG, "match \"%s\" is none of auto, exact, fuzzy, order",
                               match);

    PyObject *result = NULL;
    char *paths[2] = {0}, *name = NULL, *lines = NULL;
    struct core_list list = {0};
    struct core_shards shards = {0};
    struct plumb_comparison comparison = {0};
    struct plumb_error err;
    enum plumb_code code;
    for (int i = 0; i < 2; i++)
        if (!(paths[i] = core_path(sides[i])))
            goto out;
    if ((standard != Py_None && !(name = core_path(standard))) ||
        (settings && !core_list_read(&list, settings, "settings")) ||
        !core_shards_read(&shards, parts))
        goto out;
    if (shards.wanted && options.verdict != PLUMB_BY_RULES) {
        core_raise_text(PLUMB_E_ARG,
                        "verdict \"%s\" computes calls of one rank again, and shards "
                        "puts together what several ranks have",
                        verdict);
        goto out;
    }
    options.standard = name;
    options.settings = (const char *const *)list.items;
    options.settings_count = list.count;
    options.metrics = metrics;
    options.wide = wide;
    options.arithmetic = arithmetic && *arithmetic ? arithmetic : NULL;
    if (page && !(options.report = begin_page(paths)))
        goto out;
    Py_BEGIN_ALLOW_THREADS;
    code = compare_paths(paths, &shards, &options, &comparison, &lines, &err);
    Py_END_ALLOW_THREADS;
    if (code) {
        core_raise(&err);
        plumb_report_free(options.report);
        goto out;
    }
    if (page)
        plumb_comparison_report(options.report, &comparison);
    result = from_comparison(&comparison, lines);
    if (page)
        result = with_page(result, options.report);
    plumb_comparison_free(&comparison);
out:
    core_list_free(&list);
    core_shards_free(&shards);
    free(lines);
    free(name);
    free(paths[0]);
    free(paths[1]);
    return result;
}

static PyObject *summarise_run(PyObject *module, PyObject *value)
{
    (void)module;
    char *path = core_path(value);
    if (!path)
        return NULL;
    struct plumb_run *run = NULL;
    struct plumb_table *table = NULL;
    struct plumb_error err;
    size_t unreadable;
    const struct plumb_summary_options options = {.wide = true};
    enum plumb_code code;
    Py_BEGIN_ALLOW_THREADS;
    code = plumb_run_open(&run, path, &err);
    if (!code)
        code = plumb_summary(&table, &unreadable, run, &options, &err);
    plumb_run_free(run);
    Py_END_ALLOW_THREADS;
    free(path);
    return code ? core_raise(&err) : core_table_new(table);
}

/* The one tensor of a file, in memory of its own. Of a view that repeats its elements no more than
 * the file holds. */
static enum plumb_code load_one(const char *path, struct plumb_tensor *out, void **bytes,
                                struct plumb_error *err)
{
    struct plumb_run *run = NULL;
    struct plumb_payload payload = {0};
    struct plumb_file_guard guard;
    struct stat info;
    enum plumb_code code = plumb_run_open(&run, path, err);
    if (code)
        return code;
    if (plumb_run_count(run) != 1)
        code = plumb_fail(err, PLUMB_E_FORMAT, "holds no single tensor");
    if (!code)
        code = plumb_run_load(run, 0, &payload, err);
    if (code)
        goto out;
    const struct plumb_tensor *tensor = &payload.tensor;
    const uint64_t size = plumb_tensor_bytes(tensor);
    if (tensor->swap || stat(path, &info) || size > (uint64_t)info.st_size)
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "holds no tensor as it would be saved");
    if (!code)
        code = plumb_tensor_init(out, tensor->dtype, tensor->rank, tensor->shape, err);
    if (!code && !(*bytes = malloc(size ? (size_t)size : 1)))
        code = plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
    if (!code) {
        plumb_file_guard_enter(&guard, &payload.file);
        plumb_tensor_gather(tensor, 0, (size_t)tensor->count, *bytes);
        if (plumb_file_guard_leave(&guard))
            code = plumb_fail(err, PLUMB_E_IO, "was cut short while it was read");
        out->data = *bytes;
    }
    plumb_payload_release(&payload);
out:
    plumb_run_free(run);
    return code;
}

static void free_bytes(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, NULL));
}

static PyObject *load_tensor(PyObject *module, PyObject *value)
{
    (void)module;
    char *path = core_path(value);
    if (!path)
        return NULL;
    struct plumb_tensor tensor;
    struct plumb_error err;
    void *bytes = NULL;
    enum plumb_code code;
    Py_BEGIN_ALLOW_THREADS;
    code = load_one(path, &tensor, &bytes, &err);
    if (code)
        plumb_error_in_file(&err, path);
    Py_END_ALLOW_THREADS;
    free(path);
    PyObject *owner = code ? NULL : PyCapsule_New(bytes, NULL, free_bytes);
    PyObject *object = owner ? core_tensor_new(&tensor, false, owner) : NULL;
    if (!owner)
        free(bytes);
    Py_XDECREF(owner);
    return code ? core_raise(&err) : object;
}

int core_add_runs(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"compare_runs", (PyCFunction)(void (*)(void))compare_runs, METH_VARARGS | METH_KEYWORDS,
         "compare_runs(target, golden, standard=None, settings=(), metrics=None, match=None, "
         "wide=False, verdict='rules', arithmetic=None, shards=None, page=False): "
         "(table, closing lines, counts)."},
        {"summarise_run", summarise_run, METH_O, "summarise_run(path): one row per tensor."},
        {"load_tensor", load_tensor, METH_O, "load_tensor(path): the one tensor of a file."},
        {0},
    };
    return PyModule_AddFunctions(module, methods);
}
