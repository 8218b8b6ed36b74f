/* From the names of records to calls of modules. */
#define _GNU_SOURCE
#include "task/blame/units.h"
#include "task/blame/graphs.h"

#include "pair/role.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A name, or part of one. */
struct span {
    const char *text;
    size_t length;
};

/* What the name of a record says. */
struct said {
    enum unit_kind kind;
    enum piece_role role;
    struct span path, class, number, base; /* base: path and class */
    struct span call;                      /* the forward call; empty where this is no part of it */
    const char *place;
};

/* ---- Names ----------------------------------------------------------------------------------- */

static bool is_number(struct span span)
{
    return span.length && span.length < 19 && strspn(span.text, "0123456789") >= span.length;
}

static bool is(struct span span, const char *word)
{
    return span.length == strlen(word) && memcmp(span.text, word, span.length) == 0;
}

/* Takes the last field off; the rest loses it and its dot. */
static struct span take_last(struct span *rest)
{
    const char *dot = rest->length ? memrchr(rest->text, '.', rest->length) : NULL;
    const size_t before = dot ? (size_t)(dot - rest->text) : 0, skip = dot ? before + 1 : 0;
    const struct span last = {rest->text + skip, rest->length - skip};
    rest->length = before;
    return last;
}

/* Path and class of "blocks.0.norm1.LayerNorm". */
static bool split_base(struct span base, struct said *said)
{
    said->base = said->path = base;
    said->class = take_last(&said->path);
    return said->class.length && !is_number(said->class);
}

static bool starts_with(const char **text, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

/* A row of a dump.json: "Module.fc.Linear.forward.0" and "input.0". */
static bool read_row(const struct plumb_record *record, struct said *said)
{
    static const struct {
        const char *word;
        enum piece_role forward, backward;
    } sections[] = {
        {"input.", PIECE_INPUT, PIECE_GRAD_IN},    {"kwargs.", PIECE_INPUT, PIECE_ROLES},
        {"output.", PIECE_OUTPUT, PIECE_GRAD_OUT}, {"parameters.", PIECE_PARAMETER, PIECE_ROLES},
        {"buffers.", PIECE_BUFFER, PIECE_ROLES},
    };
    const char *api = record->recorded->api;
    const size_t length = strlen(api);
    struct span rest = {api, length};
    const char *inside = record->name;
    if (strncmp(api, "Module.", 7) != 0 || !starts_with(&inside, api) || *inside++ != '.')
        return false;
    said->number = take_last(&rest);
    const struct span direction = take_last(&rest);
    if (rest.length < 7 || !is_number(said->number) ||
        !split_base((struct span){rest.text + 7, rest.length - 7}, said))
        return false;
    said->place = inside;
    said->role = PIECE_PARAMETER_GRAD;
    if (is(direction, "parameters_grad"))
        return true;
    const bool forward = is(direction, "forward");
    if (!forward && !is(direction, "backward"))
        return false;
    if (forward)
        said->call = (struct span){api, length};
    for (size_t k = 0; k < sizeof sections / sizeof *sections; k++)
        if (starts_with(&said->place, sections[k].word)) {
            said->role = forward ? sections[k].forward : sections[k].backward;
            return said->role != PIECE_ROLES;
        }
    return false;
}

static bool is_prefix_of_functions(struct span path)
{
    static const char *const prefixes[] = {"Functional", "Torch", "Tensor", "NPU", "VF", "Aten"};
    for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
        if (is(path, prefixes[k]))
            return true;
    return false;
}

/* A tensor of a capture: "blocks.0.norm1.LayerNorm.1.forward_output.0". */
static bool read_captured(const struct plumb_record *record, struct said *said)
{
    static const struct {
        const char *word;
        enum piece_role role;
    } roles[] = {
        {".forward_input.", PIECE_INPUT},      {".forward_output.", PIECE_OUTPUT},
        {".forward_params.", PIECE_PARAMETER}, {".forward_buffers.", PIECE_BUFFER},
        {".backward_input.", PIECE_GRAD_IN},   {".backward_output.", PIECE_GRAD_OUT},
    };
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++) {
        const char *at = strstr(record->name, roles[k].word);
        if (!at)
            continue;
        struct span rest = {record->name, (size_t)(at - record->name)};
        if (roles[k].role < PIECE_GRAD_IN)
            said->call = (struct span){rest.text, rest.length + strlen(".forward")};
        said->number = take_last(&rest);
        said->role = roles[k].role;
        said->place = at + strlen(roles[k].word);
        if (!is_number(said->number) || !split_base(rest, said))
            return false;
        if (is_prefix_of_functions(said->path))
            said->kind = UNIT_FUNCTION;
        return true;
    }
    return false;
}

/* A tensor of a graph: "add-aten.add.Tensor.input.0" of FX, "Add.layers_0_Add.output.0" of GE, each
 * perhaps after the name of its graph. */
static bool read_node(const struct plumb_record *record, struct said *said)
{
    size_t length;
    const enum pair_role role = pair_role(record->name, &length);
    if (role == ROLE_NONE)
        return false;
    const char *slash = memrchr(record->name, '/', length);
    const char *name = slash ? slash + 1 : record->name;
    const size_t rest = length - (size_t)(name - record->name);
    const char *end = memchr(name, record->detail ? '.' : '-', rest);
    said->kind = UNIT_NODE;
    said->role = role == ROLE_INPUT ? PIECE_INPUT : PIECE_OUTPUT;
    said->base = said->call = said->path = (struct span){record->name, length};
    said->number = (struct span){"0", 1};
    if (end && record->detail)
        said->class = (struct span){name, (size_t)(end - name)};
    else if (end)
        said->class = (struct span){end + 1, rest - (size_t)(end + 1 - name)};
    else
        said->class = (struct span){name, rest};
    said->place =
        record->name + length + (role == ROLE_INPUT ? strlen(".input.") : strlen(".output."));
    return true;
}

