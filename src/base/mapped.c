/* Whole files, mapped and under guard while they are read. */
#include "base/mapped.h"

enum plumb_code mapped_open(struct mapped *in, const char *path, struct plumb_error *err)
{
    in->path = path;
    enum plumb_code code = plumb_file_map(&in->file, path, 0, UINT64_MAX, err);
    if (!code)
        plumb_file_guard_enter(&in->guard, &in->file);
    return code;
}

enum plumb_code mapped_close(struct mapped *in, enum plumb_code code, struct plumb_error *err)
{
    if (plumb_file_guard_leave(&in->guard))
        code = mapped_fail_shrank(err);
    if (code)
        plumb_error_in_file(err, in->path);
    plumb_file_unmap(&in->file);
    return code;
}

enum plumb_code mapped_fail_shrank(struct plumb_error *err)
{
    return plumb_fail(err, PLUMB_E_IO, "the file became shorter while it was read");
}
