/* A watch, its operators, and which of their calls are checked. */
#define _GNU_SOURCE
#include "task/guard/guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_now(void)
{
    return (int64_t)time(NULL);
}

void plumb_guard_config_init(struct plumb_guard_config *config)
{
    *config = (struct plumb_guard_config){
        .rtol = 1e-4, .atol = 1e-5, .max_checks = 10, .log_once = true, .max_elements = 1u << 20};
}

static const char *const *copy_names(struct arena *arena, const char *const *names, size_t n)
{
    const char **copy = arena_array(arena, n, sizeof *copy);
    for (size_t k = 0; copy && k < n; k++)
        if (!(copy[k] = arena_copy(arena, names[k], strlen(names[k]))))
            return NULL;
    return copy;
}

static const char *default_path(struct arena *arena)
{
    const char *home = getenv("HOME");
    return arena_printf(arena, "%s/.plumb/precision.log", home && *home ? home : ".");
}

static enum plumb_code check_config(const struct plumb_guard_config *config,
                                    struct plumb_error *err)
{
    if (!(config->rtol >= 0 && isfinite(config->rtol)) ||
        !(config->atol >= 0 && isfinite(config->atol)))
        return plumb_fail(err, PLUMB_E_ARG, "rtol and atol must be numbers that are not negative");
    return PLUMB_OK;
}

enum plumb_code plumb_guard_open(struct plumb_guard_watch **out,
                                 const struct plumb_guard_config *config, struct plumb_error *err)
{
    *out = NULL;
    enum plumb_code code = check_config(config, err);
    if (!code)
        code = plumb_op_ready(err);
    if (code)
        return code;
    struct plumb_guard_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return plumb_no_memory(err);
    watch->rtol = config->rtol;
    watch->atol = config->atol;
    watch->max_checks = config->max_checks;
    watch->max_elements = config->max_elements;
    watch->log_once = config->log_once;
    watch->format = config->format;
    watch->now = config->now ? config->now : clock_now;
    watch->log = -1;
    watch->family = -1;
    pthread_mutex_init(&watch->lock, NULL);
    watch->include = copy_names(&watch->arena, config->include, config->n_include);
    watch->exclude = copy_names(&watch->arena, config->exclude, config->n_exclude);
    watch->n_include = config->n_include;
    watch->n_exclude = config->n_exclude;
    watch->path = config->path ? arena_copy(&watch->arena, config->path, strlen(config->path))
                               : default_path(&watch->arena);
    watch->save =
        config->save ? arena_copy(&watch->arena, config->save, strlen(config->save)) : NULL;
    if (!watch->include || !watch->exclude || !watch->path || (config->save && !watch->save))
        code = plumb_no_memory(err);
    if (!code)
        code = log_open(watch, err);
    if (!code)
        family_open(watch);
    if (code) {
        plumb_guard_close(watch);
        return code;
    }
    *out = watch;
    return PLUMB_OK;
}

