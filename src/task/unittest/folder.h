/* The folder that generated tests go to. Whoever runs pytest there runs every Python file in it, so
 * nothing that somebody else wrote may lie there. */
#ifndef UNITTEST_FOLDER_H
#define UNITTEST_FOLDER_H

#include "plumb/error.h"

/* What conftest.py begins with, so that it is known again. */
#define CONFTEST_MARK "\"\"\"Runs the recorded operators of the modules beside this file"
/* With a file of its own pytest looks for settings and conftest.py no further up: the folders above
 * came with the dump. */
#define SETTINGS_MARK "# Made by plumb jprof: pytest looks no further up than this folder.\n"

/* Makes the folder `wanted`, or `pytests` beside the dump, and removes what an earlier call left in
 * it. PLUMB_E_ARG when it holds something else that pytest would run, or is a link that came with
 * the dump. *folder is for free(), after a failure too. */
enum plumb_code tests_folder(char **folder, const char *wanted, const char *dump,
                             struct plumb_error *err);

#endif
