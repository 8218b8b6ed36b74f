/* Any checkpoint: a Megatron folder, a folder of files, or a file. */
#define _GNU_SOURCE
#include "task/checkpoint/checkpoint.h"

#include "format/format.h"
#include "run/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_SHARDS = 16384 }; /* files that one checkpoint is cut into */

/* The array, or a larger one in its place, with room for one more element; NULL when out of
 * memory. */
static void *grown(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    size_t more = *capacity ? *capacity * 2 : 64;
    void *bigger = more > SIZE_MAX / size ? NULL : realloc(array, more * size);
    if (bigger)
        *capacity = more;
    return bigger;
}

enum plumb_code checkpoint_add_run(struct checkpoint *ckpt, struct plumb_run *run)
{
    struct plumb_run **runs =
        grown(ckpt->runs, ckpt->run_count, &ckpt->run_capacity, sizeof(*runs));
    if (!runs) {
        plumb_run_free(run);
        return PLUMB_E_NOMEM;
    }
    ckpt->runs = runs;
    ckpt->runs[ckpt->run_count++] = run;
    return PLUMB_OK;
}

enum plumb_code checkpoint_add_fault(struct checkpoint *ckpt, const char *name, const char *what)
{
    struct checkpoint_fault fault = {
        .name = arena_copy(&ckpt->arena, name, strlen(name)),
        .what = arena_copy(&ckpt->arena, what, strlen(what)),
    };
    struct checkpoint_fault *faults =
        grown(ckpt->faults, ckpt->fault_count, &ckpt->fault_capacity, sizeof *faults);
    if (!faults)
        return PLUMB_E_NOMEM;
    ckpt->faults = faults;
    if (!fault.name || !fault.what)
        return PLUMB_E_NOMEM;
    ckpt->faults[ckpt->fault_count++] = fault;
    return PLUMB_OK;
}

enum plumb_code checkpoint_add_weight(struct checkpoint *ckpt, struct checkpoint_weight *weight)
{
    bool added;
    struct checkpoint_weight **weights =
        grown(ckpt->weights, ckpt->count, &ckpt->capacity, sizeof(*weights));
    if (!weights)
        return PLUMB_E_NOMEM;
    ckpt->weights = weights;
    uint64_t *place = map_put(&ckpt->names, weight->name, strlen(weight->name), &added);
    if (!place)
        return PLUMB_E_NOMEM;
    if (added) {
        *place = ckpt->count;
        ckpt->weights[ckpt->count++] = weight;
    } else if (ckpt->rules->last_wins) {
        ckpt->weights[*place] = weight;
    } else {
        struct checkpoint_weight *last = ckpt->weights[*place];
        /* One that can be compared is better than one that cannot. */
        if (last->problem && !weight->problem) {
            ckpt->weights[*place] = weight;
            return PLUMB_OK;
        }
        while (last->copy)
            last = last->copy;
        last->copy = weight;
    }
    return PLUMB_OK;
}

static const struct plumb_record *record_of(const struct checkpoint_part *part)
{
    return plumb_run_record(part->run, part->record);
}

static enum plumb_code refuse_join(struct checkpoint *ckpt, struct checkpoint_weight *weight,
                                   const struct checkpoint_part *part)
{
    char first[256], other[256];
    const struct plumb_record *a = record_of(&weight->parts[0]), *b = record_of(part);
    weight->problem = arena_printf(
        &ckpt->arena, "cannot be joined: %s has the shape %s, %s has %s", weight->parts[0].where,
        plumb_dims_text(a->ndim, a->shape, first, sizeof first), part->where,
        plumb_dims_text(b->ndim, b->shape, other, sizeof other));
    return weight->problem ? PLUMB_OK : PLUMB_E_NOMEM;
}

