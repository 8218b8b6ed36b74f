/* Reading the configuration of merge_result. */
#include "task/ranks/config.h"

#include "base/yaml.h"

#include <string.h>

enum { MAX_ITEMS = 10000 };

bool config_add(struct config_list *list, const char *text, size_t length, struct arena *arena)
{
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->items[i]) == length && memcmp(list->items[i], text, length) == 0)
            return true;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        const char **items = arena_array(arena, capacity, sizeof *items);
        if (!items)
            return false;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    const char *copy = arena_copy(arena, text, length);
    if (copy)
        list->items[list->count++] = copy;
    return copy;
}

static enum plumb_code take_list(struct config_list *list, const struct yml *value,
                                 const char *wanted, struct arena *arena, struct plumb_error *err)
{
    if (yml_is_null(value))
        return PLUMB_OK;
    if (value->kind != YML_LIST)
        return yml_fail(err, value, wanted);
    for (size_t i = 0; i < value->count; i++) {
        const struct yml *item = &value->items[i];
        if (item->kind != YML_TEXT || yml_is_null(item) || !*item->text || list->count == MAX_ITEMS)
            return yml_fail(err, item, wanted);
        if (!config_add(list, item->text, strlen(item->text), arena))
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

static enum plumb_code take_document(struct config *config, const struct yml *document,
                                     struct arena *arena, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    if (document->kind != YML_MAP)
        return yml_fail(err, document, "the file must hold the lists api: and compare_index:");
    for (size_t i = 0; i < document->count && !code; i++) {
        const struct yml *value = &document->items[i];
        if (strcmp(document->keys[i], "api") == 0)
            code = take_list(&config->apis, value,
                             "api must be a list of names, such as '- Distributed.all_reduce'",
                             arena, err);
        else if (strcmp(document->keys[i], "compare_index") == 0)
            code = take_list(&config->indices, value,
                             "compare_index must be a list of columns, such as '- Max diff'", arena,
                             err);
    }
    return code;
}

enum plumb_code config_read(struct config *config, const char *path, struct arena *arena,
                            struct plumb_error *err)
{
    struct yml root;
    *config = (struct config){0};
    enum plumb_code code = yml_read(&root, arena, path, err);
    if (code)
        return code;
    /* An empty file holds no lists either. */
    code = take_document(config, root.count ? &root.items[0] : &root, arena, err);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}
