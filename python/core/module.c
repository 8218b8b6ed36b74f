#include "core.h"

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "plumb._core",
    .m_doc = "The C side of plumb for Python; see _core.pyi.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModule_Create(&definition);
}
