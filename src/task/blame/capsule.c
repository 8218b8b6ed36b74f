/* A call alone, as a small dump of its own. */
#define _GNU_SOURCE
#include "task/blame/capsule.h"

#include "base/buf.h"
#include "base/json_put.h"
#include "base/output.h"
#include "dump/call_file.h"
#include "exec/values/tensor_file.h"
#include "run/run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The call -------------------------------------------------------------------------------- */

static bool is_name(const char *name, const char *wanted)
{
    const size_t length = strlen(name);
    return strncmp(wanted, name, length) == 0 &&
           (!wanted[length] || strcmp(wanted + length, ".forward") == 0 ||
            strcmp(wanted + length, ".backward") == 0);
}

/* Finds the call in the dumps of a run; it has to be in one of them only. */
static enum plumb_code find_call(struct capsule *c, const struct plumb_run *run,
                                 struct case_file **files, const char *call,
                                 struct plumb_error *err)
{
    size_t found = 0;
    char places[512] = "";
    for (size_t t = 0; t < run->tree_count; t++) {
        struct plumb_error why;
        if (run->trees[t].debug || case_file_open(run->trees[t].path, &files[t], &why))
            continue;
        for (size_t i = 0; i < case_count(files[t]); i++) {
            if (!is_name(case_place(files[t], i)->name, call))
                continue;
            c->tree = &run->trees[t];
            c->file = files[t];
            c->call = i;
            const size_t used = strlen(places);
            snprintf(places + used, sizeof places - used, "%s%s", found++ ? ", " : "",
                     run->trees[t].path);
        }
    }
    if (found > 1)
        return plumb_fail(err, PLUMB_E_ARG, "%zu calls are named %.200s; name one of these: %s",
                          found, call, places);
    return found ? PLUMB_OK : plumb_fail(err, PLUMB_E_ARG, "there is no call named %.200s", call);
}

/* ---- Its tensors ----------------------------------------------------------------------------- */

static enum plumb_code copy_file(const char *from, const char *to, struct plumb_error *err)
{
    struct plumb_file file;
    struct output out;
    enum plumb_code code = plumb_file_map(&file, from, 0, UINT64_MAX, err);
    if (code)
        return code;
    code = output_open(&out, to, err);
    if (!code) {
        struct plumb_file_guard guard;
        plumb_file_guard_enter(&guard, &file);
        code = output_bytes(&out, file.data, file.size, err);
        if (plumb_file_guard_leave(&guard) && !code)
            code = plumb_fail(err, PLUMB_E_IO, "it shrank while it was copied");
        if (code)
            output_discard(&out);
        else
            code = output_commit(&out, false, err);
    }
    plumb_file_unmap(&file);
    if (code)
        plumb_error_in_file(err, from);
    return code;
}

static enum plumb_code copy_tensor(struct capsule *c, const char *name, struct plumb_error *err)
{
    const char *data = case_data_dir(c->file);
    char from[PATH_MAX], to[PATH_MAX];
    bool added;
    if (!name || !data)
        return PLUMB_OK;
    if (!map_put(&c->copied, name, strlen(name), &added))
        return plumb_no_memory(err);
    if (!added)
        return PLUMB_OK;
    const int a = snprintf(from, sizeof from, "%s/%s", data, name);
    const int b = snprintf(to, sizeof to, "%s/%s/%s", c->folder, c->data, name);
    if (a < 0 || b < 0 || (size_t)a >= sizeof from || (size_t)b >= sizeof to || strchr(name, '/') ||
        !tensor_file_is_inside(data, from))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "the name of a data file, %.200s, leads out of the dump's folder", name);
    return copy_file(from, to, err);
}

static enum plumb_code copy_arg(struct capsule *c, const struct case_arg *arg,
                                struct plumb_error *err)
{
    enum plumb_code code = arg->tensor ? copy_tensor(c, arg->tensor->data_name, err) : PLUMB_OK;
    for (size_t k = 0; k < arg->n_items && !code; k++)
        code = copy_arg(c, &arg->items[k], err);
    return code;
}

