/* The view of CPU memory that everything else works on. */
#include "core.h"

#include "plumb/write.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct core_tensor {
    PyObject_HEAD struct plumb_tensor tensor;
    bool requires_grad;
    PyObject *owner;
};

static PyTypeObject *tensor_type;

static struct core_tensor *self_of(PyObject *object)
{
    return (struct core_tensor *)object;
}

bool core_tensor_is(PyObject *object)
{
    return Py_TYPE(object) == tensor_type;
}

const struct plumb_tensor *core_tensor_of(PyObject *object, const char *what)
{
    if (core_tensor_is(object))
        return &self_of(object)->tensor;
    PyErr_Format(PyExc_TypeError, "%s must be a plumb Tensor, not %R (see plumb.tensors.view)",
                 what, Py_TYPE(object));
    return NULL;
}

bool core_tensor_requires_grad(PyObject *tensor)
{
    return self_of(tensor)->requires_grad;
}

/* -- Making and ending ------------------------------------------------------------------------- */

PyObject *core_tensor_new(const struct plumb_tensor *tensor, bool requires_grad, PyObject *owner)
{
    PyObject *object = PyType_GenericAlloc(tensor_type, 0);
    if (!object)
        return NULL;
    self_of(object)->tensor = *tensor;
    self_of(object)->requires_grad = requires_grad;
    Py_XINCREF(owner);
    self_of(object)->owner = owner;
    return object;
}

/* The integers of a sequence; their number, or -1 with an exception set. */
static int read_sizes(PyObject *sequence, const char *what, int64_t *sizes)
{
    if (PyUnicode_Check(sequence) || !PySequence_Check(sequence)) {
        PyErr_Format(PyExc_TypeError, "%s must be a sequence of int, not %R", what,
                     Py_TYPE(sequence));
        return -1;
    }
    PyObject *items = PySequence_Tuple(sequence);
    if (!items)
        return -1;
    Py_ssize_t count = PyTuple_Size(items);
    int result = -1;
    if (count > PLUMB_MAX_RANK) {
        core_raise_text(PLUMB_E_ARG, "%s has %zd dimensions; plumb takes up to %d", what, count,
                        PLUMB_MAX_RANK);
        goto out;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!core_int64(PyTuple_GetItem(items, i), what, &sizes[i]))
            goto out;
    result = (int)count;
out:
    Py_DECREF(items);
    return result;
}

/* The memory is as large as the caller says: strides need only not overflow. */
static bool set_view(struct plumb_tensor *tensor, enum plumb_dtype dtype, PyObject *shape,
                     PyObject *stride)
{
    struct plumb_error err;
    int64_t sizes[PLUMB_MAX_RANK];
    const int rank = read_sizes(shape, "shape", sizes);
    if (rank < 0)
        return false;
    if (plumb_tensor_init(tensor, dtype, (unsigned)rank, sizes, &err)) {
        core_raise(&err);
        return false;
    }
    if (stride == Py_None)
        return true;
    const int steps = read_sizes(stride, "stride", sizes);
    if (steps < 0)
        return false;
    if (steps != rank) {
        core_raise_text(PLUMB_E_ARG, "%d strides for %d dimensions", steps, rank);
        return false;
    }
    if (plumb_tensor_set_strides(tensor, sizes, INT64_MAX, UINT64_MAX, &err)) {
        core_raise(&err);
        return false;
    }
    return true;
}

static bool set_dtype(PyObject *value, enum plumb_dtype *dtype)
{
    char *name = core_text(value, "dtype");
    if (!name)
        return false;
    *dtype = plumb_dtype_from_name(name);
    if (*dtype == PLUMB_DTYPE_COUNT)
        core_raise_text(PLUMB_E_UNSUPPORTED, "plumb knows no dtype \"%s\"", name);
    free(name);
    return *dtype != PLUMB_DTYPE_COUNT;
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type;
    char *keywords[] = {"pointer", "dtype", "shape", "stride", "requires_grad", "owner", NULL};
    PyObject *pointer, *name, *shape, *stride = Py_None, *owner = NULL;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OpO:Tensor", keywords, &pointer, &name,
                                     &shape, &stride, &requires_grad, &owner))
        return NULL;
    struct plumb_tensor tensor;
    enum plumb_dtype dtype;
    void *data;
    if (!core_address(pointer, "pointer", &data) || !set_dtype(name, &dtype) ||
        !set_view(&tensor, dtype, shape, stride))
        return NULL;
    if (!data && tensor.count)
        return core_raise_text(PLUMB_E_ARG, "a tensor of %" PRIu64 " elements at address 0",
                               tensor.count);
    tensor.data = data;
    return core_tensor_new(&tensor, requires_grad, owner);
}

static int tensor_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self_of(object)->owner);
    return 0;
}

static int tensor_clear(PyObject *object)
{
    /* A view without its owner has no memory to show. */
    if (self_of(object)->owner) {
        self_of(object)->tensor.count = 0;
        self_of(object)->tensor.dense = true;
    }
    Py_CLEAR(self_of(object)->owner);
    return 0;
}

