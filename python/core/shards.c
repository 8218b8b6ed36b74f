/* How ranks are put together, as Python says it. */
#include "core.h"

#include <stdlib.h>

bool core_list_read(struct core_list *list, PyObject *value, const char *what)
{
    PyObject *items = core_texts(value, what);
    if (!items)
        return false;
    const size_t size = (size_t)PyTuple_Size(items);
    list->items = calloc(size + 1, sizeof(*list->items));
    bool good = list->items != NULL;
    if (!good)
        PyErr_NoMemory();
    for (size_t i = 0; i < size && good; i++) {
        list->items[i] = core_text(PyTuple_GetItem(items, (Py_ssize_t)i), what);
        good = list->items[i] != NULL;
        list->count += good;
    }
    Py_DECREF(items);
    return good;
}

void core_list_free(struct core_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free((void *)list->items);
    *list = (struct core_list){0};
}

bool core_shards_read(struct core_shards *shards, PyObject *value)
{
    PyObject *file, *dims, *parallel;
    if (value == Py_None)
        return true;
    if (!PyTuple_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "shards must be None or (file, dims, parallel)");
        return false;
    }
    if (!PyArg_ParseTuple(value, "OOO:shards", &file, &dims, &parallel) ||
        (file != Py_None && !(shards->file = core_path(file))) ||
        !core_list_read(&shards->dims, dims, "dims") ||
        !core_list_read(&shards->parallel, parallel, "parallel"))
        return false;
    shards->wanted = true;
    shards->options = (struct plumb_shards_options){
        .dims = (const char *const *)shards->dims.items,
        .dims_count = shards->dims.count,
        .file = shards->file,
        .parallel = (const char *const *)shards->parallel.items,
        .parallel_count = shards->parallel.count,
    };
    return true;
}

void core_shards_free(struct core_shards *shards)
{
    core_list_free(&shards->dims);
    core_list_free(&shards->parallel);
    free(shards->file);
    *shards = (struct core_shards){0};
}
