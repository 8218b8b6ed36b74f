/* Finding and opening the mp_rank folders of a Megatron checkpoint. */
#define _GNU_SOURCE
#include "task/checkpoint/parts.h"

#include "format/pt_scalar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRACKER "latest_checkpointed_iteration.txt"
#define PART_FILE "model_optim_rng.pt"

enum { MAX_PARTS = 16384, MAX_DIGITS = 9 };

/* A folder mp_rank_A, mp_rank_A_B or mp_rank_A_B_C. */
struct folder {
    char name[64];
    unsigned fields;
    size_t value[3];
};

struct folders {
    struct folder *list;
    size_t count, capacity;
    int64_t newest; /* the largest N of folders iter_N, or -1 */
};

static bool parse_folder(const char *name, struct folder *folder)
{
    static const char start[] = "mp_rank_";
    *folder = (struct folder){0};
    if (strncmp(name, start, sizeof start - 1) != 0 || strlen(name) >= sizeof folder->name)
        return false;
    memcpy(folder->name, name, strlen(name) + 1);
    const char *c = name + sizeof start - 1;
    while (folder->fields < 3) {
        size_t digits = strspn(c, "0123456789");
        if (!digits || digits > MAX_DIGITS)
            return false;
        folder->value[folder->fields++] = strtoul(c, NULL, 10);
        c += digits;
        if (*c != '_')
            break;
        c++;
    }
    return !*c;
}

static int64_t parse_iteration(const char *name)
{
    if (strncmp(name, "iter_", 5) != 0)
        return -1;
    size_t digits = strspn(name + 5, "0123456789");
    return digits == 7 && !name[12] ? (int64_t)strtol(name + 5, NULL, 10) : -1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct folder *)a)->name, ((const struct folder *)b)->name);
}

/* The folders of parts and iterations in path; a path that is no folder has none. */
static enum plumb_code scan(struct folders *folders, const char *path)
{
    *folders = (struct folders){.newest = -1};
    DIR *dir = opendir(path);
    if (!dir)
        return PLUMB_OK;
    enum plumb_code code = PLUMB_OK;
    for (const struct dirent *entry; !code && (entry = readdir(dir));) {
        struct folder folder;
        int64_t iteration = parse_iteration(entry->d_name);
        if (iteration > folders->newest)
            folders->newest = iteration;
        if (!parse_folder(entry->d_name, &folder) || folders->count == MAX_PARTS)
            continue;
        if (folders->count == folders->capacity) {
            size_t capacity = folders->capacity ? folders->capacity * 2 : 16;
            struct folder *list = realloc(folders->list, capacity * sizeof *list);
            if (!list) {
                code = PLUMB_E_NOMEM;
                break;
            }
            folders->list = list;
            folders->capacity = capacity;
        }
        folders->list[folders->count++] = folder;
    }
    closedir(dir);
    if (folders->count)
        qsort(folders->list, folders->count, sizeof *folders->list, by_name);
    return code;
}

/* What latest_checkpointed_iteration.txt names: "iter_0000010" or "release". */
static enum plumb_code read_tracker(const char *path, char *name, size_t size, bool *there,
                                    struct plumb_error *err)
{
    char text[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *there = fd >= 0;
    if (fd < 0)
        return PLUMB_OK;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got < 0)
        return plumb_fail(err, PLUMB_E_IO, "cannot read it: %s", strerror(errno));
    text[got] = '\0';
    const char *start = text + strspn(text, " \t\r\n");
    size_t length = strcspn(start, " \t\r\n"), digits = strspn(start, "0123456789");
    if (digits && digits == length && digits <= MAX_DIGITS)
        snprintf(name, size, "iter_%07ld", strtol(start, NULL, 10));
    else if (length == 7 && memcmp(start, "release", 7) == 0)
        snprintf(name, size, "release");
    else
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "neither the number of an iteration nor 'release'; give the folder of "
                          "the iteration itself");
    return PLUMB_OK;
}