static enum plumb_code copy_args(struct capsule *c, const struct case_arg *args, size_t n,
                                 struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < n && !code; k++)
        code = copy_arg(c, &args[k], err);
    return code;
}

static enum plumb_code copy_tensors(struct capsule *c, struct plumb_error *err)
{
    struct check_case from;
    struct case_results results = {0};
    enum plumb_code code = case_parse(c->file, c->call, &c->arena, &from, err);
    if (!code)
        code = case_parse_results(c->file, c->call, &c->arena, &results, err);
    if (!code)
        code = copy_args(c, from.args, from.n_args, err);
    for (size_t k = 0; !code && k < from.n_kwargs; k++)
        code = copy_arg(c, &from.kwargs[k].value, err);
    if (!code)
        code = copy_args(c, from.grads, from.n_grads, err);
    if (!code)
        code = copy_args(c, results.outputs, results.n_outputs, err);
    return code ? code : copy_args(c, results.grads, results.n_grads, err);
}

/* ---- Its texts ------------------------------------------------------------------------------- */

enum plumb_code capsule_save(const struct capsule *c, const char *name, struct buf *text,
                             struct plumb_error *err)
{
    char path[PATH_MAX];
    enum plumb_code code = PLUMB_OK;
    if (text->failed)
        code = plumb_no_memory(err);
    else if (snprintf(path, sizeof path, "%s/%s", c->folder, name) >= (int)sizeof path)
        code = plumb_fail(err, PLUMB_E_ARG, "the path of the folder is too long");
    if (!code)
        code = output_whole(path, text->data, text->size, false, err);
    buf_free(text);
    return code;
}

static void put_entry(struct buf *out, const struct capsule *c, const char *name,
                      const char *direction, uint64_t at, uint64_t size)
{
    struct buf key = {0};
    buf_printf(&key, "%s%s", name, direction);
    json_put_string(out, key.data ? key.data : "");
    buf_text(out, ": ");
    buf_append(out, c->file->bytes + at, (size_t)size);
    buf_free(&key);
}

/* The entries as they are in the file, under a head of our own. */
static enum plumb_code save_dump(struct capsule *c, struct plumb_error *err)
{
    const struct case_place *place = case_place(c->file, c->call);
    struct buf out = {0};
    struct plumb_file_guard guard;
    buf_printf(&out,
               "{\"task\": \"tensor\", \"level\": \"%s\", \"framework\": \"pytorch\", "
               "\"dump_data_dir\": \"%s\",\n \"data\": {\n  ",
               c->aten ? "aten" : "L1", c->data);
    plumb_file_guard_enter(&guard, &c->file->map);
    put_entry(&out, c, place->name, c->aten ? "" : ".forward", place->forward, place->forward_size);
    if (place->backward_size) {
        buf_text(&out, ",\n  ");
        put_entry(&out, c, place->name, ".backward", place->backward, place->backward_size);
    }
    if (plumb_file_guard_leave(&guard)) {
        buf_free(&out);
        return plumb_fail(err, PLUMB_E_IO, "the dump shrank while it was read");
    }
    buf_text(&out, "\n }}\n");
    return capsule_save(c, "dump.json", &out, err);
}

