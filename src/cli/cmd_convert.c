/* plumb convert: a run as one file, or as a folder of arrays. */
#define _GNU_SOURCE
#include "base/folder.h"
#include "base/map.h"
#include "base/mapped.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "format/format.h"
#include "plumb/run.h"
#include "plumb/write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct convert_options {
    struct cli_common common;
    const char *source, *destination;
    bool force;
};

struct conversion {
    const struct plumb_run *run;
    const char *destination;
    bool force;
    bool many_steps, many_ranks; /* then they must be part of the names */
    int64_t rank;                /* the only one, or -1 */
    size_t written, skipped;
    struct progress progress;
    uint64_t done, total; /* bytes */
    struct arena arena;
    struct map names; /* of files made so far */
};

static void begin(struct conversion *conversion)
{
    for (size_t i = 0; i < plumb_run_count(conversion->run); i++)
        conversion->total += plumb_run_record(conversion->run, i)->bytes;
    progress_init(&conversion->progress, NULL);
}

static void note_done(struct conversion *conversion, size_t index)
{
    conversion->done += plumb_run_record(conversion->run, index)->bytes;
    progress_update(&conversion->progress, conversion->done, conversion->total);
}

static void look_at_steps_and_ranks(struct conversion *conversion)
{
    int64_t step = -1;
    for (size_t i = 0; i < plumb_run_count(conversion->run); i++) {
        const struct plumb_record *record = plumb_run_record(conversion->run, i);
        if (i == 0) {
            step = record->step;
            conversion->rank = record->rank;
        }
        conversion->many_steps |= record->step != step;
        conversion->many_ranks |= record->rank != conversion->rank;
    }
    if (conversion->many_ranks)
        conversion->rank = -1;
}

/* How much of a name is the rank that an earlier conversion put there: "rank1/". */
static size_t rank_in_name(const char *name)
{
    size_t digits = strncmp(name, "rank", 4) == 0 ? strspn(name + 4, "0123456789") : 0;
    return digits && name[4 + digits] == '/' ? 4 + digits + 1 : 0;
}

/* "rank1/2/name": as much of it as tells the tensors of this run apart. NULL when out of memory. */
static const char *full_name(struct conversion *conversion, const struct plumb_record *record,
                             bool with_step)
{
    char rank[32] = "", step[32] = "";
    if (conversion->many_ranks && record->rank >= 0)
        snprintf(rank, sizeof rank, "rank%" PRId64 "/", record->rank);
    if (with_step && conversion->many_steps && record->step >= 0)
        snprintf(step, sizeof step, "%" PRId64 "/", record->step);
    size_t before = *rank ? 0 : rank_in_name(record->name);
    return arena_printf(&conversion->arena, "%s%.*s%s%s", rank, (int)before, record->name, step,
                        record->name + before);
}

static void skip(struct conversion *conversion, const char *name, const struct plumb_error *err)
{
    char text[1024];
    progress_end(&conversion->progress);
    cli_message("%s: not converted: %s", name, plumb_error_text(err, text, sizeof text));
    conversion->skipped++;
}

/* -- A folder of .npy files ----------------------------------------------------------------- */

/* Makes a folder, or finds it. Below the destination no link is followed: it may lead anywhere. */
static enum plumb_code make_folder(const char *path, bool below, struct plumb_error *err)
{
    struct stat info;
    enum plumb_code code = folder_make(path, err);
    if (code)
        return code;
    if (below && lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        return plumb_fail(err, PLUMB_E_ARG, "%s is a link, which is not followed", path);
    return PLUMB_OK;
}

/* Makes a path below the destination of a tensor's name, and the folders on the way. Names come
 * from strangers: no part may lead out of the destination. */
static enum plumb_code npy_path(struct conversion *conversion, const char *name, struct buf *path,
                                struct plumb_error *err)
{
    buf_text(path, conversion->destination);
    while (path->size > 1 && path->data[path->size - 1] == '/')
        path->data[--path->size] = '\0';
    size_t top = path->size;
    while (*name) {
        size_t length = strcspn(name, "/");
        if (length == 2 && !memcmp(name, "..", 2))
            return plumb_fail(err, PLUMB_E_ARG, "a name with '..' cannot be a file name");
        if (length && !(length == 1 && *name == '.')) {
            enum plumb_code code =
                path->failed ? PLUMB_OK : make_folder(path->data, path->size > top, err);
            if (code)
                return code;
            buf_text(path, "/");
            for (size_t i = 0; i < length; i++) {
                char c = (unsigned char)name[i] < 0x20 || name[i] == 0x7f ? '_' : name[i];
                buf_append(path, &c, 1);
            }
        }
        name += length + (name[length] == '/');
    }
    if (path->size == top)
        return plumb_fail(err, PLUMB_E_ARG, "the name has nothing that could be a file name");
    buf_text(path, ".npy");
    if (path->failed)
        return plumb_no_memory(err);
    return PLUMB_OK;
}

static enum plumb_code check_free(const char *path, struct plumb_error *err)
{
    if (!faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW))
        return plumb_fail(err, PLUMB_E_ARG, "%s exists; --force replaces it", path);
    return PLUMB_OK;
}

