/* Walking a dump.json from one end to the other. */
#include "dump/outline.h"

enum plumb_code outline_skip(struct json *json)
{
    return json_skip(json, JSON_KEY) ? PLUMB_OK : PLUMB_E_FORMAT;
}

static bool read_placements(struct json *json, bool *spread)
{
    enum json_event event = json_next(json);
    if (event != JSON_ARRAY)
        return json_skip(json, event);
    while ((event = json_next(json)) == JSON_STRING)
        *spread |= !json_is(json, "R");
    return event == JSON_ARRAY_END;
}

enum plumb_code outline_spread(struct json *json, bool *spread)
{
    enum json_event event = json_next(json);
    if (event != JSON_OBJECT)
        return json_skip(json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
    while ((event = json_next(json)) == JSON_KEY) {
        const bool good =
            json_is(json, "placements") ? read_placements(json, spread) : json_skip(json, JSON_KEY);
        if (!good)
            return PLUMB_E_FORMAT;
    }
    return event == JSON_OBJECT_END ? PLUMB_OK : PLUMB_E_FORMAT;
}

static enum plumb_code read_data(const struct outline *outline)
{
    struct json *json = outline->json;
    enum json_event event = json_next(json);
    enum plumb_code code = outline->data(outline->context, event);
    if (code || event != JSON_OBJECT)
        return code ? code : json_skip(json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
    while (!code && (event = json_next(json)) == JSON_KEY)
        code = outline->entry(outline->context);
    return code ? code : event == JSON_OBJECT_END ? PLUMB_OK : PLUMB_E_FORMAT;
}

enum plumb_code outline_read(const struct outline *outline)
{
    struct json *json = outline->json;
    enum json_event event = json_next(json);
    if (event != JSON_OBJECT)
        return json->error ? PLUMB_E_FORMAT : PLUMB_E_UNSUPPORTED;
    while ((event = json_next(json)) == JSON_KEY) {
        enum plumb_code code = json_is(json, "data") ? read_data(outline)
                               : outline->field      ? outline->field(outline->context)
                                                     : outline_skip(json);
        if (code)
            return code;
    }
    return event == JSON_OBJECT_END && json_next(json) == JSON_END ? PLUMB_OK : PLUMB_E_FORMAT;
}
