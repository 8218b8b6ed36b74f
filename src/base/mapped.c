/* Whole files, mapped and under guard while they are read. */
#include "base/mapped.h"

#include "base/held.h"

enum plumb_code mapped_open(struct mapped *in, const char *path, struct plumb_error *err)
{
    return mapped_open_held(in, NULL, path, err);
}

enum plumb_code mapped_open_held(struct mapped *in, struct holder *holder, const char *path,
                                 struct plumb_error *err)
{
    in->path = path;
    enum plumb_code code = holder ? holder_map(holder, path, &in->file, err)
                                  : plumb_file_map(&in->file, path, 0, UINT64_MAX, err);
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