static enum plumb_code claim(struct conversion *conversion, const char *path,
                             struct plumb_error *err)
{
    bool added = false;
    const char *copy = arena_copy(&conversion->arena, path, strlen(path));
    if (!copy || !map_put(&conversion->names, copy, strlen(copy), &added))
        return plumb_no_memory(err);
    if (!added)
        return plumb_fail(err, PLUMB_E_ARG, "another tensor was already written to %s", path);
    return conversion->force ? PLUMB_OK : check_free(path, err);
}

static enum plumb_code write_npy(struct conversion *conversion, size_t index, const char *name,
                                 struct plumb_error *err)
{
    struct buf path = {0};
    struct plumb_payload payload;
    struct plumb_file_guard guard;
    enum plumb_code code = npy_path(conversion, name, &path, err);
    if (!code)
        code = claim(conversion, path.data, err);
    if (!code)
        code = plumb_run_load(conversion->run, index, &payload, err);
    if (code)
        goto out;
    plumb_file_guard_enter(&guard, &payload.file);
    code = (conversion->force ? plumb_npy_write : plumb_npy_write_new)(path.data, &payload.tensor,
                                                                       err);
    if (plumb_file_guard_leave(&guard)) {
        if (!code)
            unlink(path.data);
        code = mapped_fail_shrank(err);
    }
    plumb_payload_release(&payload);
out:
    buf_free(&path);
    return code;
}

static enum plumb_code to_folder(struct conversion *conversion, struct plumb_error *err)
{
    for (size_t i = 0; i < plumb_run_count(conversion->run); i++) {
        const struct plumb_record *record = plumb_run_record(conversion->run, i);
        const char *name = full_name(conversion, record, true);
        if (!name)
            return plumb_no_memory(err);
        if (record->error) {
            skip(conversion, record->name, record->error);
            continue;
        }
        struct plumb_error problem;
        if (write_npy(conversion, i, name, &problem))
            skip(conversion, record->name, &problem);
        else
            conversion->written++;
        note_done(conversion, i);
    }
    return PLUMB_OK;
}

/* -- One container -------------------------------------------------------------------------- */

/* Fails only when the file as a whole is lost; a tensor that cannot be read, or that the format
 * does not take, is skipped. */
static enum plumb_code add_to_container(struct conversion *conversion, struct plumb_writer *writer,
                                        bool hdf5, size_t index, struct plumb_error *err)
{
    const struct plumb_record *record = plumb_run_record(conversion->run, index);
    struct plumb_payload payload;
    struct plumb_file_guard guard;
    if (record->error) {
        skip(conversion, record->name, record->error);
        return PLUMB_OK;
    }
    const char *name = full_name(conversion, record, !hdf5);
    if (!name)
        return plumb_no_memory(err);
    if (plumb_run_load(conversion->run, index, &payload, err)) {
        skip(conversion, record->name, err);
        return PLUMB_OK;
    }
    plumb_file_guard_enter(&guard, &payload.file);
    plumb_writer_call(writer, (int64_t)record->path_call - 1);
    enum plumb_code code =
        plumb_writer_add(writer, name, hdf5 ? record->step : -1, &payload.tensor, err);
    if (plumb_file_guard_leave(&guard))
        code = plumb_fail(err, PLUMB_E_IO, "%s was cut short while it was read", record->path);
    plumb_payload_release(&payload);
    if (code == PLUMB_E_ARG || code == PLUMB_E_UNSUPPORTED) {
        skip(conversion, record->name, err);
        return PLUMB_OK;
    }
    conversion->written += !code;
    return code;
}

