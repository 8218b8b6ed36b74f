/* The Writer object over a queue. */
#include "core.h"
#include "queue.h"

#include <stdlib.h>
#include <unistd.h>

/* How long a wait lasts before Python is asked whether somebody pressed Ctrl-C. */
enum { PATIENCE_MS = 100 };

/* What a Writer has. Not in the object itself, whose memory Python may take back at its end before
 * it calls close_all. */
struct writer {
    struct queue *queue;
    uint64_t budget;
    int64_t files; /* numbers given out */
    struct writer *next, *previous;
};

struct writer_object {
    PyObject_HEAD struct writer *writer;
};

static PyTypeObject *writer_type;

/* All Writers, for the end of the process. Changed with the interpreter lock held only, so a fork
 * finds it whole. */
static struct writer *writers;

static struct writer *self_of(PyObject *object)
{
    return ((struct writer_object *)object)->writer;
}

/* The queue of this process: a forked child's is made when it is first asked for, and the one it
 * inherited, whose thread and locks stayed behind, is left as it is. */
static struct queue *queue_of(PyObject *object)
{
    struct writer *self = self_of(object);
    if (queue_owner(self->queue) == getpid())
        return self->queue;
    struct queue *own = queue_new(self->budget, false, self->files);
    if (!own) {
        PyErr_NoMemory();
        return NULL;
    }
    self->queue = own;
    return own;
}

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    char *keywords[] = {"budget", NULL};
    PyObject *limit = NULL;
    int64_t budget = 32 << 20;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Writer", keywords, &limit) ||
        (limit && !core_int64(limit, "budget", &budget)))
        return NULL;
    if (budget < 0)
        return core_raise_text(PLUMB_E_ARG, "a budget of %lld bytes", (long long)budget);
    struct writer *self = calloc(1, sizeof *self);
    PyObject *object = self ? PyType_GenericAlloc(type, 0) : NULL;
    if (!object || !(self->queue = queue_new((uint64_t)budget, true, 0))) {
        Py_XDECREF(object);
        free(self);
        return PyErr_NoMemory();
    }
    ((struct writer_object *)object)->writer = self;
    self->budget = (uint64_t)budget;
    self->next = writers;
    if (writers)
        writers->previous = self;
    writers = self;
    return object;
}

static void end_writer(struct writer *self)
{
    if (self->next)
        self->next->previous = self->previous;
    *(self->previous ? &self->previous->next : &writers) = self->next;
    if (queue_owner(self->queue) == getpid()) {
        Py_BEGIN_ALLOW_THREADS;
        queue_close(self->queue);
        Py_END_ALLOW_THREADS;
        queue_free(self->queue);
    }
    free(self);
}

static void writer_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (self_of(object))
        end_writer(self_of(object));
    PyObject_Free(object);
    Py_DECREF(type);
}

/* When Python ends without having freed a Writer, what waits is written all the same. */
static void close_all(void)
{
    for (struct writer *self = writers; self; self = self->next)
        if (queue_owner(self->queue) == getpid())
            queue_close(self->queue);
}

/* -- Methods ----------------------------------------------------------------------------------- */

/* Takes over job->name. */
static PyObject *put(PyObject *object, const struct queue_job *job)
{
    struct queue *queue = queue_of(object);
    for (bool taken = false; queue && !taken;) {
        Py_BEGIN_ALLOW_THREADS;
        taken = queue_put(queue, job, PATIENCE_MS);
        Py_END_ALLOW_THREADS;
        if (taken)
            Py_RETURN_NONE;
        if (PyErr_CheckSignals() < 0)
            break;
    }
    free(job->name);
    return NULL;
}

static PyObject *writer_save(PyObject *object, PyObject *args)
{
    PyObject *path, *tensor;
    struct queue_job job = {.kind = QUEUE_SAVE};
    if (!PyArg_ParseTuple(args, "OO:save", &path, &tensor) ||
        !(job.tensor = core_tensor_of(tensor, "tensor")) || !(job.name = core_path(path)))
        return NULL;
    return put(object, &job);
}

static PyObject *writer_open_h5(PyObject *object, PyObject *args, PyObject *kwargs)
{
    char *keywords[] = {"path", "global_rank", "local_rank", NULL};
    PyObject *path;
    long long global_rank = -1, local_rank = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|LL:open_h5", keywords, &path, &global_rank,
                                     &local_rank))
        return NULL;
    struct queue_job job = {
        .kind = QUEUE_OPEN, .global_rank = global_rank, .local_rank = local_rank};
    if (!(job.name = core_path(path)))
        return NULL;
    /* A child's own queue must be there before it gives out numbers of its own. */
    if (!queue_of(object)) {
        free(job.name);
        return NULL;
    }
    job.file = self_of(object)->files++;
    PyObject *done = put(object, &job);
    if (!done)
        return NULL;
    Py_DECREF(done);
    return PyLong_FromLongLong(job.file);
}