void plumb_guard_close(struct plumb_guard_watch *watch)
{
    if (!watch)
        return;
    if (watch->log_is_own)
        close(watch->log);
    family_close(watch);
    for (size_t k = 0; k < watch->n_ops; k++)
        free(watch->ops[k]);
    free(watch->ops);
    map_free(&watch->names);
    arena_free(&watch->arena);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

static bool any_names(const char *const *names, size_t n, const char *full)
{
    for (size_t k = 0; k < n; k++)
        if (plumb_guard_named(full, names[k]))
            return true;
    return false;
}

static const char *why_skipped(const struct plumb_guard_watch *watch, const char *full,
                               const char *unfit)
{
    if (watch->n_include && !any_names(watch->include, watch->n_include, full))
        return "not included";
    if (any_names(watch->exclude, watch->n_exclude, full))
        return "excluded";
    const char *why = plumb_guard_skips(full);
    return why ? why : unfit;
}

static struct plumb_guard_op *add_operator(struct plumb_guard_watch *watch, const char *full,
                                           const char *unfit)
{
    if (watch->n_ops == watch->max_ops) {
        const size_t room = watch->max_ops ? 2 * watch->max_ops : 64;
        struct plumb_guard_op **ops = realloc(watch->ops, room * sizeof(struct plumb_guard_op *));
        if (!ops)
            return NULL;
        watch->ops = ops;
        watch->max_ops = room;
    }
    size_t length;
    const char *name = op_short_name(full, &length);
    const char *why = why_skipped(watch, full, unfit);
    struct plumb_guard_op *op = calloc(1, sizeof *op);
    if (!op)
        return NULL;
    op->watch = watch;
    op->full = arena_copy(&watch->arena, full, strlen(full));
    op->name = arena_copy(&watch->arena, name, length);
    op->skipped = why ? arena_copy(&watch->arena, why, strlen(why)) : NULL;
    op->max_ulp = NAN;
    atomic_init(&op->open, !why && watch->max_checks > 0);
    uint64_t *place = op->full && op->name && (op->skipped || !why)
                          ? map_put(&watch->names, op->full, strlen(op->full), NULL)
                          : NULL;
    if (!place) {
        free(op);
        return NULL;
    }
    *place = watch->n_ops;
    watch->ops[watch->n_ops++] = op;
    return op;
}

struct plumb_guard_op *watch_find(struct plumb_guard_watch *watch, const char *full)
{
    const uint64_t *place = map_get(&watch->names, full, strlen(full));
    return place ? watch->ops[*place] : add_operator(watch, full, NULL);
}

struct plumb_guard_op *plumb_guard_operator(struct plumb_guard_watch *watch, const char *name,
                                            const char *unfit)
{
    pthread_mutex_lock(&watch->lock);
    const uint64_t *place = map_get(&watch->names, name, strlen(name));
    struct plumb_guard_op *op = place ? watch->ops[*place] : add_operator(watch, name, unfit);
    pthread_mutex_unlock(&watch->lock);
    return op;
}

enum plumb_guard_step plumb_guard_call(struct plumb_guard_op *op)
{
    struct plumb_guard_watch *watch = op->watch;
    const uint64_t call = atomic_fetch_add_explicit(&watch->calls, 1, memory_order_relaxed) + 1;
    atomic_fetch_add_explicit(&op->calls, 1, memory_order_relaxed);
    const bool open = atomic_load_explicit(&op->open, memory_order_relaxed);
    /* One that is always too large is worth no watching. */
    if (open && atomic_load_explicit(&op->too_large, memory_order_relaxed) < watch->max_checks) {
        atomic_store_explicit(&watch->last_open, call, memory_order_relaxed);
        return PLUMB_GUARD_CHECK;
    }
    const uint64_t last = atomic_load_explicit(&watch->last_open, memory_order_relaxed);
    const uint64_t pass = last > WATCH_SHORTEST_PASS ? last : WATCH_SHORTEST_PASS;
    /* Before the first such call nothing is known of the program. */
    if (last && call > last && call - last > pass)
        return PLUMB_GUARD_QUIET;
    return open ? PLUMB_GUARD_CHECK : PLUMB_GUARD_PASS;
}

bool plumb_guard_claim(struct plumb_guard_op *op, uint64_t elements)
{
    const uint64_t limit = op->watch->max_checks;
    if (!atomic_load(&op->open))
        return false;
    if (elements > op->watch->max_elements) {
        atomic_fetch_add(&op->too_large, 1);
        return false;
    }
    atomic_store(&op->too_large, 0);
    const uint64_t before = atomic_fetch_add(&op->claimed, 1);
    if (before + 1 >= limit)
        atomic_store(&op->open, false);
    if (before < limit)
        return true;
    atomic_fetch_sub(&op->claimed, 1);
    return false;
}

void plumb_guard_pass_over(struct plumb_guard_op *op, const char *why)
{
    pthread_mutex_lock(&op->watch->lock);
    if (!op->skipped) {
        op->skipped = arena_copy(&op->watch->arena, why, strlen(why));
        family_tell(op, &(struct family_news){.max_ulp = NAN, .skipped = why});
    }
    pthread_mutex_unlock(&op->watch->lock);
}

void plumb_guard_give_up(struct plumb_guard_op *op, const char *why)
{
    atomic_store(&op->open, false);
    plumb_guard_pass_over(op, why);
}

void plumb_guard_trouble(struct plumb_guard_op *op, const char *what)
{
    struct plumb_guard_watch *watch = op->watch;
    pthread_mutex_lock(&watch->lock);
    op->troubles++;
    watch->troubles++;
    if (!watch->first_trouble)
        watch->first_trouble = arena_printf(&watch->arena, "%s: %s", op->name, what);
    family_tell(op, &(struct family_news){.max_ulp = NAN, .trouble = what});
    pthread_mutex_unlock(&watch->lock);
}

void plumb_guard_op_counts(const struct plumb_guard_op *op, struct plumb_guard_counts *out)
{
    pthread_mutex_lock(&op->watch->lock);
    *out = (struct plumb_guard_counts){.calls = atomic_load(&op->calls),
                                       .checked = op->checked,
                                       .failed = op->failed,
                                       .troubles = op->troubles,
                                       .open = atomic_load(&op->open)};
    pthread_mutex_unlock(&op->watch->lock);
}

const char *plumb_guard_op_name(const struct plumb_guard_op *op)
{
    return op->name;
}
