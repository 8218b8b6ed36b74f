/* What is kept of a tensor in place of its values, from one walk through memory. */
#include "core.h"
#include "parts.h"
#include "team.h"

#include "base/buf.h"
#include "task/condense/text.h"

#include <stdlib.h>

_Static_assert(PART % KEPT_CUT == 0, "parts merge to the same bits");

struct sketch_object {
    PyObject_HEAD struct plumb_tensor tensor; /* without data */
    struct measured *measured;
    uint64_t mark;
};

static PyTypeObject *sketch_type;

static struct sketch_object *self_of(PyObject *object)
{
    return (struct sketch_object *)object;
}

/* -- The walk ---------------------------------------------------------------------------------- */

struct work {
    const struct plumb_tensor *tensor;
    struct kernels kernels;
    struct kept_state states[MAX_THREADS];
    uint64_t marks[MAX_THREADS];
    bool ready[MAX_THREADS], failed[MAX_THREADS];
};

static void add_part(void *context, size_t i, unsigned thread)
{
    struct work *work = context;
    struct kept_state *state = &work->states[thread];
    if (!work->ready[thread]) {
        work->ready[thread] = true;
        work->failed[thread] = !kept_begin(state, work->tensor, measure_wanted(PLUMB_KEEP_ALL));
    }
    if (work->failed[thread])
        return;
    kept_tensor(state, &work->kernels, work->tensor, (uint64_t)i * PART, PART);
    work->marks[thread] += part_mark(state->part, i);
}

/* False when out of memory. */
static bool walk(const struct plumb_tensor *tensor, struct measured *out, uint64_t *mark)
{
    static struct team_pace pace;
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        return false;
    work->tensor = tensor;
    work->kernels = kernels_current();
    const size_t parts = tensor->count ? (size_t)((tensor->count - 1) / PART + 1) : 1;
    const unsigned threads =
        team_run(&pace, plumb_tensor_bytes(tensor) < THREADED_BYTES ? 1 : MAX_THREADS, parts,
                 add_part, work);
    bool ok = true;
    unsigned first = 0;
    while (first < threads && !work->ready[first])
        first++;
    *mark = 0;
    for (unsigned i = first; i < threads; i++) {
        ok = ok && !work->failed[i];
        if (ok && i > first && work->ready[i])
            kept_merge(&work->states[first], &work->states[i]);
        *mark += work->marks[i];
    }
    ok = ok && first < threads && measure_take(out, &work->states[first]);
    for (unsigned i = 0; i < threads; i++)
        kept_end(&work->states[i]);
    free(work);
    return ok;
}

/* -- The object -------------------------------------------------------------------------------- */

PyObject *core_sketch_new(const struct plumb_tensor *tensor)
{
    PyObject *object = PyType_GenericAlloc(sketch_type, 0);
    if (!object)
        return NULL;
    struct sketch_object *self = self_of(object);
    self->tensor = *tensor;
    self->tensor.data = NULL;
    bool ok = (self->measured = malloc(sizeof *self->measured)) != NULL;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS;
        ok = walk(tensor, self->measured, &self->mark);
        Py_END_ALLOW_THREADS;
    }
    if (ok)
        return object;
    Py_DECREF(object);
    return PyErr_NoMemory();
}

bool core_sketch_of(PyObject *object, struct core_sketch *out)
{
    if (Py_TYPE(object) != sketch_type) {
        PyErr_Format(PyExc_TypeError, "sketch must be a plumb Sketch, not %R", Py_TYPE(object));
        return false;
    }
    *out = (struct core_sketch){&self_of(object)->tensor, self_of(object)->measured};
    return true;
}

static void sketch_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    free(self_of(object)->measured);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *from_buf(struct buf *buf)
{
    PyObject *bytes = buf->failed ? PyErr_NoMemory()
                                  : PyBytes_FromStringAndSize(buf->data, (Py_ssize_t)buf->size);
    buf_free(buf);
    return bytes;
}

static PyObject *sketch_text(PyObject *object, PyObject *args)
{
    PyObject *given;
    int requires_grad, first;
    char *name;
    struct buf out = {0};
    if (!PyArg_ParseTuple(args, "Opp:text", &given, &requires_grad, &first) ||
        !(name = core_text(given, "name")))
        return NULL;
    const struct sketch_object *self = self_of(object);
    const struct plumb_record record = {
        .name = name, .step = -1, .rank = -1, .requires_grad = (int8_t)requires_grad};
    text_tensor(&out, &record, &self->tensor, self->measured, PLUMB_KEEP_ALL, first);
    free(name);
    return from_buf(&out);
}

static PyObject *get_stats(PyObject *object, void *closure)
{
    (void)closure;
    const struct sketch_object *self = self_of(object);
    return core_stats_new(&self->tensor, &self->measured->stats, &self->measured->ends);
}

static PyObject *get_mark(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(self_of(object)->mark);
}

static PyObject *get_hash(PyObject *object, void *closure)
{
    (void)closure;
    char text[HASH_BYTES];
    hash_text(&self_of(object)->measured->hash, text);
    return PyUnicode_FromString(text);
}

/* -- Files ------------------------------------------------------------------------------------- */

static PyObject *sketches_begin(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct buf out = {0};
    text_begin(&out, "dump_tensor_data", "capture", 0);
    return from_buf(&out);
}

int core_add_sketch(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"sketches_begin", sketches_begin, METH_NOARGS,
         "The beginning of a file of sketches, before the texts of any."},
        {0},
    };
    static PyMethodDef methods[] = {
        {"text", sketch_text, METH_VARARGS,
         "text(name, requires_grad, first): as a file of sketches has it, with the comma before "
         "it unless it is the first."},
        {0},
    };
    static PyGetSetDef attributes[] = {
        {"stats", get_stats, NULL, "its Stats", NULL},
        {"mark", get_mark, NULL, "what Tensor.mark() gives for a dense tensor", NULL},
        {"hash", get_hash, NULL, "128 bits of its bytes, in 32 hex digits", NULL},
        {0},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, "What is kept of a tensor in place of its values; Tensor.sketch() makes it."},
        {Py_tp_dealloc, CORE_SLOT(sketch_dealloc)},
        {Py_tp_methods, methods},
        {Py_tp_getset, attributes},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "plumb._core.Sketch",
        .basicsize = sizeof(struct sketch_object),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };
    sketch_type = (PyTypeObject *)core_add_type(module, &spec);
    return sketch_type ? PyModule_AddFunctions(module, functions) : -1;
}
