/* The module plumb._core: its start, and the parts that add their names to it. */
#include "core.h"

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "plumb._core",
    .m_doc = "The C side of plumb for Python; see _core.pyi.",
    .m_size = -1,
};

static int (*const parts[])(PyObject *module) = {
    core_add_errors, core_add_tensor, core_add_stats,    core_add_ops,   core_add_compare,
    core_add_apart,  core_add_table,  core_add_page,     core_add_runs,  core_add_json,
    core_add_writer, core_add_guard,  core_add_expected, core_add_blame, core_add_whole,
    core_add_sketch, core_add_bench,
};

PyMODINIT_FUNC PyInit__core(void); /* Python declares it nowhere */

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module && i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i](module) < 0) {
            Py_DECREF(module);
            module = NULL;
        }
    return module;
}