/* ---- Units ----------------------------------------------------------------------------------- */

static struct unit *add_unit(struct units *units, const struct said *said,
                             const struct plumb_record *record)
{
    if (units->count == units->capacity) {
        const size_t capacity = units->capacity ? 2 * units->capacity : 64;
        struct unit *list = realloc(units->list, capacity * sizeof *list);
        if (!list)
            return NULL;
        units->list = list;
        units->capacity = capacity;
    }
    struct unit *unit = &units->list[units->count];
    *unit = (struct unit){.kind = said->kind,
                          .class = arena_copy(&units->arena, said->class.text, said->class.length),
                          .path = arena_copy(&units->arena, said->path.text, said->path.length),
                          .number = strtoull(said->number.text, NULL, 10),
                          .step = record->step,
                          .rank = record->rank};
    if (!unit->class || !unit->path)
        return NULL;
    units->count++;
    return unit;
}

static char *module_key(struct arena *arena, struct span base, int64_t step, int64_t rank)
{
    return arena_printf(arena, "%.*s/%" PRId64 "/%" PRId64, (int)base.length, base.text, step,
                        rank);
}

/* The unit that a record belongs to, made when it is new; NULL when out of memory. */
static struct unit *unit_of(struct units *units, const struct said *said,
                            const struct plumb_record *record)
{
    const char *module = module_key(&units->arena, said->base, record->step, record->rank);
    const char *key = module ? arena_printf(&units->arena, "%s/%.*s", module,
                                            (int)said->number.length, said->number.text)
                             : NULL;
    bool added;
    uint64_t *place = key ? map_put(&units->calls, key, strlen(key), &added) : NULL;
    if (!place)
        return NULL;
    if (!added)
        return &units->list[*place - 1];
    *place = units->count + 1;
    struct unit *unit = add_unit(units, said, record);
    uint64_t *first = unit ? map_put(&units->modules, module, strlen(module), &added) : NULL;
    if (!first)
        return NULL;
    if (added)
        *first = units->count;
    unit->first = (size_t)*first - 1;
    units->list[unit->first].calls++;
    return unit;
}

static bool add_piece(struct units *units, struct pieces *pieces, const char *place, size_t record)
{
    if (!(pieces->count & (pieces->count - 1))) { /* full: twice as much */
        struct piece *list =
            arena_array(&units->arena, pieces->count ? 2 * pieces->count : 1, sizeof *list);
        if (!list)
            return false;
        if (pieces->count)
            memcpy(list, pieces->list, pieces->count * sizeof *list);
        pieces->list = list;
    }
    pieces->list[pieces->count++] = (struct piece){.place = place, .record = record};
    return true;
}

/* Notes the module around a module. */
static bool note_parent(struct units *units, const struct plumb_record *record)
{
    const struct plumb_recorded *recorded = record->recorded;
    const char *parent = plumb_recorded_parent(recorded);
    return !parent || strncmp(recorded->api, "Module.", 7) != 0 ||
           map_put(&units->parents, parent, strlen(parent), NULL);
}

static enum plumb_code take_record(struct units *units, const struct sites *sites,
                                   const struct plumb_run *run, size_t i, struct plumb_error *err)
{
    struct said said = {.kind = UNIT_MODULE};
    const struct plumb_record *record = plumb_run_record(run, i);
    if (!note_parent(units, record))
        return plumb_no_memory(err);
    if (!(graphs_is(run)     ? read_node(record, &said)
          : record->recorded ? read_row(record, &said)
                             : read_captured(record, &said)))
        return PLUMB_OK;
    struct unit *unit = unit_of(units, &said, record);
    if (!unit || !add_piece(units, &unit->of[said.role], said.place, i))
        return plumb_no_memory(err);
    if (said.call.length && !unit->name) {
        const char *call = arena_copy(&units->arena, said.call.text, said.call.length);
        unit->name = record->recorded || !call
                         ? call
                         : arena_printf(&units->arena, "%" PRId64 "/%s", record->step, call);
        if (!unit->name)
            return plumb_no_memory(err);
    }
    const struct site *site = sites_of(sites, record);
    const int direction = said.role == PIECE_PARAMETER_GRAD ? LOCAL_PARAMETERS
                          : said.role >= PIECE_GRAD_IN      ? LOCAL_BACKWARD
                                                            : LOCAL_FORWARD;
    if (site)
        unit->sites[direction] = (size_t)(site - sites->list) + 1;
    return PLUMB_OK;
}

enum plumb_code units_list(struct units *units, const struct sites *sites,
                           const struct plumb_run *run, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < plumb_run_count(run) && !code; i++)
        code = take_record(units, sites, run, i, err);
    for (size_t i = 0; i < units->count && !code; i++) {
        struct unit *unit = &units->list[i];
        unit->inside = unit->name && map_get(&units->parents, unit->name, strlen(unit->name));
    }
    return code;
}

void units_free(struct units *units)
{
    free(units->list);
    map_free(&units->calls);
    map_free(&units->modules);
    map_free(&units->parents);
    arena_free(&units->arena);
    *units = (struct units){0};
}
