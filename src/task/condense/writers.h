/* Which processes have a file open for writing, by looking at all of them: for file systems that do
 * not give leases. */
#ifndef CONDENSE_WRITERS_H
#define CONDENSE_WRITERS_H

#include <sys/stat.h>

enum writers {
    WRITERS_NONE,
    WRITERS_SOME,
    WRITERS_UNKNOWN, /* a process of the file's owner does not let us look */
};

enum writers writers_of(const struct stat *file);

#endif
