/* Globals that have no business in a file of tensors. */
#include "format/pickle_danger.h"

#include <stddef.h>
#include <string.h>

/* A name stands for itself and everything below it: "os" covers os.system and os.path.join. */
static const char *const dangerous[] = {
    "_ctypes",
    "_frozen_importlib",
    "_io.FileIO",
    "_io.open",
    "_operator.attrgetter",
    "_operator.itemgetter",
    "_operator.methodcaller",
    "_pickle",
    "_posixsubprocess",
    "_socket",
    "asyncio",
    "bdb",
    "cProfile",
    "cffi",
    "cloudpickle",
    "codeop",
    "commands",
    "ctypes",
    "dill",
    "ftplib",
    "http",
    "httplib",
    "imp",
    "importlib",
    "io.FileIO",
    "io.open",
    "marshal",
    "multiprocessing",
    "nt",
    "numpy.distutils",
    "numpy.f2py",
    "numpy.load",
    "numpy.testing",
    "operator.attrgetter",
    "operator.itemgetter",
    "operator.methodcaller",
    "os",
    "pdb",
    "pickle",
    "pkgutil",
    "popen2",
    "posix",
    "pty",
    "pydoc",
    "requests",
    "runpy",
    "shelve",
    "shutil",
    "smtplib",
    "socket",
    "subprocess",
    "sys",
    "telnetlib",
    "timeit",
    "torch.hub",
    "torch.load",
    "torch.serialization.load",
    "torch.utils.cpp_extension",
    "urllib",
    "webbrowser",
    "zipimport",
};

/* Of the builtins module, under its names of Python 3 and 2. */
static const char *const dangerous_builtins[] = {
    "__dict__", "__import__", "breakpoint", "compile", "delattr", "eval",    "exec", "execfile",
    "getattr",  "globals",    "input",      "locals",  "open",    "setattr", "vars",
};

/* What follows name and a dot in global; "" when global is name itself; NULL when it is neither. */
static const char *below(const char *global, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(global, name, length) != 0)
        return NULL;
    if (!global[length])
        return "";
    return global[length] == '.' ? global + length + 1 : NULL;
}

static bool is_listed(const char *global, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (below(global, names[i]))
            return true;
    return false;
}

bool pickle_is_dangerous(const char *global)
{
    const char *builtin = below(global, "builtins");
    if (!builtin)
        builtin = below(global, "__builtin__");
    if (builtin)
        return is_listed(builtin, dangerous_builtins,
                         sizeof dangerous_builtins / sizeof *dangerous_builtins);
    return is_listed(global, dangerous, sizeof dangerous / sizeof *dangerous);
}