/* Where it was called from. */
static enum plumb_code save_stack(struct capsule *c, struct plumb_error *err)
{
    const struct case_place *place = case_place(c->file, c->call);
    struct buf out = {0}, name = {0};
    buf_printf(&name, "%s%s", place->name, c->aten ? "" : ".forward");
    const struct dump_api *api = name.data ? dump_named(c->tree, name.data, name.size) : NULL;
    const size_t stack = api ? api->stack : 0;
    buf_text(&out, "{\"0\": [[");
    json_put_string(&out, name.data ? name.data : "");
    buf_text(&out, "], [");
    const char *const *lines = stack ? c->tree->stacks[stack - 1] : NULL;
    c->source = source_line(lines);
    for (size_t k = 0; lines && lines[k]; k++) {
        buf_text(&out, k ? ",\n  " : "\n  ");
        json_put_string(&out, lines[k]);
    }
    buf_text(&out, "]]}\n");
    buf_free(&name);
    return capsule_save(c, "stack.json", &out, err);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static enum plumb_code make_folder(const char *path, struct plumb_error *err)
{
    if (mkdir(path, 0777) == 0)
        return PLUMB_OK;
    plumb_fail(err, PLUMB_E_IO, "cannot make the folder: %s", strerror(errno));
    plumb_error_in_file(err, path);
    return PLUMB_E_IO;
}

static enum plumb_code fill(struct capsule *c, struct plumb_error *err)
{
    const char *inside = arena_printf(&c->arena, "%s/%s", c->folder, c->data);
    const char *wanted = arena_printf(&c->arena, "%s/" EXPECTED, c->folder);
    enum plumb_code code = inside && wanted ? make_folder(c->folder, err) : plumb_no_memory(err);
    if (!code)
        code = make_folder(inside, err);
    if (!code)
        code = make_folder(wanted, err);
    if (!code)
        code = copy_tensors(c, err);
    if (!code)
        code = save_dump(c, err);
    if (!code)
        code = save_stack(c, err);
    return code ? code : capsule_facts(c, err);
}

/* Removes files of the folder, and the folder. */
static void empty_folder(const struct capsule *c, const char *inside, const struct map *names)
{
    char path[PATH_MAX];
    for (size_t k = 0; k < names->capacity; k++)
        if (names->slots[k].key && snprintf(path, sizeof path, "%s/%s/%s", c->folder, inside,
                                            names->slots[k].key) < (int)sizeof path)
            unlink(path);
    if (snprintf(path, sizeof path, "%s/%s", c->folder, inside) < (int)sizeof path)
        rmdir(path);
}

/* Takes back what fill() made. */
static void empty(struct capsule *c)
{
    static const char *const texts[] = {"dump.json", "stack.json", "capsule.json"};
    char path[PATH_MAX];
    empty_folder(c, c->data, &c->copied);
    empty_folder(c, EXPECTED, &c->expected);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (snprintf(path, sizeof path, "%s/%s", c->folder, texts[k]) < (int)sizeof path)
            unlink(path);
    rmdir(c->folder);
}

/* The folder has its name when all is in it, and not before. */
static enum plumb_code make_whole(struct capsule *c, const char *folder, struct plumb_error *err)
{
    const struct case_place *place = case_place(c->file, c->call);
    struct stat there;
    c->aten = strcmp(place->name, place->call) != 0;
    c->data = c->aten ? "dump" : "dump_tensor_data";
    c->folder = arena_printf(&c->arena, "%s.part%ld", folder, (long)getpid());
    if (!c->folder)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    if (lstat(folder, &there) == 0)
        code = plumb_fail(err, PLUMB_E_IO, "there is something of that name already");
    if (code) {
        plumb_error_in_file(err, folder);
        return code;
    }
    code = fill(c, err);
    if (!code && rename(c->folder, folder)) {
        code = plumb_fail(err, PLUMB_E_IO, "cannot give it its name: %s", strerror(errno));
        plumb_error_in_file(err, folder);
    }
    if (code)
        empty(c);
    return code;
}

enum plumb_code plumb_capsule_write(const char *target, const char *call, const char *folder,
                                    char **said, struct plumb_error *err)
{
    struct plumb_run *run = NULL;
    struct capsule c = {0};
    struct case_file **files = NULL;
    enum plumb_code code = plumb_op_ready(err);
    if (!code)
        code = plumb_run_open(&run, target, err);
    if (!code && !run->tree_count) {
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "it is no dump with recorded calls");
        plumb_error_in_file(err, target);
    }
    if (!code && !(files = calloc(run->tree_count + 1, sizeof *files)))
        code = plumb_no_memory(err);
    if (!code)
        code = find_call(&c, run, files, call, err);
    if (!code)
        code = make_whole(&c, folder, err);
    if (said)
        *said = code ? NULL : c.said.data;
    if (code || !said)
        buf_free(&c.said);
    for (size_t t = 0; files && t < run->tree_count; t++)
        case_file_close(files[t]);
    free(files);
    map_free(&c.copied);
    map_free(&c.expected);
    arena_free(&c.arena);
    plumb_run_free(run);
    return code;
}