enum plumb_code checkpoint_find_megatron(struct checkpoint *ckpt, const char *path,
                                         const char **folder, struct plumb_error *err)
{
    struct folders folders = {0};
    char name[32];
    bool tracked = false;
    *folder = NULL;
    const char *tracker = arena_printf(&ckpt->arena, "%s/%s", path, TRACKER);
    if (!tracker)
        return plumb_no_memory(err);
    enum plumb_code code = read_tracker(tracker, name, sizeof name, &tracked, err);
    if (code) {
        plumb_error_in_file(err, tracker);
        return code;
    }
    if (scan(&folders, path))
        code = plumb_no_memory(err);
    if (code || (!tracked && folders.count)) {
        *folder = path;
        goto out;
    }
    if (!tracked && folders.newest < 0)
        goto out;
    if (!tracked)
        snprintf(name, sizeof name, "iter_%07ld", (long)folders.newest);
    *folder = arena_printf(&ckpt->arena, "%s/%s", path, name);
    free(folders.list);
    if (!*folder || scan(&folders, *folder))
        code = plumb_no_memory(err);
    else if (!folders.count)
        code = plumb_fail(err, PLUMB_E_FORMAT, "%s has no folders mp_rank_* with parts%s", *folder,
                          tracked ? ", though " TRACKER " names it" : "");
out:
    free(folders.list);
    return code;
}

/* The sizes that the names of the folders show. */
static void sizes_of_folders(struct sizes *sizes, const struct folders *folders)
{
    *sizes = (struct sizes){.tp = 1, .pp = 1, .ep = 1};
    size_t *field[3] = {&sizes->tp, &sizes->pp, &sizes->ep};
    for (size_t i = 0; i < folders->count; i++)
        for (unsigned f = 0; f < folders->list[i].fields && f < 3; f++)
            if (folders->list[i].value[f] >= *field[f])
                *field[f] = folders->list[i].value[f] + 1;
}

static char *part_path(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s/%s", folder, name, PART_FILE) < 0 ? NULL : path;
}

/* The arguments of the training run, as the first part that can be read has them. */
static enum plumb_code read_sizes(struct sizes *sizes, const char *folder,
                                  const struct folders *folders, struct plumb_error *err)
{
    sizes_of_folders(sizes, folders);
    struct pt_scalar scalars[] = {
        {.path = "args.tensor_model_parallel_size"},
        {.path = "args.pipeline_model_parallel_size"},
        {.path = "args.expert_model_parallel_size"},
        {.path = "args.num_experts"},
        {.path = "args.swiglu"},
    };
    enum { SCALARS = sizeof scalars / sizeof *scalars };
    bool stated = false;
    for (size_t i = 0; i < folders->count && !stated; i++) {
        struct plumb_error ignored; /* opening the part will say it again */
        char *path = part_path(folder, folders->list[i].name);
        if (!path)
            return plumb_no_memory(err);
        stated = !pt_read_scalars(path, scalars, SCALARS, &ignored);
        free(path);
    }
    size_t *field[] = {&sizes->tp, &sizes->pp, &sizes->ep};
    size_t all = 1;
    if (stated && scalars[0].found)
        for (size_t i = 0; i < 3; i++)
            *field[i] = scalars[i].found && scalars[i].value > 0 ? (size_t)scalars[i].value : 1;
    for (size_t i = 0; i < 3; i++) {
        if (*field[i] > MAX_PARTS / all)
            return plumb_fail(err, PLUMB_E_FORMAT,
                              "%zu x %zu x %zu parts are more than any checkpoint has; %zu are "
                              "here",
                              sizes->tp, sizes->pp, sizes->ep, folders->count);
        all *= *field[i];
    }
    if (stated && scalars[3].found && scalars[3].value > 0)
        sizes->experts = scalars[3].value;
    sizes->gated = stated && scalars[4].found && scalars[4].value;
    return PLUMB_OK;
}

/* Which part a folder is: its second number is the pipeline's rank, unless there is only one. */
static bool locate(const struct sizes *sizes, const struct folder *folder, size_t *index)
{
    size_t tp = folder->value[0], pp = folder->value[1], ep = folder->value[2];
    if (folder->fields == 2 && sizes->pp == 1 && sizes->ep > 1) {
        ep = pp;
        pp = 0;
    }
    *index = (ep * sizes->pp + pp) * sizes->tp + tp;
    return tp < sizes->tp && pp < sizes->pp && ep < sizes->ep;
}

