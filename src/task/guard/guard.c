/* A guard, its operators, and which of their calls are checked. */
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

enum plumb_code plumb_guard_open(struct plumb_guard **out, const struct plumb_guard_config *config,
                                 struct plumb_error *err)
{
    *out = NULL;
    enum plumb_code code = check_config(config, err);
    if (!code)
        code = plumb_arithmetic_check(config->arithmetic, err);
    if (!code)
        code = plumb_op_ready(err);
    if (code)
        return code;
    struct plumb_guard *guard = calloc(1, sizeof *guard);
    if (!guard)
        return plumb_no_memory(err);
    guard->rtol = config->rtol;
    guard->atol = config->atol;
    guard->max_checks = config->max_checks;
    guard->max_elements = config->max_elements;
    guard->log_once = config->log_once;
    guard->verdict = config->verdict;
    guard->format = config->format;
    guard->now = config->now ? config->now : clock_now;
    guard->log = -1;
    guard->family = -1;
    pthread_mutex_init(&guard->lock, NULL);
    guard->include = copy_names(&guard->arena, config->include, config->n_include);
    guard->exclude = copy_names(&guard->arena, config->exclude, config->n_exclude);
    guard->n_include = config->n_include;
    guard->n_exclude = config->n_exclude;
    guard->path = config->path ? arena_copy(&guard->arena, config->path, strlen(config->path))
                               : default_path(&guard->arena);
    guard->arithmetic = config->arithmetic ? arena_copy(&guard->arena, config->arithmetic,
                                                        strlen(config->arithmetic))
                                           : NULL;
    guard->save =
        config->save ? arena_copy(&guard->arena, config->save, strlen(config->save)) : NULL;
    if (!guard->include || !guard->exclude || !guard->path || (config->save && !guard->save) ||
        (config->arithmetic && !guard->arithmetic))
        code = plumb_no_memory(err);
    if (!code)
        code = guard_log_open(guard, err);
    if (!code)
        guard_family_open(guard);
    if (code) {
        plumb_guard_close(guard);
        return code;
    }
    *out = guard;
    return PLUMB_OK;
}

void plumb_guard_close(struct plumb_guard *guard)
{
    if (!guard)
        return;
    if (guard->log_is_own)
        close(guard->log);
    guard_family_close(guard);
    for (size_t k = 0; k < guard->n_ops; k++)
        free(guard->ops[k]);
    free(guard->ops);
    map_free(&guard->names);
    arena_free(&guard->arena);
    pthread_mutex_destroy(&guard->lock);
    free(guard);
}

static bool any_names(const char *const *names, size_t n, const char *full)
{
    for (size_t k = 0; k < n; k++)
        if (plumb_guard_named(full, names[k]))
            return true;
    return false;
}

static const char *why_skipped(const struct plumb_guard *guard, const char *full, const char *unfit)
{
    if (guard->n_include && !any_names(guard->include, guard->n_include, full))
        return "not included";
    if (any_names(guard->exclude, guard->n_exclude, full))
        return "excluded";
    const char *why = plumb_guard_skips(full);
    return why ? why : unfit;
}

static struct plumb_guard_op *add_operator(struct plumb_guard *guard, const char *full,
                                           const char *why)
{
    if (guard->n_ops == guard->max_ops) {
        const size_t room = guard->max_ops ? 2 * guard->max_ops : 64;
        struct plumb_guard_op **ops = realloc(guard->ops, room * sizeof(struct plumb_guard_op *));
        if (!ops)
            return NULL;
        guard->ops = ops;
        guard->max_ops = room;
    }
    size_t length;
    const char *name = guard_short_name(full, &length);
    struct plumb_guard_op *op = calloc(1, sizeof *op);
    if (!op)
        return NULL;
    op->guard = guard;
    op->full = arena_copy(&guard->arena, full, strlen(full));
    op->name = arena_copy(&guard->arena, name, length);
    op->skipped = why ? arena_copy(&guard->arena, why, strlen(why)) : NULL;
    op->max_ulp = NAN;
    atomic_init(&op->open, !why && guard->max_checks > 0);
    uint64_t *place = op->full && op->name && (op->skipped || !why)
                          ? map_put(&guard->names, op->full, strlen(op->full), NULL)
                          : NULL;
    if (!place) {
        free(op);
        return NULL;
    }
    *place = guard->n_ops;
    guard->ops[guard->n_ops++] = op;
    return op;
}

