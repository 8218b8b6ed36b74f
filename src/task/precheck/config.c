/* Reading the settings of the pre-check from JSON or YAML. */
#include "task/precheck/config.h"

#include "base/json.h"
#include "base/map.h"
#include "base/mapped.h"
#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>

/* A setting as either kind of file has it, until it is known to be good. */
struct setting {
    enum { SETTING_TEXT, SETTING_LIST, SETTING_NULL, SETTING_OTHER } kind;
    const char *text; /* of a text, or the digits of a number */
    const char **items;
    size_t count;
};

enum { MAX_ITEMS = 10000 };

void check_config_init(struct check_config *config)
{
    *config = (struct check_config){.error_data_path = "./", .precision = 14};
}

/* Drops names that come again. */
static enum plumb_code take_names(struct check_names *names, const struct setting *from,
                                  struct plumb_error *err)
{
    struct map seen = {0};
    size_t count = 0;
    for (size_t i = 0; i < from->count; i++) {
        bool added;
        if (!map_put(&seen, from->items[i], strlen(from->items[i]), &added)) {
            map_free(&seen);
            return plumb_no_memory(err);
        }
        if (added)
            from->items[count++] = from->items[i];
    }
    map_free(&seen);
    *names = (struct check_names){.names = from->items, .count = count};
    return PLUMB_OK;
}

static bool take_precision(unsigned *precision, const struct setting *from)
{
    if (from->kind != SETTING_TEXT || !*from->text || strlen(from->text) > 2 ||
        strspn(from->text, "0123456789") != strlen(from->text))
        return false;
    unsigned long value = strtoul(from->text, NULL, 10);
    *precision = (unsigned)value;
    return value <= CHECK_MAX_PRECISION;
}

/* What a key should have been, in *wanted; PLUMB_E_FORMAT then. */
static enum plumb_code take(struct check_config *config, const char *key,
                            const struct setting *from, const char **wanted,
                            struct plumb_error *err)
{
    struct check_names *names = strcmp(key, "white_list") == 0   ? &config->white_list
                                : strcmp(key, "black_list") == 0 ? &config->black_list
                                : strcmp(key, "quantization_api_list") == 0
                                    ? &config->quantization_api_list
                                    : NULL;
    bool precision = strcmp(key, "precision") == 0;
    bool path = strcmp(key, "error_data_path") == 0;
    if (!names && !precision && !path) {
        if (config->n_unknown < CHECK_MAX_UNKNOWN)
            config->unknown[config->n_unknown++] = key;
        return PLUMB_OK;
    }
    if (from->kind == SETTING_NULL)
        return PLUMB_OK;
    if (names && from->kind == SETTING_LIST)
        return take_names(names, from, err);
    if (path && from->kind == SETTING_TEXT && *from->text) {
        config->error_data_path = from->text;
        return PLUMB_OK;
    }
    if (precision && take_precision(&config->precision, from))
        return PLUMB_OK;
    *wanted = names  ? "must be a list of API names, such as [\"conv1d\", \"conv2d\"]"
              : path ? "must be the path of a folder"
                     : "must be a number of decimals from 0 to 20";
    return PLUMB_E_FORMAT;
}

static bool add_item(struct setting *out, const char *text, struct arena *arena)
{
    size_t capacity = out->count < 16 ? 16 : out->count * 2;
    if (out->count % 16 == 0 && (out->count & (out->count - 1)) == 0) {
        const char **items = arena_array(arena, capacity, sizeof *items);
        if (!items)
            return false;
        if (out->count)
            memcpy(items, out->items, out->count * sizeof *items);
        out->items = items;
    }
    out->items[out->count++] = text;
    return true;
}

/* The last string; an empty one, or one with a NUL inside, is no setting. */
static enum plumb_code json_text(struct json *json, struct arena *arena, const char **out,
                                 struct plumb_error *err)
{
    size_t length;
    const char *text = json_copy(json, arena, &length);
    if (!text)
        return json->error ? json_fail(json, 0, err) : plumb_no_memory(err);
    *out = strlen(text) == length ? text : "";
    return PLUMB_OK;
}

static enum plumb_code json_list(struct json *json, struct setting *out, struct arena *arena,
                                 struct plumb_error *err)
{
    enum json_event event;
    out->kind = SETTING_LIST;
    while ((event = json_next(json)) == JSON_STRING && out->count < MAX_ITEMS) {
        const char *text = "";
        enum plumb_code code = json_text(json, arena, &text, err);
        if (code)
            return code;
        if (!*text)
            out->kind = SETTING_OTHER;
        else if (!add_item(out, text, arena))
            return plumb_no_memory(err);
    }
    if (event == JSON_ARRAY_END)
        return PLUMB_OK;
    out->kind = SETTING_OTHER;
    if (event == JSON_OBJECT || event == JSON_ARRAY)
        json_skip(json, event);
    return json_skip(json, JSON_ARRAY) ? PLUMB_OK : json_fail(json, 0, err);
}

