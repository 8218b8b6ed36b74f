/* The C side of the Python package; python/plumb/_core.pyi says what it offers.
 *
 * Written to the limited API of Python 3.9: types are made from specs, and what it lacks (the
 * buffer protocol, UTF-8 without a copy) is done without. */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <Python.h>

#include "plumb/shards.h"
#include "plumb/tensor.h"

/* A type's slots want functions as void pointers, which ISO C has no cast for. */
#define CORE_SLOT(function) ((void *)(uintptr_t)(function))

/* Each adds its names to the module: 0, or -1 with an exception set. */
int core_add_errors(PyObject *module);
int core_add_tensor(PyObject *module);
int core_add_stats(PyObject *module);
int core_add_ops(PyObject *module);
int core_add_compare(PyObject *module);
int core_add_apart(PyObject *module);
int core_add_table(PyObject *module);
int core_add_page(PyObject *module);
int core_add_runs(PyObject *module);
int core_add_json(PyObject *module);
int core_add_writer(PyObject *module);
int core_add_guard(PyObject *module);
int core_add_expected(PyObject *module);
int core_add_blame(PyObject *module);
int core_add_whole(PyObject *module);
int core_add_sketch(PyObject *module);
int core_add_bench(PyObject *module);

/* -- Failures and arguments (support.c) -------------------------------------------------------- */

/* Raise plumb.Error; NULL always. */
PyObject *core_raise(const struct plumb_error *err);
PyObject *core_raise_text(enum plumb_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each false with an exception set: TypeError for the wrong type, plumb.Error for a number that
 * does not fit. `what` names the argument. */
bool core_int64(PyObject *value, const char *what, int64_t *out);
bool core_address(PyObject *value, const char *what, void **out);

/* Malloc'd UTF-8 of a str, and the bytes of a path (str, bytes or os.PathLike); text with a NUL
 * inside is refused. NULL with an exception set. */
char *core_text(PyObject *value, const char *what);
char *core_path(PyObject *value);

/* A sequence of str as a tuple (its items unchecked); a str by itself is refused. NULL with an
 * exception set. */
PyObject *core_texts(PyObject *value, const char *what);

/* -- Lists of texts, and how ranks are put together (shards.c) --------------------------------- */

struct core_list {
    char **items; /* malloc, each of them too */
    size_t count;
};

/* Reads a sequence of str; false with an exception set. Either way core_list_free. */
bool core_list_read(struct core_list *list, PyObject *value, const char *what);
void core_list_free(struct core_list *list);

struct core_shards {
    bool wanted;
    struct plumb_shards_options options; /* without match */
    char *file;
    struct core_list dims, parallel;
};

/* None, or (file or None, dims, parallel); false with an exception set. Either way
 * core_shards_free. */
bool core_shards_read(struct core_shards *shards, PyObject *value);
void core_shards_free(struct core_shards *shards);

/* A new type of the module under the last part of the spec's name; NULL with an exception set. */
PyObject *core_add_type(PyObject *module, PyType_Spec *spec);

/* -- Tensors (tensor.c, stats.c, checksum.c) --------------------------------------------------- */

/* A Tensor object; its bytes belong to owner. */
PyObject *core_tensor_new(const struct plumb_tensor *tensor, bool requires_grad, PyObject *owner);

/* The view inside a Tensor object, or NULL with a TypeError set. */
const struct plumb_tensor *core_tensor_of(PyObject *object, const char *what);
bool core_tensor_is(PyObject *object);
bool core_tensor_requires_grad(PyObject *tensor);

/* One element, number `index` in C order, as a Python number. */
PyObject *core_tensor_element(const struct plumb_tensor *tensor, uint64_t index);

/* The Stats of a tensor; NULL with an exception set. mark: where that goes as well, of a dense
 * tensor whose elements are whole bytes; or NULL. */
PyObject *core_tensor_stats(const struct plumb_tensor *tensor, uint64_t *mark);

/* The same, of what is known. */
struct plumb_stats;
struct ends;
PyObject *core_stats_new(const struct plumb_tensor *tensor, const struct plumb_stats *stats,
                         const struct ends *ends);

/* A number that is another one, but for a chance of one in four billion, when the bytes of a dense
 * tensor are. */
uint64_t core_tensor_mark(const struct plumb_tensor *tensor);

uint32_t core_tensor_crc32(const struct plumb_tensor *tensor);
uint64_t core_tensor_xor64(const struct plumb_tensor *tensor);

/* Writes one file, .pt or .npy by the ending of path. */
enum plumb_code core_tensor_save(const struct plumb_tensor *tensor, const char *path,
                                 struct plumb_error *err);

/* -- Sketches (sketch.c) ----------------------------------------------------------------------- */

/* What was kept of a tensor; valid as long as the object. NULL with a TypeError set. */
struct core_sketch {
    const struct plumb_tensor *tensor; /* without data */
    const struct measured *measured;
};
bool core_sketch_of(PyObject *object, struct core_sketch *out);

/* A Sketch of a tensor; NULL with an exception set. */
PyObject *core_sketch_new(const struct plumb_tensor *tensor);

/* -- Operators (ops.c) ------------------------------------------------------------------------- */

struct arena;
struct plumb_call;

/* Python's values as the arguments of a call; args is a sequence, kwargs a dict of str, and both
 * must outlive the call. False with an exception set. */
bool core_read_call(struct arena *arena, PyObject *args, PyObject *kwargs, struct plumb_call *call);

/* A sequence of Tensor and None as the gradients of a call's outputs; None: there are none. */
bool core_read_grads(struct arena *arena, PyObject *grads, struct plumb_call *call);

/* One value as an argument. */
struct plumb_arg;
bool core_read_value(struct arena *arena, PyObject *value, struct plumb_arg *arg);

/* -- Opinions (expected.c) --------------------------------------------------------------------- */

struct plumb_opinion;

/* Its fields as a dict; NULL with an exception set. */
PyObject *core_opinion(const struct plumb_opinion *opinion);

/* -- Tables (table.c) -------------------------------------------------------------------------- */

struct plumb_table;

/* A Table object, which takes over table even when it cannot be made. */
PyObject *core_table_new(struct plumb_table *table);

/* The table inside; NULL with an exception set. */
const struct plumb_table *core_table_of(PyObject *object);

/* -- Pages (page.c) ---------------------------------------------------------------------------- */

struct plumb_report;

/* A Page object, which takes over report even when it cannot be made; NULL: out of memory. */
PyObject *core_page_new(struct plumb_report *report);

#endif