static enum plumb_code to_container(struct conversion *conversion, struct plumb_error *err)
{
    bool hdf5 = format_written(conversion->destination) == &format_hdf5;
    struct plumb_writer_options options = {.global_rank = conversion->rank,
                                           .local_rank = conversion->rank,
                                           .keep = !conversion->force};
    struct plumb_writer *writer;
    enum plumb_code code = conversion->force ? PLUMB_OK : check_free(conversion->destination, err);
    if (code)
        return code;
    code = plumb_writer_open(&writer, conversion->destination, &options, err);
    if (code)
        return code;
    for (size_t i = 0; !code && i < plumb_run_count(conversion->run); i++) {
        code = add_to_container(conversion, writer, hdf5, i, err);
        note_done(conversion, i);
    }
    if (code || !conversion->written) {
        plumb_writer_abort(writer);
        return code;
    }
    return plumb_writer_close(writer, err);
}

/* -- The command ---------------------------------------------------------------------------- */

/* A destination without an ending, or one that says so, is a folder. */
static bool is_folder_name(const char *path)
{
    struct stat info;
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    return !*base || !strchr(base + 1, '.') || (!stat(path, &info) && S_ISDIR(info.st_mode));
}

static int run_convert(const void *context)
{
    const struct convert_options *options = context;
    struct conversion conversion = {
        .destination = options->destination, .force = options->force, .rank = -1};
    struct plumb_run *run = NULL;
    struct plumb_error err;
    char endings[FORMAT_ENDINGS_BYTES];
    const struct format *container = format_written(options->destination);
    if (!*options->destination || (!container && !is_folder_name(options->destination)))
        return cli_usage(&cmd_convert, "'%s' does not end in %s, nor is it a folder",
                         options->destination,
                         format_endings(FORMAT_WRITTEN, "or", endings, sizeof endings));
    int status = CLI_UNUSABLE;
    enum plumb_code code = plumb_run_open(&run, options->source, &err);
    if (code)
        goto out;
    cli_say_warnings(run);
    conversion.run = run;
    look_at_steps_and_ranks(&conversion);
    begin(&conversion);
    code = container ? to_container(&conversion, &err) : to_folder(&conversion, &err);
    progress_end(&conversion.progress);
    if (!code && !conversion.written)
        code =
            plumb_fail(&err, PLUMB_E_ARG, "%s: nothing that could be converted", options->source);
    if (code)
        goto out;
    printf("%zu tensor%s written to %s\n", conversion.written, conversion.written == 1 ? "" : "s",
           options->destination);
    if (conversion.skipped)
        cli_message("%zu of %zu tensors were not converted", conversion.skipped,
                    plumb_run_count(run));
    status = conversion.skipped ? CLI_BAD : CLI_OK;
out:
    if (code)
        cli_report(&err);
    map_free(&conversion.names);
    arena_free(&conversion.arena);
    plumb_run_free(run);
    return status;
}

static const struct args_option convert_arguments[] = {
    {.names = {"SRC"},
     .kind = ARGS_PATH,
     .offset = offsetof(struct convert_options, source),
     .help = "a tensor file, or a folder of such files"},
    {.names = {"DST"},
     .kind = ARGS_PATH,
     .offset = offsetof(struct convert_options, destination),
     .help = "FILE.safetensors, FILE.h5, or a folder (.npy)"},
    {.names = {"--force"},
     .kind = ARGS_FLAG,
     .offset = offsetof(struct convert_options, force),
     .help = "replace files that exist"},
    {.names = {NULL}},
};

static const struct args_set convert_sets[] = {
    {"Arguments", convert_arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example convert_examples[] = {
    {"plumb convert model.pt model.safetensors", "without running a line of its pickle"},
    {"plumb convert dump.h5 dump/", "a folder of .npy files, for numpy"},
    {"plumb convert dump/ dump.h5", "a folder into one file"},
    {NULL, NULL},
};

const struct args_command cmd_convert = {
    .name = "convert",
    .summary = "write the tensors of a run in another format",
    .usage = "SRC DST [options]",
    .about = "Writes every tensor of a run into one .safetensors or .h5 file, or into a folder of "
             ".npy files, bit by bit. Steps and ranks become part of the names where there are "
             "several; in .h5, steps are groups.",
    .sets = convert_sets,
    .examples = convert_examples,
    .exits = "0 when everything was converted\n"
             "1 when some tensors could not be\n"
             "2 when nothing could be, or the command line is unusable",
    .size = sizeof(struct convert_options),
    .run = run_convert,
};