static enum plumb_code json_setting(struct json *json, struct setting *out, struct arena *arena,
                                    struct plumb_error *err)
{
    enum json_event event = json_next(json);
    *out = (struct setting){.kind = event == JSON_NULL ? SETTING_NULL : SETTING_OTHER};
    if (event == JSON_ARRAY)
        return json_list(json, out, arena, err);
    if (event == JSON_NUMBER || event == JSON_STRING) {
        out->kind = SETTING_TEXT;
        return json_text(json, arena, &out->text, err);
    }
    return json_skip(json, event) ? PLUMB_OK : json_fail(json, 0, err);
}

static enum plumb_code json_section(struct check_config *config, struct json *json,
                                    struct arena *arena, struct plumb_error *err)
{
    check_config_init(config); /* a section that comes twice: the last counts */
    enum json_event event = json_next(json);
    if (event != JSON_OBJECT)
        return json->error ? json_fail(json, 0, err)
                           : plumb_fail_at(err, PLUMB_E_FORMAT, json->start,
                                           "\"acc_check\" must be an object of settings");
    while ((event = json_next(json)) == JSON_KEY) {
        struct setting setting;
        const char *key = "", *wanted = NULL;
        uint64_t at = json->start;
        enum plumb_code code = json_text(json, arena, &key, err);
        if (!code)
            code = json_setting(json, &setting, arena, err);
        if (!code)
            code = take(config, key, &setting, &wanted, err);
        if (wanted)
            plumb_fail_at(err, code, at, "%s %s", key, wanted);
        if (code)
            return code;
    }
    return event == JSON_OBJECT_END ? PLUMB_OK : json_fail(json, 0, err);
}

enum plumb_code check_config_json(struct check_config *config, const void *bytes, size_t size,
                                  struct arena *arena, struct plumb_error *err)
{
    bool found = false;
    struct json json;
    check_config_init(config);
    json_init(&json, bytes, size);
    if (json_next(&json) == JSON_OBJECT) {
        while (json_next(&json) == JSON_KEY) {
            bool section = json_is(&json, "acc_check");
            found |= section;
            enum plumb_code code = section ? json_section(config, &json, arena, err) : PLUMB_OK;
            if (code)
                return code;
            if (!section && !json_skip(&json, JSON_KEY))
                break;
        }
        if (!json.error)
            json_next(&json);
    }
    if (json.error)
        return json_fail(&json, 0, err);
    if (!found)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "there is no section \"acc_check\"; expected is {\"acc_check\": "
                          "{\"white_list\": [], \"black_list\": [], \"error_data_path\": \"./\"}}");
    return PLUMB_OK;
}

static enum plumb_code yaml_setting(const struct yml *value, struct setting *out,
                                    struct arena *arena, struct plumb_error *err)
{
    *out = (struct setting){.kind = SETTING_OTHER};
    if (yml_is_null(value)) {
        out->kind = SETTING_NULL;
    } else if (value->kind == YML_TEXT) {
        out->kind = SETTING_TEXT;
        out->text = value->text;
    } else if (value->kind == YML_LIST && value->count <= MAX_ITEMS) {
        out->kind = SETTING_LIST;
        for (size_t i = 0; i < value->count; i++) {
            const struct yml *item = &value->items[i];
            if (item->kind != YML_TEXT || yml_is_null(item) || !*item->text)
                out->kind = SETTING_OTHER;
            else if (!add_item(out, item->text, arena))
                return plumb_no_memory(err);
        }
    }
    return PLUMB_OK;
}

enum plumb_code check_config_yaml(struct check_config *config, const void *bytes, size_t size,
                                  struct arena *arena, struct plumb_error *err)
{
    struct yml root;
    check_config_init(config);
    enum plumb_code code = yml_parse(&root, arena, bytes, size, err);
    if (code || !root.count || yml_is_null(&root.items[0]))
        return code; /* an empty file sets nothing */
    const struct yml *document = &root.items[0];
    if (document->kind != YML_MAP)
        return yml_fail(err, document, "the file must hold settings such as white_list: [conv2d]");
    for (size_t i = 0; i < document->count && !code; i++) {
        struct setting setting;
        const char *wanted = NULL;
        code = yaml_setting(&document->items[i], &setting, arena, err);
        if (!code)
            code = take(config, document->keys[i], &setting, &wanted, err);
        if (wanted) {
            const char *text = arena_printf(arena, "%s %s", document->keys[i], wanted);
            code = text ? yml_fail(err, &document->items[i], text) : plumb_no_memory(err);
        }
    }
    return code;
}

static bool ends_in(const char *path, const char *ending)
{
    size_t length = strlen(path), size = strlen(ending);
    return length >= size && strcmp(path + length - size, ending) == 0;
}

enum plumb_code check_config_read(struct check_config *config, const char *path,
                                  struct arena *arena, struct plumb_error *err)
{
    struct mapped in;
    check_config_init(config);
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    code = ends_in(path, ".yaml") || ends_in(path, ".yml")
               ? check_config_yaml(config, in.file.data, (size_t)in.file.size, arena, err)
               : check_config_json(config, in.file.data, (size_t)in.file.size, arena, err);
    return mapped_close(&in, code, err);
}
