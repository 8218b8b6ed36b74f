/* Writing tensors into a container, whichever its name asks for. */
#define _GNU_SOURCE
#include "format/format.h"
#include "format/writer.h"

#include <stdlib.h>

enum plumb_code plumb_writer_open(struct plumb_writer **writer, const char *path,
                                  const struct plumb_writer_options *options,
                                  struct plumb_error *err)
{
    static const struct plumb_writer_options defaults = {.global_rank = -1, .local_rank = -1};
    const struct format *format = format_written(path);
    char endings[FORMAT_ENDINGS_BYTES];
    options = options ? options : &defaults;
    char *target = options->keep ? NULL : realpath(path, NULL); /* a link stays a link */
    enum plumb_code code =
        format ? format->write(writer, target ? target : path, options, err)
               : plumb_fail(err, PLUMB_E_ARG, "plumb writes files that end in %s",
                            format_endings(FORMAT_WRITTEN, "or", endings, sizeof endings));
    free(target);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}

enum plumb_code plumb_writer_add(struct plumb_writer *writer, const char *name, int64_t step,
                                 const struct plumb_tensor *tensor, struct plumb_error *err)
{
    if (!*name)
        return plumb_fail(err, PLUMB_E_ARG, "a tensor needs a name");
    enum plumb_code code = writer->ops->add(writer, name, step, tensor, err);
    if (code && code != PLUMB_E_ARG && code != PLUMB_E_UNSUPPORTED)
        writer->failed = code;
    return code;
}

void plumb_writer_call(struct plumb_writer *writer, int64_t call)
{
    writer->path_call = call < 0 || call >= UINT32_MAX ? 0 : (uint32_t)call + 1;
}

enum plumb_code plumb_writer_sync(struct plumb_writer *writer, struct plumb_error *err)
{
    if (writer->failed)
        return plumb_fail(err, writer->failed, "a tensor could not be written");
    enum plumb_code code = writer->ops->sync ? writer->ops->sync(writer, err) : PLUMB_OK;
    if (code)
        writer->failed = code;
    return code;
}

enum plumb_code plumb_writer_close(struct plumb_writer *writer, struct plumb_error *err)
{
    enum plumb_code failed = writer->failed;
    if (!failed)
        return writer->ops->close(writer, err);
    writer->ops->abort(writer);
    return plumb_fail(err, failed, "not finished, because a tensor could not be written");
}

void plumb_writer_abort(struct plumb_writer *writer)
{
    if (writer)
        writer->ops->abort(writer);
}
