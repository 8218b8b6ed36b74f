/* Saving the tensors of a failed call as .pt files. */
#define _GNU_SOURCE
#include "task/precheck/error_data.h"

#include "plumb/write.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Leaves room for what follows the name of the call, and for a temporary ending. */
enum { MAX_NAME = 128 };

struct saver {
    const struct error_data *data;
    char name[MAX_NAME + 1]; /* of the call, as a file's name may be */
    struct plumb_error *err;
    enum plumb_code code;
};

static void save_tensor(struct saver *saver, const char *what, size_t k,
                        const struct plumb_tensor *tensor)
{
    char path[4096];
    const int n =
        snprintf(path, sizeof path, "%s/%s.%s.%zu.pt", saver->data->folder, saver->name, what, k);
    if (n < 0 || (size_t)n >= sizeof path) {
        saver->code = plumb_fail(saver->err, PLUMB_E_ARG, "%s: the name of its data is too long",
                                 saver->data->name);
        return;
    }
    saver->code = plumb_pt_write(path, tensor, saver->err);
    if (saver->code == PLUMB_E_UNSUPPORTED) { /* 8-bit floats: a format that has them */
        struct plumb_writer *writer = NULL;
        snprintf(path, sizeof path, "%s/%s.%s.%zu.safetensors", saver->data->folder, saver->name,
                 what, k);
        saver->code = plumb_writer_open(&writer, path, NULL, saver->err);
        if (!saver->code &&
            (saver->code = plumb_writer_add(writer, "tensor", -1, tensor, saver->err)))
            plumb_writer_abort(writer);
        else if (!saver->code)
            saver->code = plumb_writer_close(writer, saver->err);
    }
}

/* Saves the tensors of an argument and counts its leaves. */
static void save_arg(struct saver *saver, const char *what, size_t *k, const struct plumb_arg *arg)
{
    if (saver->code)
        return;
    if (arg->kind == PLUMB_ARG_LIST) {
        for (size_t j = 0; j < arg->n_items; j++)
            save_arg(saver, what, k, &arg->items[j]);
        return;
    }
    if (arg->kind == PLUMB_ARG_TENSOR)
        save_tensor(saver, what, *k, arg->tensor);
    ++*k;
}

static void save_list(struct saver *saver, const char *what, const struct plumb_arg *args, size_t n)
{
    size_t k = 0;
    for (size_t j = 0; j < n; j++)
        save_arg(saver, what, &k, &args[j]);
}

/* A name of the dump as part of a file's name. */
static void make_plain(char *text)
{
    for (; *text; text++)
        if (*text == '/' || (unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '_';
}

static void save_kwargs(struct saver *saver)
{
    const struct plumb_call *call = saver->data->call;
    for (size_t j = 0; j < call->n_kwargs; j++) {
        char what[256];
        size_t k = 0;
        snprintf(what, sizeof what, "forward.kwargs.%.40s", call->kwargs[j].name);
        make_plain(what);
        save_arg(saver, what, &k, &call->kwargs[j].value);
    }
}

/* One that is there is ours, from a call before; a link is somebody else's. */
static enum plumb_code make_folder(const char *path, struct plumb_error *err)
{
    struct stat info;
    if (mkdir(path, 0777) == 0 ||
        (errno == EEXIST && lstat(path, &info) == 0 && S_ISDIR(info.st_mode)))
        return PLUMB_OK;
    plumb_fail(err, PLUMB_E_IO, "cannot make the folder: %s",
               errno == EEXIST ? "it is a link, or a file" : strerror(errno));
    plumb_error_in_file(err, path);
    return PLUMB_E_IO;
}

enum plumb_code error_data_save(const struct error_data *data, struct plumb_error *err)
{
    struct saver saver = {.data = data, .err = err};
    snprintf(saver.name, sizeof saver.name, "%s", data->name);
    make_plain(saver.name);
    saver.code = make_folder(data->folder, err);
    if (saver.code)
        return saver.code;
    save_list(&saver, "forward.input", data->call->args, data->call->n_args);
    save_kwargs(&saver);
    const struct plumb_result *sides[] = {data->bench, data->device};
    static const char *const forward[] = {"forward.output.bench", "forward.output.device"};
    static const char *const backward[] = {"backward.output.bench", "backward.output.device"};
    for (int side = 0; side < 2; side++) {
        if (!sides[side])
            continue;
        save_list(&saver, forward[side], sides[side]->outputs, sides[side]->n_outputs);
        if (data->call->n_grads)
            save_list(&saver, backward[side], sides[side]->grads, sides[side]->n_grads);
    }
    for (size_t k = 0; k < data->call->n_grads && !saver.code; k++)
        if (data->call->grads[k])
            save_tensor(&saver, "backward.input", k, data->call->grads[k]);
    return saver.code;
}

void error_data_clean(const char *folder)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const size_t length = strlen(entry->d_name);
        if (*entry->d_name == '.' && length > 4 && strcmp(entry->d_name + length - 4, ".tmp") == 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
}