static PyObject *writer_add_h5(PyObject *object, PyObject *args)
{
    PyObject *file, *name, *step, *tensor, *call = NULL;
    struct queue_job job = {.kind = QUEUE_ADD, .call = -1};
    if (!PyArg_ParseTuple(args, "OOOO|O:add_h5", &file, &name, &step, &tensor, &call) ||
        !core_int64(file, "file", &job.file) || !core_int64(step, "step", &job.step) ||
        (call && !core_int64(call, "call", &job.call)) ||
        !(job.tensor = core_tensor_of(tensor, "tensor")) || !(job.name = core_text(name, "name")))
        return NULL;
    return put(object, &job);
}

static PyObject *writer_close_h5(PyObject *object, PyObject *file)
{
    struct queue_job job = {.kind = QUEUE_CLOSE};
    if (!core_int64(file, "file", &job.file))
        return NULL;
    return put(object, &job);
}

static PyObject *writer_sync_h5(PyObject *object, PyObject *file)
{
    struct queue_job job = {.kind = QUEUE_SYNC};
    if (!core_int64(file, "file", &job.file))
        return NULL;
    return put(object, &job);
}

static PyObject *writer_broken_h5(PyObject *object, PyObject *file)
{
    int64_t number;
    struct queue *queue = core_int64(file, "file", &number) ? queue_of(object) : NULL;
    return queue ? PyBool_FromLong(queue_broken(queue, number)) : NULL;
}

static PyObject *writer_add_entry(PyObject *object, PyObject *args)
{
    PyObject *file, *first, *text;
    struct queue_job job = {.kind = QUEUE_ENTRY};
    if (!PyArg_ParseTuple(args, "OOO:add_entry", &file, &first, &text) ||
        !core_int64(file, "file", &job.file) || !core_int64(first, "first", &job.step) ||
        !(job.name = core_text(text, "text")))
        return NULL;
    return put(object, &job);
}

static PyObject *writer_flush(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct queue *queue = queue_of(object);
    if (!queue)
        return NULL;
    const uint64_t ticket = queue_ticket(queue);
    for (bool done = false; !done;) {
        Py_BEGIN_ALLOW_THREADS;
        done = queue_flush(queue, ticket, PATIENCE_MS);
        Py_END_ALLOW_THREADS;
        if (!done && PyErr_CheckSignals() < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *writer_close(PyObject *object, PyObject *unused)
{
    PyObject *flushed = writer_flush(object, unused);
    if (!flushed)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    queue_close(self_of(object)->queue);
    Py_END_ALLOW_THREADS;
    return flushed;
}

static PyObject *decode(const char *text)
{
    return PyUnicode_DecodeFSDefault(text);
}

static PyObject *writer_errors(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct queue *queue = queue_of(object);
    if (!queue)
        return NULL;
    size_t count;
    struct queue_error *errors = queue_errors(queue, &count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *pair = Py_BuildValue("NN", decode(errors[i].name), decode(errors[i].message));
        if (!pair || PyList_Append(list, pair) < 0) {
            Py_DECREF(list);
            list = NULL;
        }
        Py_XDECREF(pair);
    }
    queue_errors_free(errors, count);
    return list;
}

int core_add_writer(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"save", writer_save, METH_VARARGS, "save(path, tensor): .pt or .npy."},
        {"open_h5", (PyCFunction)(void (*)(void))writer_open_h5, METH_VARARGS | METH_KEYWORDS,
         "open_h5(path, global_rank=-1, local_rank=-1): a module dump; its number."},
        {"add_h5", writer_add_h5, METH_VARARGS, "add_h5(file, name, step, tensor, call=-1)."},
        {"sync_h5", writer_sync_h5, METH_O, "sync_h5(file): whole and under its name from now."},
        {"close_h5", writer_close_h5, METH_O, "close_h5(file)."},
        {"broken_h5", writer_broken_h5, METH_O, "broken_h5(file): it takes nothing more."},
        {"add_entry", writer_add_entry, METH_VARARGS, "add_entry(descriptor, first, text)."},
        {"flush", writer_flush, METH_NOARGS, "Returns when nothing waits."},
        {"close", writer_close, METH_NOARGS, "Flushes, closes every file, ends the thread."},
        {"errors", writer_errors, METH_NOARGS,
         "(path or tensor name, message) of what could not be written, and forgets them."},
        {0},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Writer(budget=32 << 20)\nWrites tensors to files on a thread of its own."},
        {Py_tp_new, CORE_SLOT(writer_new)},
        {Py_tp_dealloc, CORE_SLOT(writer_dealloc)},
        {Py_tp_methods, methods},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "plumb._core.Writer",
        .basicsize = sizeof(struct writer_object),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };
    writer_type = (PyTypeObject *)core_add_type(module, &spec);
    if (!writer_type)
        return -1;
    Py_AtExit(close_all); /* without a place for it, only unclosed Writers suffer */
    return 0;
}