static enum plumb_code open_part(struct checkpoint *ckpt, const char *folder, struct part *part,
                                 struct plumb_error *err)
{
    struct plumb_run *run = NULL;
    struct plumb_error why;
    struct stat st;
    char *path = part_path(folder, part->where);
    if (!path)
        return plumb_no_memory(err);
    enum plumb_code code;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        code = plumb_fail(&why, PLUMB_E_UNSUPPORTED, "%s is a link, which plumb does not follow",
                          PART_FILE);
    else
        code = plumb_run_open(&run, path, &why);
    if (!code) {
        code = checkpoint_add_run(ckpt, run);
        part->run = code ? NULL : run;
    } else if (code != PLUMB_E_NOMEM) {
        char text[1024];
        code = checkpoint_add_fault(ckpt, part->where, plumb_error_text(&why, text, sizeof text));
    }
    if (code)
        plumb_no_memory(err);
    free(path);
    return code;
}

/* The name that the folder of a part would have. */
static const char *expected_name(struct checkpoint *ckpt, const struct sizes *sizes,
                                 const struct part *part)
{
    char pp[32] = "", ep[32] = "";
    if (sizes->pp > 1)
        snprintf(pp, sizeof pp, "_%03zu", part->pp);
    if (sizes->ep > 1)
        snprintf(ep, sizeof ep, "_%03zu", part->ep);
    return arena_printf(&ckpt->arena, "mp_rank_%02zu%s%s", part->tp, pp, ep);
}

/* Gives each part the folder that is its own. */
static enum plumb_code assign_folders(struct parts *parts, struct checkpoint *ckpt,
                                      const struct folders *folders)
{
    const struct sizes *sizes = &parts->sizes;
    for (size_t i = 0; i < folders->count; i++) {
        const char *name = folders->list[i].name, *what = NULL;
        size_t index;
        if (!locate(sizes, &folders->list[i], &index))
            what = arena_printf(&ckpt->arena,
                                "not used: the sizes are %zu (tensor) x %zu (pipeline) x %zu "
                                "(expert)",
                                sizes->tp, sizes->pp, sizes->ep);
        else if (parts->list[index].where)
            what = arena_printf(&ckpt->arena, "not used: %s is the same part",
                                parts->list[index].where);
        else if ((parts->list[index].where = arena_copy(&ckpt->arena, name, strlen(name))))
            continue;
        if (!what || checkpoint_add_fault(ckpt, name, what))
            return PLUMB_E_NOMEM;
    }
    return PLUMB_OK;
}

static enum plumb_code open_all(struct parts *parts, struct checkpoint *ckpt, const char *folder,
                                struct plumb_error *err)
{
    const struct sizes *sizes = &parts->sizes;
    enum plumb_code code = PLUMB_OK;
    size_t opened = 0;
    for (size_t i = 0; i < parts->count && !code; i++) {
        struct part *part = &parts->list[i];
        part->tp = i % sizes->tp;
        part->pp = i / sizes->tp % sizes->pp;
        part->ep = i / sizes->tp / sizes->pp;
        if (part->where) {
            code = open_part(ckpt, folder, part, err);
        } else {
            part->where = expected_name(ckpt, sizes, part);
            if (!part->where || checkpoint_add_fault(ckpt, part->where, "this part is missing"))
                code = plumb_no_memory(err);
        }
        opened += part->run != NULL;
    }
    if (!code && !opened)
        code = plumb_fail(err, PLUMB_E_FORMAT, "none of its %zu parts can be read; %s: %s",
                          parts->count, ckpt->faults[0].name, ckpt->faults[0].what);
    return code;
}

enum plumb_code parts_open(struct parts *parts, struct checkpoint *ckpt, const char *folder,
                           struct plumb_error *err)
{
    struct folders folders = {0};
    enum plumb_code code = scan(&folders, folder) ? plumb_no_memory(err) : PLUMB_OK;
    if (!code)
        code = read_sizes(&parts->sizes, folder, &folders, err);
    if (code)
        goto out;
    parts->count = parts->sizes.tp * parts->sizes.pp * parts->sizes.ep;
    parts->list = arena_array(&ckpt->arena, parts->count, sizeof *parts->list);
    if (!parts->list || assign_folders(parts, ckpt, &folders)) {
        code = plumb_no_memory(err);
        goto out;
    }
    code = open_all(parts, ckpt, folder, err);
out:
    free(folders.list);
    if (code)
        plumb_error_in_file(err, folder);
    return code;
}
