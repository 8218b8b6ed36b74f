/* Operators of which no unit tests are made. */
#include "task/unittest/blacklist.h"

#include "base/mapped.h"
#include "plumb/file.h"

#include <stdlib.h>
#include <string.h>

/* Read and write files of any name: a stranger's dump must not get there. */
static const char *const never[] = {"aten.from_file", "aten.save", NULL};

/* Random numbers, memory as it is found, and operators whose result depends on the order in which
 * threads get there, at least when indices repeat, as generated ones do. */
static const char *const builtin[] = {
    "aten.bernoulli*",
    "aten.binomial",
    "aten.cauchy*",
    "aten.dropout*",
    "aten.alpha_dropout*",
    "aten.feature_dropout*",
    "aten.feature_alpha_dropout*",
    "aten.native_dropout",
    "aten._fused_dropout",
    "aten.empty*",
    "aten._empty_affine_quantized*",
    "aten.exponential*",
    "aten.geometric*",
    "aten.log_normal*",
    "aten.multinomial*",
    "aten.new_empty*",
    "aten.normal",
    "aten.normal_*",
    "aten.poisson",
    "aten.rand",
    "aten.rand_like",
    "aten.randint*",
    "aten.randn*",
    "aten.random*",
    "aten.randperm*",
    "aten.resize*",
    "aten.rrelu*",
    "aten._sample_dirichlet",
    "aten._standard_gamma",
    "aten.set_",
    "aten.uniform*",
    "aten._flash_attention*",
    "aten._efficient_attention*",
    "aten._scaled_dot_product_flash_attention*",
    "aten._scaled_dot_product_efficient_attention*",
    "aten.index_copy*",
    "aten.index_put*",
    "aten._index_put_impl_",
    "aten._unsafe_index_put",
    "aten.put",
    "aten.put_",
    "aten.scatter",
    "aten.scatter_",
    NULL,
};

/* name stands for op when it is op, or all of it before a dot; with a star, when op begins so. */
static bool stands_for(const char *name, const char *op, size_t length)
{
    size_t size = strlen(name);
    bool star = size && name[size - 1] == '*';
    size -= star;
    return size && size <= length && memcmp(name, op, size) == 0 &&
           (star || size == length || op[size] == '.');
}

static bool listed(const char *const *names, size_t count, const char *op, size_t length)
{
    const char *dot = memchr(op, '.', length);
    size_t space = dot ? (size_t)(dot - op) + 1 : 0; /* of "aten." */
    for (size_t i = 0; i < count && names[i]; i++)
        if (stands_for(names[i], op, length) || stands_for(names[i], op + space, length - space))
            return true;
    return false;
}

static enum plumb_code read_names(struct blacklist *list, const struct plumb_file *file,
                                  struct plumb_error *err)
{
    const char *text = (const char *)file->data, *end = text + file->size;
    size_t capacity = 0;
    for (const char *line = text, *next; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        const char *comment = memchr(line, '#', (size_t)(stop - line));
        stop = comment ? comment : stop;
        while (line < stop && (*line == ' ' || *line == '\t' || *line == '\r'))
            line++;
        while (line < stop && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
            stop--;
        if (line == stop)
            continue;
        if (list->count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            const char **names = realloc(list->names, capacity * sizeof *names);
            if (!names)
                return plumb_no_memory(err);
            list->names = names;
        }
        const char *name = arena_copy(&list->arena, line, (size_t)(stop - line));
        if (!name)
            return plumb_no_memory(err);
        list->names[list->count++] = name;
    }
    return PLUMB_OK;
}

enum plumb_code blacklist_open(struct blacklist *list, bool enabled, const char *path,
                               struct plumb_error *err)
{
    *list = (struct blacklist){.builtin = enabled && !path};
    if (!enabled || !path)
        return PLUMB_OK;
    struct mapped in;
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    code = in.file.size ? read_names(list, &in.file, err) : PLUMB_OK;
    return mapped_close(&in, code, err);
}

void blacklist_close(struct blacklist *list)
{
    free(list->names);
    arena_free(&list->arena);
    *list = (struct blacklist){0};
}

bool blacklist_has(const struct blacklist *list, const char *op, size_t length)
{
    return listed(never, SIZE_MAX, op, length) ||
           (list->builtin && listed(builtin, SIZE_MAX, op, length)) ||
           listed(list->names, list->count, op, length);
}
