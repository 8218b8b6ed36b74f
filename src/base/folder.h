/* Folders that results go to. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include "plumb/error.h"

/* Makes sure that a folder is there, and those it lies in. */
enum plumb_code folder_make(const char *path, struct plumb_error *err);

/* The same for the folder that a file is to lie in. */
enum plumb_code folder_make_for(const char *file, struct plumb_error *err);

#endif
