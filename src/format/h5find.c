/* Where the helper program is. */
#include "base/part.h"
#include "base/paths.h"
#include "format/h5proc.h"

#include <unistd.h>

/* The build tree's places, then an installed tree's. The module for Python lies two folders deeper
 * in the build tree, pip puts programs beside lib/pythonX.Y/site-packages, and a wheel has them in
 * a folder of the package. */
static const char *const places[] = {
    "plumb-h5",
    "../plumb-h5",
    "../../plumb-h5",
    "../libexec/plumb/plumb-h5",
    "../../libexec/plumb/plumb-h5",
    "../../../../libexec/plumb/plumb-h5",
    "../../../../bin/plumb-h5",
    "bin/plumb-h5",
    NULL,
};

enum plumb_code h5proc_find(char *path, size_t size, struct plumb_error *err)
{
    static const struct part helper = {.needed = "reading HDF5 needs the program plumb-h5",
                                       .variable = "PLUMB_H5",
                                       .places = places,
                                       .installed = PLUMB_LIBEXECDIR "/plumb-h5",
                                       .access = X_OK};
    return part_find(&helper, path, size, err);
}