enum plumb_code checkpoint_shape(struct checkpoint *ckpt, struct checkpoint_weight *weight)
{
    unsigned axis = weight->join == CKPT_AXIS1 ? 1 : 0;
    const struct plumb_record *first = record_of(&weight->parts[0]);
    for (size_t i = 0; i < weight->count; i++) {
        const struct plumb_error *error = record_of(&weight->parts[i])->error;
        if (error) {
            char text[1024];
            weight->problem =
                arena_printf(&ckpt->arena, "%s", plumb_error_text(error, text, sizeof text));
            return weight->problem ? PLUMB_OK : PLUMB_E_NOMEM;
        }
    }
    weight->ndim = first->ndim;
    weight->shape = arena_array(&ckpt->arena, first->ndim, sizeof *weight->shape);
    if (!weight->shape)
        return PLUMB_E_NOMEM;
    if (first->ndim)
        memcpy(weight->shape, first->shape, first->ndim * sizeof *weight->shape);
    if (weight->join == CKPT_WHOLE) {
        weight->elements = first->count;
        return PLUMB_OK;
    }
    for (size_t i = 0; i < weight->count; i++) {
        const struct plumb_record *record = record_of(&weight->parts[i]);
        bool fits = record->ndim == first->ndim && record->ndim > axis;
        for (unsigned d = 0; fits && d < record->ndim; d++)
            fits = d == axis || record->shape[d] == first->shape[d];
        if (!fits)
            return refuse_join(ckpt, weight, &weight->parts[i]);
        if (record->shape[0] % 2 && weight->join == CKPT_GATED)
            weight->join = CKPT_AXIS0; /* no two halves after all */
        if (i && (__builtin_add_overflow(weight->shape[axis], record->shape[axis],
                                         &weight->shape[axis])))
            return refuse_join(ckpt, weight, &weight->parts[i]);
        weight->elements += record->count;
    }
    return PLUMB_OK;
}

/* -- Files ------------------------------------------------------------------------------------ */

static struct checkpoint_weight *record_weight(struct checkpoint *ckpt, const struct plumb_run *run,
                                               size_t index, const char *where)
{
    struct checkpoint_weight *weight = arena_alloc(&ckpt->arena, sizeof *weight);
    if (!weight)
        return NULL;
    weight->parts = arena_alloc(&ckpt->arena, sizeof *weight->parts);
    if (!weight->parts)
        return NULL;
    weight->name = plumb_run_record(run, index)->name;
    weight->parts[weight->count++] =
        (struct checkpoint_part){.run = run, .record = index, .where = where};
    return checkpoint_shape(ckpt, weight) ? NULL : weight;
}

/* Adds all tensors of a file; a name that another file had gets this file's name before it. */
static enum plumb_code add_tensors(struct checkpoint *ckpt, const struct plumb_run *run,
                                   const char *where)
{
    const char *dot = strrchr(where, '.');
    int stem = (int)(dot ? (size_t)(dot - where) : strlen(where));
    for (size_t i = 0; i < plumb_run_count(run); i++) {
        struct checkpoint_weight *weight = record_weight(ckpt, run, i, where);
        if (!weight)
            return PLUMB_E_NOMEM;
        if (map_get(&ckpt->names, weight->name, strlen(weight->name)))
            weight->name = arena_printf(&ckpt->arena, "%.*s.%s", stem, where, weight->name);
        if (!weight->name || checkpoint_add_weight(ckpt, weight))
            return PLUMB_E_NOMEM;
    }
    return PLUMB_OK;
}

/* The N and M of "model-0000N-of-0000M.safetensors". */
struct shard {
    const char *start; /* of the digits of N */
    size_t digits;
    unsigned long number, count;
};

static bool parse_shard(const char *name, struct shard *shard)
{
    for (const char *of = name; (of = strstr(of, "-of-")); of++) {
        const char *start = of;
        while (start > name && start[-1] >= '0' && start[-1] <= '9')
            start--;
        size_t total = strspn(of + 4, "0123456789");
        shard->digits = (size_t)(of - start);
        if (!shard->digits || shard->digits > 6 || shard->digits != total)
            continue;
        shard->start = start;
        shard->number = strtoul(start, NULL, 10);
        shard->count = strtoul(of + 4, NULL, 10);
        return shard->number >= 1 && shard->number <= shard->count && shard->count <= MAX_SHARDS;
    }
    return false;
}

/* Numbered files tell how many there are: those that are not are faults. */
static enum plumb_code find_missing(struct checkpoint *ckpt, const struct walk *walk)
{
    struct map names = {0};
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < walk->count && !code; i++)
        if (!map_put(&names, walk->entries[i].path, strlen(walk->entries[i].path), NULL))
            code = PLUMB_E_NOMEM;
    struct shard shard;
    for (size_t i = 0; i < walk->count && !code; i++) {
        const char *path = walk->entries[i].path;
        if (!format_is_promised_weights(path) || !parse_shard(path, &shard))
            continue;
        /* Each gap is reported by the file before it, and those at the beginning by the first. */
        unsigned long next = shard.number % shard.count + 1;
        for (size_t found = 0; !found && !code && next != shard.number;
             next = next % shard.count + 1) {
            char *name = arena_printf(&ckpt->arena, "%.*s%0*lu%s", (int)(shard.start - path), path,
                                      (int)shard.digits, next, shard.start + shard.digits);
            if (!name)
                code = PLUMB_E_NOMEM;
            else if (map_get(&names, name, strlen(name)))
                found = 1;
            else
                code = checkpoint_add_fault(ckpt, name, "this file is missing");
        }
    }
    map_free(&names);
    return code;
}