static void tensor_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_CLEAR(self_of(object)->owner);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* -- Attributes -------------------------------------------------------------------------------- */

static PyObject *sizes_tuple(const int64_t *sizes, unsigned rank)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)rank);
    for (unsigned i = 0; tuple && i < rank; i++) {
        PyObject *size = PyLong_FromLongLong(sizes[i]);
        if (!size || PyTuple_SetItem(tuple, (Py_ssize_t)i, size) < 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}

static PyObject *get_pointer(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong((uintptr_t)self_of(object)->tensor.data);
}

static PyObject *get_dtype(PyObject *object, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(plumb_dtype_info(self_of(object)->tensor.dtype)->name);
}

static PyObject *get_shape(PyObject *object, void *closure)
{
    (void)closure;
    return sizes_tuple(self_of(object)->tensor.shape, self_of(object)->tensor.rank);
}

static PyObject *get_stride(PyObject *object, void *closure)
{
    (void)closure;
    return sizes_tuple(self_of(object)->tensor.stride, self_of(object)->tensor.rank);
}

static PyObject *get_count(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(self_of(object)->tensor.count);
}

static PyObject *get_nbytes(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(plumb_tensor_bytes(&self_of(object)->tensor));
}

static PyObject *get_requires_grad(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(self_of(object)->requires_grad);
}

static PyObject *tensor_repr(PyObject *object)
{
    const struct plumb_tensor *tensor = &self_of(object)->tensor;
    char shape[256];
    return PyUnicode_FromFormat("Tensor(%s, %s)", plumb_dtype_info(tensor->dtype)->name,
                                plumb_shape_text(tensor, shape, sizeof shape));
}

/* -- Methods ----------------------------------------------------------------------------------- */

static PyObject *tensor_stats(PyObject *object, PyObject *unused)
{
    (void)unused;
    return core_tensor_stats(&self_of(object)->tensor, NULL);
}

static bool has_mark(const struct plumb_tensor *tensor)
{
    if (tensor->dense && plumb_dtype_info(tensor->dtype)->bits % 8 == 0)
        return true;
    PyErr_SetString(PyExc_ValueError, "only a dense tensor of whole bytes has a mark");
    return false;
}

static PyObject *tensor_stats_and_mark(PyObject *object, PyObject *unused)
{
    (void)unused;
    const struct plumb_tensor *tensor = &self_of(object)->tensor;
    uint64_t mark = 0;
    PyObject *stats = has_mark(tensor) ? core_tensor_stats(tensor, &mark) : NULL;
    return stats ? Py_BuildValue("(NK)", stats, (unsigned long long)mark) : NULL;
}

static PyObject *tensor_mark(PyObject *object, PyObject *unused)
{
    (void)unused;
    const struct plumb_tensor *tensor = &self_of(object)->tensor;
    uint64_t mark;
    if (!has_mark(tensor))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    mark = core_tensor_mark(tensor);
    Py_END_ALLOW_THREADS;
    return PyLong_FromUnsignedLongLong(mark);
}

static PyObject *tensor_sketch(PyObject *object, PyObject *unused)
{
    (void)unused;
    return core_sketch_new(&self_of(object)->tensor);
}

static PyObject *tensor_crc32(PyObject *object, PyObject *unused)
{
    (void)unused;
    uint32_t crc;
    Py_BEGIN_ALLOW_THREADS;
    crc = core_tensor_crc32(&self_of(object)->tensor);
    Py_END_ALLOW_THREADS;
    return PyLong_FromUnsignedLong(crc);
}

static PyObject *tensor_xor64(PyObject *object, PyObject *unused)
{
    (void)unused;
    uint64_t sum;
    Py_BEGIN_ALLOW_THREADS;
    sum = core_tensor_xor64(&self_of(object)->tensor);
    Py_END_ALLOW_THREADS;
    return PyLong_FromUnsignedLongLong(sum);
}

static PyObject *tensor_copy_into(PyObject *object, PyObject *args)
{
    const struct plumb_tensor *tensor = &self_of(object)->tensor;
    PyObject *pointer, *size;
    void *to;
    int64_t room;
    if (!PyArg_ParseTuple(args, "OO:copy_into", &pointer, &size) ||
        !core_address(pointer, "pointer", &to) || !core_int64(size, "nbytes", &room))
        return NULL;
    const uint64_t bytes = plumb_tensor_bytes(tensor);
    if (room < 0 || (uint64_t)room < bytes)
        return core_raise_text(PLUMB_E_ARG, "%" PRIu64 " bytes do not fit into %" PRId64, bytes,
                               room);
    if (bytes && !to)
        return core_raise_text(PLUMB_E_ARG, "%" PRIu64 " bytes to address 0", bytes);
    Py_BEGIN_ALLOW_THREADS;
    plumb_tensor_gather(tensor, 0, (size_t)tensor->count, to);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyObject *core_tensor_element(const struct plumb_tensor *tensor, uint64_t index)
{
    double parts[2];
    int64_t bits = 0;
    switch (plumb_dtype_info(tensor->dtype)->kind) {
    case PLUMB_KIND_BOOL:
        plumb_tensor_to_f64(tensor, index, 1, parts);
        return PyBool_FromLong(parts[0] != 0);
    case PLUMB_KIND_FLOAT:
        plumb_tensor_to_f64(tensor, index, 1, parts);
        return PyFloat_FromDouble(parts[0]);
    case PLUMB_KIND_COMPLEX:
        plumb_tensor_to_f64(tensor, index, 1, parts);
        return PyComplex_FromDoubles(parts[0], parts[1]);
    default:
        if (tensor->dtype == PLUMB_I64 || tensor->dtype == PLUMB_U64) {
            plumb_tensor_gather(tensor, index, 1, &bits);
            return tensor->dtype == PLUMB_I64 ? PyLong_FromLongLong(bits)
                                              : PyLong_FromUnsignedLongLong((uint64_t)bits);
        }
        plumb_tensor_to_f64(tensor, index, 1, parts);
        return PyLong_FromLongLong((int64_t)parts[0]);
    }
}

static PyObject *tensor_value(PyObject *object, PyObject *unused)
{
    (void)unused;
    const struct plumb_tensor *tensor = &self_of(object)->tensor;
    if (tensor->count != 1)
        return core_raise_text(PLUMB_E_ARG, "a tensor of %" PRIu64 " elements has no single value",
                               tensor->count);
    return core_tensor_element(tensor, 0);
}

enum plumb_code core_tensor_save(const struct plumb_tensor *tensor, const char *path,
                                 struct plumb_error *err)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".pt") == 0)
        return plumb_pt_write(path, tensor, err);
    if (dot && strcmp(dot, ".npy") == 0)
        return plumb_npy_write(path, tensor, err);
    plumb_fail(err, PLUMB_E_ARG, "a tensor is saved as .pt or .npy");
    plumb_error_in_file(err, path);
    return PLUMB_E_ARG;
}

