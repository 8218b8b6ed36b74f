/* The C side of the Python package; python/plumb/_core.pyi says what it offers. */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <Python.h>

#endif