static enum plumb_code open_entry(struct checkpoint *ckpt, const struct walk_entry *entry,
                                  struct plumb_error *err)
{
    struct plumb_run *run = NULL;
    struct plumb_error why;
    char text[1024];
    const char *path = arena_printf(&ckpt->arena, "%s/%s", ckpt->path, entry->path);
    if (!path)
        return plumb_no_memory(err);
    enum plumb_code bad = entry->error ? entry->error->code : plumb_run_open(&run, path, &why);
    if (!bad)
        return checkpoint_add_run(ckpt, run) || add_tensors(ckpt, run, entry->path)
                   ? plumb_no_memory(err)
                   : PLUMB_OK;
    if (bad == PLUMB_E_NOMEM)
        return plumb_no_memory(err);
    if (!format_is_promised_weights(entry->path))
        return PLUMB_OK;
    plumb_error_text(entry->error ? entry->error : &why, text, sizeof text);
    return checkpoint_add_fault(ckpt, entry->path, text) ? plumb_no_memory(err) : PLUMB_OK;
}

static enum plumb_code open_folder(struct checkpoint *ckpt, struct plumb_error *err)
{
    struct walk walk = {.is_expected = format_is_promised_weights, .arena = &ckpt->arena};
    enum plumb_code code = walk_folder(&walk, ckpt->path, err);
    for (size_t i = 0; i < walk.count && !code; i++)
        code = open_entry(ckpt, &walk.entries[i], err);
    if (!code && find_missing(ckpt, &walk))
        code = plumb_no_memory(err);
    return code;
}

static enum plumb_code open_file(struct checkpoint *ckpt, struct plumb_error *err)
{
    struct plumb_run *run;
    const char *slash = strrchr(ckpt->path, '/');
    enum plumb_code code = plumb_run_open(&run, ckpt->path, err);
    if (code)
        return code;
    if (checkpoint_add_run(ckpt, run) || add_tensors(ckpt, run, slash ? slash + 1 : ckpt->path))
        return plumb_no_memory(err);
    return PLUMB_OK;
}

static enum plumb_code open_any(struct checkpoint *ckpt, struct plumb_error *err)
{
    struct stat st;
    const char *megatron = NULL;
    char endings[FORMAT_ENDINGS_BYTES];
    if (stat(ckpt->path, &st) != 0)
        return plumb_fail(err, PLUMB_E_IO, "cannot open it: %s", strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return open_file(ckpt, err);
    enum plumb_code code = checkpoint_find_megatron(ckpt, ckpt->path, &megatron, err);
    if (!code)
        code = megatron ? checkpoint_open_megatron(ckpt, megatron, err) : open_folder(ckpt, err);
    if (!code && !ckpt->count && ckpt->fault_count)
        return plumb_fail(err, PLUMB_E_FORMAT, "nothing in it can be read; %s: %s",
                          ckpt->faults[0].name, ckpt->faults[0].what);
    if (!code && !ckpt->count)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "no tensors here; give a Megatron checkpoint, or %s files",
                          format_endings(FORMAT_WEIGHTS, "or", endings, sizeof endings));
    return code;
}

enum plumb_code checkpoint_open(struct checkpoint *ckpt, const char *path,
                                const struct checkpoint_profile *rules, struct plumb_error *err)
{
    *ckpt = (struct checkpoint){.rules = rules};
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    ckpt->path = arena_copy(&ckpt->arena, path, length);
    enum plumb_code code = ckpt->path ? open_any(ckpt, err) : plumb_no_memory(err);
    if (code) {
        plumb_error_in_file(err, path);
        checkpoint_close(ckpt);
    }
    return code;
}

void checkpoint_close(struct checkpoint *ckpt)
{
    for (size_t i = 0; i < ckpt->run_count; i++)
        plumb_run_free(ckpt->runs[i]);
    map_free(&ckpt->names);
    free(ckpt->runs);
    free(ckpt->weights);
    free(ckpt->faults);
    arena_free(&ckpt->arena);
}