static PyObject *tensor_save(PyObject *object, PyObject *path)
{
    char *name = core_path(path);
    if (!name)
        return NULL;
    struct plumb_error err;
    enum plumb_code code;
    Py_BEGIN_ALLOW_THREADS;
    code = core_tensor_save(&self_of(object)->tensor, name, &err);
    Py_END_ALLOW_THREADS;
    free(name);
    if (code)
        return core_raise(&err);
    Py_RETURN_NONE;
}

int core_add_tensor(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"stats", tensor_stats, METH_NOARGS, "Its Stats, in one pass."},
        {"stats_and_mark", tensor_stats_and_mark, METH_NOARGS, "Both, in one pass."},
        {"mark", tensor_mark, METH_NOARGS, "Another number when the bytes are others."},
        {"sketch", tensor_sketch, METH_NOARGS, "What is kept of it in place of its values."},
        {"crc32", tensor_crc32, METH_NOARGS, "Of the dense bytes, as zlib does it."},
        {"xor64", tensor_xor64, METH_NOARGS, "The dense bytes xor-ed as words of eight."},
        {"copy_into", tensor_copy_into, METH_VARARGS,
         "copy_into(pointer, nbytes): writes the dense bytes there."},
        {"value", tensor_value, METH_NOARGS, "The one element as a Python number."},
        {"save", tensor_save, METH_O, "save(path): one file, .pt or .npy."},
        {0},
    };
    static PyGetSetDef attributes[] = {
        {"pointer", get_pointer, NULL, "address of the first element", NULL},
        {"dtype", get_dtype, NULL, "plumb's name of the type", NULL},
        {"shape", get_shape, NULL, NULL, NULL},
        {"stride", get_stride, NULL, "in elements", NULL},
        {"count", get_count, NULL, "elements", NULL},
        {"nbytes", get_nbytes, NULL, "of the dense form", NULL},
        {"requires_grad", get_requires_grad, NULL, NULL, NULL},
        {0},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Tensor(pointer, dtype, shape, stride=None, requires_grad=False, owner=None)\n"
                    "A view of CPU memory."},
        {Py_tp_new, CORE_SLOT(tensor_new)},
        {Py_tp_dealloc, CORE_SLOT(tensor_dealloc)},
        {Py_tp_traverse, CORE_SLOT(tensor_traverse)},
        {Py_tp_clear, CORE_SLOT(tensor_clear)},
        {Py_tp_repr, CORE_SLOT(tensor_repr)},
        {Py_tp_methods, methods},
        {Py_tp_getset, attributes},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "plumb._core.Tensor",
        .basicsize = sizeof(struct core_tensor),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    tensor_type = (PyTypeObject *)core_add_type(module, &spec);
    return tensor_type ? 0 : -1;
}