struct plumb_guard_op *guard_find(struct plumb_guard *guard, const char *full)
{
    const uint64_t *place = map_get(&guard->names, full, strlen(full));
    return place ? guard->ops[*place] : add_operator(guard, full, why_skipped(guard, full, NULL));
}

struct plumb_guard_op *plumb_guard_function(struct plumb_guard *guard, const char *name)
{
    pthread_mutex_lock(&guard->lock);
    const uint64_t *place = map_get(&guard->names, name, strlen(name));
    struct plumb_guard_op *op = place ? guard->ops[*place] : add_operator(guard, name, NULL);
    if (op)
        op->is_function = true;
    pthread_mutex_unlock(&guard->lock);
    return op;
}

struct plumb_guard_op *plumb_guard_operator(struct plumb_guard *guard, const char *name,
                                            const char *unfit)
{
    pthread_mutex_lock(&guard->lock);
    const uint64_t *place = map_get(&guard->names, name, strlen(name));
    struct plumb_guard_op *op =
        place ? guard->ops[*place] : add_operator(guard, name, why_skipped(guard, name, unfit));
    pthread_mutex_unlock(&guard->lock);
    return op;
}

enum plumb_guard_step plumb_guard_call(struct plumb_guard_op *op)
{
    struct plumb_guard *guard = op->guard;
    const uint64_t call = atomic_fetch_add_explicit(&guard->calls, 1, memory_order_relaxed) + 1;
    atomic_fetch_add_explicit(&op->calls, 1, memory_order_relaxed);
    const bool open = atomic_load_explicit(&op->open, memory_order_relaxed);
    /* One that is always too large is worth no watching. */
    if (open && atomic_load_explicit(&op->too_large, memory_order_relaxed) < guard->max_checks) {
        atomic_store_explicit(&guard->last_open, call, memory_order_relaxed);
        return PLUMB_GUARD_CHECK;
    }
    const uint64_t last = atomic_load_explicit(&guard->last_open, memory_order_relaxed);
    const uint64_t pass = last > GUARD_SHORTEST_PASS ? last : GUARD_SHORTEST_PASS;
    /* Before the first such call nothing is known of the program. */
    if (last && call > last && call - last > pass)
        return PLUMB_GUARD_QUIET;
    return open ? PLUMB_GUARD_CHECK : PLUMB_GUARD_PASS;
}

bool plumb_guard_claim(struct plumb_guard_op *op, uint64_t elements)
{
    const uint64_t limit = op->guard->max_checks;
    if (!atomic_load(&op->open))
        return false;
    if (elements > op->guard->max_elements) {
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
    pthread_mutex_lock(&op->guard->lock);
    if (!op->skipped) {
        op->skipped = arena_copy(&op->guard->arena, why, strlen(why));
        guard_family_tell(op, &(struct guard_family_news){.max_ulp = NAN, .skipped = why});
    }
    pthread_mutex_unlock(&op->guard->lock);
}

void plumb_guard_give_up(struct plumb_guard_op *op, const char *why)
{
    atomic_store(&op->open, false);
    plumb_guard_pass_over(op, why);
}

void plumb_guard_trouble(struct plumb_guard_op *op, const char *what)
{
    struct plumb_guard *guard = op->guard;
    pthread_mutex_lock(&guard->lock);
    op->troubles++;
    guard->troubles++;
    if (!guard->first_trouble)
        guard->first_trouble = arena_printf(&guard->arena, "%s: %s", op->name, what);
    guard_family_tell(op, &(struct guard_family_news){.max_ulp = NAN, .trouble = what});
    pthread_mutex_unlock(&guard->lock);
}

void plumb_guard_op_counts(const struct plumb_guard_op *op, struct plumb_guard_counts *out)
{
    pthread_mutex_lock(&op->guard->lock);
    *out = (struct plumb_guard_counts){.calls = atomic_load(&op->calls),
                                       .checked = op->checked,
                                       .failed = op->failed,
                                       .troubles = op->troubles,
                                       .open = atomic_load(&op->open)};
    pthread_mutex_unlock(&op->guard->lock);
}

const char *plumb_guard_op_name(const struct plumb_guard_op *op)
{
    return op->name;
}
