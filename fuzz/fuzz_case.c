#include "task/precheck/filter.h"
#include "task/precheck/select.h"
#include "verdict/profile.h"
#include "verdict/profiles.h"

#include <stdlib.h>
#include <string.h>

/* Whatever was parsed can be walked to its ends. */
static void walk(const struct case_arg *args, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct case_arg *arg = &args[i];
        bool tensor = arg->value.kind == PLUMB_ARG_TENSOR;
        if (tensor != (arg->tensor != NULL) || arg->value.items || arg->value.tensor)
            abort();
        if (tensor) {
            if (!arg->tensor->dtype_name || arg->tensor->rank > PLUMB_MAX_RANK)
                abort();
            for (unsigned k = 0; k < arg->tensor->rank; k++)
                if (arg->tensor->shape[k] < 0)
                    abort();
        }
        if (arg->value.kind == PLUMB_ARG_SLICE && arg->n_items != 3)
            abort();
        if (arg->value.kind == PLUMB_ARG_DTYPE && arg->value.dtype >= PLUMB_DTYPE_COUNT)
            abort();
        if ((arg->value.kind == PLUMB_ARG_TEXT || arg->value.kind == PLUMB_ARG_DEVICE) &&
            !arg->value.text)
            abort();
        walk(arg->items, arg->n_items);
    }
}

static void parse_calls(const struct case_file *file)
{
    for (size_t i = 0; i < case_count(file); i++) {
        struct arena arena = {0};
        struct check_case call;
        struct plumb_error err = {0};
        if (case_parse(file, i, &arena, &call, &err)) {
            if (!err.message[0])
                abort();
        } else {
            walk(call.args, call.n_args);
            walk(call.grads, call.n_grads);
            for (size_t k = 0; k < call.n_kwargs; k++)
                walk(&call.kwargs[k].value, 1);
        }
        if (!call.prefix || !call.api)
            abort();
        arena_free(&arena);
    }
}

static void filter_calls(const struct case_file *file, bool by_objects)
{
    struct plumb_error err = {0};
    bool *keep = calloc(case_count(file) + 1, sizeof *keep);
    if (!keep)
        return;
    enum plumb_code code = filter_repeats(file, by_objects, keep, &err);
    if (code ? !by_objects || !err.message[0] : case_count(file) && !keep[0])
        abort();
    free(keep);
}

static void select_calls(const struct case_file *file, const struct check_config *config)
{
    struct selector selector;
    for (size_t k = 0; precheck_profiles[k]; k++) {
        if (!selector_init(&selector, config, precheck_profiles[k]->select, NULL)) {
            for (size_t i = 0; i < case_count(file); i++) {
                const char *reason;
                if (!select_call(&selector, case_place(file, i)->call, &reason) != !reason)
                    abort();
            }
        }
        selector_destroy(&selector);
    }
}

/* The bytes as a dump.json, and as the two kinds of settings for it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct check_config config;
    struct case_file *file;
    struct plumb_error err = {0};
    if (check_config_json(&config, data, size, &arena, NULL))
        check_config_yaml(&config, data, size, &arena, NULL);
    if (case_file_parse(data, size, "fuzz/dump.json", &file, &err)) {
        if (!err.message[0])
            abort();
    } else {
        parse_calls(file);
        filter_calls(file, false);
        filter_calls(file, true);
        select_calls(file, &config);
        case_file_close(file);
    }
    arena_free(&arena);
    return 0;
}
