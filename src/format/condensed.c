/* NAME.condensed.json, as src/condense writes it; docs/FORMATS.md describes it. */
#include "format/condensed.h"
#include "format/recorded.h"

#include "base/json.h"
#include "base/mapped.h"
#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char magic[] = "{\"plumb_condensed\":";

static bool probe(const uint8_t *head, size_t n)
{
    return n >= sizeof magic - 1 && memcmp(head, magic, sizeof magic - 1) == 0;
}

struct reader {
    struct listing *out;
    struct json json;
    const char *file, *format; /* of the original */
};

/* What one tensor's object says. */
struct fields {
    const char *name, *dtype;
    int64_t step, rank;
    int8_t requires_grad;
    int64_t shape[PLUMB_MAX_RANK];
    unsigned ndim;
    bool has_shape, too_deep;
    struct plumb_value statistic[PLUMB_STATISTICS];
    struct plumb_kept kept;
    struct condensed_sketch sketch;
};

static enum plumb_code odd(const struct reader *r, const char *what, struct plumb_error *err)
{
    return r->json.error ? json_fail(&r->json, 0, err)
                         : plumb_fail_at(err, PLUMB_E_FORMAT, r->json.start,
                                         "a condensed file with an odd %s", what);
}

static enum plumb_code read_text(struct reader *r, const char **text, struct plumb_error *err)
{
    if (json_next(&r->json) != JSON_STRING)
        return odd(r, "text", err);
    size_t length;
    *text = json_copy(&r->json, r->out->arena, &length);
    return *text ? PLUMB_OK : r->json.error ? json_fail(&r->json, 0, err) : plumb_no_memory(err);
}

static enum plumb_code read_integer(struct reader *r, int64_t *value, struct plumb_error *err)
{
    if (json_next(&r->json) == JSON_NUMBER && json_int64(&r->json, value) && *value >= 0)
        return PLUMB_OK;
    return odd(r, "number", err);
}

static enum plumb_code read_count(struct reader *r, uint64_t *value, struct plumb_error *err)
{
    int64_t number = 0;
    enum plumb_code code = read_integer(r, &number, err);
    *value = (uint64_t)number;
    return code;
}

static enum plumb_code read_real(struct reader *r, double *value, struct plumb_error *err)
{
    if (json_next(&r->json) != JSON_NUMBER)
        return odd(r, "number", err);
    *value = json_double(&r->json);
    return PLUMB_OK;
}

bool condensed_number(struct arena *arena, struct plumb_value *value, double number)
{
    char text[NUMBER_BYTES];
    if (isnan(number))
        snprintf(text, sizeof text, "nan");
    else
        number_exact(number, true, text);
    *value = (struct plumb_value){.kind = PLUMB_VALUE_NUMBER,
                                  .number = number,
                                  .text = arena_copy(arena, text, strlen(text))};
    return value->text;
}

static bool is_integer(const struct json *json)
{
    for (size_t i = 0; i < json->length; i++)
        if (json->text[i] != '-' && (json->text[i] < '0' || json->text[i] > '9'))
            return false;
    return true;
}

static enum plumb_code read_value(struct reader *r, struct plumb_value *value,
                                  struct plumb_error *err)
{
    double number = 0;
    enum plumb_code code = read_real(r, &number, err);
    if (!code && !condensed_number(r->out->arena, value, number))
        code = plumb_no_memory(err);
    /* An integer that float64 does not hold keeps its digits. */
    if (!code && isfinite(number) && fabs(number) >= 0x1p53 && is_integer(&r->json)) {
        value->text = arena_copy(r->out->arena, r->json.text, r->json.length);
        code = value->text ? PLUMB_OK : plumb_no_memory(err);
    }
    return code;
}

static enum plumb_code read_shape(struct reader *r, struct fields *fields, struct plumb_error *err)
{
    enum json_event event = json_next(&r->json);
    if (event != JSON_ARRAY)
        return odd(r, "shape", err);
    while ((event = json_next(&r->json)) == JSON_NUMBER) {
        int64_t size;
        if (!json_int64(&r->json, &size))
            return odd(r, "shape", err);
        if (fields->ndim < PLUMB_MAX_RANK)
            fields->shape[fields->ndim++] = size;
        else
            fields->too_deep = true;
    }
    fields->has_shape = event == JSON_ARRAY_END;
    return fields->has_shape ? PLUMB_OK : odd(r, "shape", err);
}

static enum plumb_code read_field(struct reader *r, struct fields *fields, struct plumb_error *err)
{
    static const char *const statistics[PLUMB_STATISTICS] = {
        [PLUMB_STATISTIC_MAX] = "max",
        [PLUMB_STATISTIC_MIN] = "min",
        [PLUMB_STATISTIC_MEAN] = "mean",
        [PLUMB_STATISTIC_NORM] = "norm",
    };
    static const char *const finite[PLUMB_STATISTICS] = {
        [PLUMB_STATISTIC_MAX] = "finite_max",
        [PLUMB_STATISTIC_MIN] = "finite_min",
        [PLUMB_STATISTIC_MEAN] = "finite_mean",
        [PLUMB_STATISTIC_NORM] = "finite_norm",
    };
    struct json *json = &r->json;
    for (int i = 0; i < PLUMB_STATISTICS; i++) {
        if (json_is(json, statistics[i]))
            return read_value(r, &fields->statistic[i], err);
        if (json_is(json, finite[i]))
            return read_value(r, &fields->kept.finite[i], err);
    }
    if (json_is(json, "name"))
        return read_text(r, &fields->name, err);
    if (json_is(json, "dtype"))
        return read_text(r, &fields->dtype, err);
    if (json_is(json, "crc32"))
        return read_text(r, &fields->kept.crc32, err);
    if (json_is(json, "shape"))
        return fields->has_shape ? odd(r, "second shape", err) : read_shape(r, fields, err);
    if (json_is(json, "step"))
        return read_integer(r, &fields->step, err);
    if (json_is(json, "rank"))
        return read_integer(r, &fields->rank, err);
    if (json_is(json, "std"))
        return read_value(r, &fields->kept.deviation, err);
    if (json_is(json, "nan"))
        return read_count(r, &fields->kept.nan, err);
    if (json_is(json, "pos_inf"))
        return read_count(r, &fields->kept.pos_inf, err);
    if (json_is(json, "neg_inf"))
        return read_count(r, &fields->kept.neg_inf, err);
    if (json_is(json, "hash"))
        return read_text(r, &fields->kept.hash, err);
    if (json_is(json, "sketch")) {
        enum plumb_code code = condensed_read_sketch(json, r->out->arena, &fields->sketch);
        return code == PLUMB_E_NOMEM ? plumb_no_memory(err) : code ? odd(r, "sketch", err) : code;
    }
    if (json_is(json, "requires_grad")) {
        fields->requires_grad = json_next(json) == JSON_TRUE;
        return PLUMB_OK;
    }
    return json_skip(json, JSON_KEY) ? PLUMB_OK : json_fail(json, 0, err);
}

/* A record from what was read; a tensor that cannot be is one with an error. */
static enum plumb_code add_tensor(struct reader *r, struct fields *fields, struct plumb_error *err)
{
    struct listing *out = r->out;
    struct plumb_error why;
    enum plumb_dtype dtype = plumb_dtype_from_name(fields->dtype);
    struct plumb_record *record = listing_add(out, fields->name, strlen(fields->name));
    struct plumb_recorded *recorded = arena_alloc(out->arena, sizeof *recorded);
    struct plumb_kept *kept = arena_alloc(out->arena, sizeof *kept);
    struct condensed_note *note = arena_alloc(out->arena, sizeof *note);
    if (!record || !recorded || !kept || !note)
        return plumb_no_memory(err);
    *kept = fields->kept;
    kept->sketch = fields->sketch.sketch;
    note->format = r->format;
    record->step = fields->step;
    record->rank = fields->rank;
    record->requires_grad = fields->requires_grad;
    record->detail = note;
    record->absent = true;

    enum plumb_code code = PLUMB_OK;
    if (dtype == PLUMB_DTYPE_COUNT)
        code = plumb_fail(&why, PLUMB_E_UNSUPPORTED, "the unknown type '%.40s'", fields->dtype);
    else if (fields->too_deep)
        code = plumb_fail(&why, PLUMB_E_FORMAT, "more than %d dimensions", PLUMB_MAX_RANK);
    else if (fields->sketch.sketch &&
             !condensed_fit_sketch(&fields->sketch, dtype, fields->ndim, fields->shape))
        code = plumb_fail(&why, PLUMB_E_FORMAT, "a sketch of another shape");
    else
        code = listing_set_shape(out, record, dtype, fields->ndim, fields->shape, &why);
    if (code)
        return code == PLUMB_E_NOMEM || listing_fail(out, record, &why) ? plumb_no_memory(err)
                                                                        : PLUMB_OK;

    kept->dtype = dtype;
    char shape[1536];
    plumb_dims_text(fields->ndim, fields->shape, shape, sizeof shape);
    *recorded = (struct plumb_recorded){
        .tensor = true,
        .exact = true,
        .type = "torch.Tensor",
        .dtype = fields->dtype,
        .shape = arena_copy(out->arena, shape, strlen(shape)),
        .checksum = kept->crc32,
        .data_name = r->file,
    };
    record->recorded = recorded;
    struct plumb_recorded_rest *rest = recorded_rest(recorded, out->arena);
    bool good = recorded->shape && rest;
    if (rest)
        rest->kept = kept;
    for (unsigned i = 0; i < PLUMB_STATISTICS; i++)
        good = good && recorded_set_statistic(recorded, i, &fields->statistic[i], out->arena);
    return good ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code read_tensor(struct reader *r, struct plumb_error *err)
{
    struct fields fields = {.step = -1, .rank = -1, .requires_grad = -1};
    enum json_event event;
    while ((event = json_next(&r->json)) == JSON_KEY) {
        enum plumb_code code = read_field(r, &fields, err);
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END)
        return odd(r, "tensor", err);
    if (!fields.name || !fields.dtype || !fields.has_shape)
        return plumb_fail_at(err, PLUMB_E_FORMAT, r->json.start,
                             "a condensed tensor without name, dtype or shape");
    return add_tensor(r, &fields, err);
}

static enum plumb_code read_tensors(struct reader *r, struct plumb_error *err)
{
    enum json_event event = json_next(&r->json);
    if (event != JSON_ARRAY)
        return odd(r, "list of tensors", err);
    if (!r->file || !r->format)
        return plumb_fail_at(err, PLUMB_E_FORMAT, r->json.start,
                             "a condensed file that does not say what it was");
    while ((event = json_next(&r->json)) == JSON_OBJECT) {
        enum plumb_code code = read_tensor(r, err);
        if (code)
            return code;
    }
    return event == JSON_ARRAY_END ? PLUMB_OK : odd(r, "list of tensors", err);
}

static enum plumb_code read_version(struct reader *r, struct plumb_error *err)
{
    int64_t version;
    enum plumb_code code = read_integer(r, &version, err);
    if (!code && (version < 1 || version > CONDENSED_VERSION))
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "condensed form %" PRId64 ", but this plumb reads forms 1 to %d only",
                          version, CONDENSED_VERSION);
    return code;
}

static enum plumb_code read_member(struct reader *r, struct plumb_error *err)
{
    if (json_is(&r->json, "plumb_condensed"))
        return read_version(r, err);
    if (json_is(&r->json, "file"))
        return read_text(r, &r->file, err);
    if (json_is(&r->json, "format"))
        return read_text(r, &r->format, err);
    if (json_is(&r->json, "tensors"))
        return read_tensors(r, err);
    return json_skip(&r->json, JSON_KEY) ? PLUMB_OK : json_fail(&r->json, 0, err);
}

static enum plumb_code list(struct listing *out, const struct plumb_file *file,
                            struct plumb_error *err)
{
    struct reader r = {.out = out};
    size_t before = out->count;
    json_init(&r.json, file->data, file->size);
    if (json_next(&r.json) != JSON_OBJECT)
        return odd(&r, "beginning", err);
    enum json_event event;
    while ((event = json_next(&r.json)) == JSON_KEY) {
        enum plumb_code code = read_member(&r, err);
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END || json_next(&r.json) != JSON_END)
        return odd(&r, "end", err);
    if (out->count == before)
        return plumb_fail(err, PLUMB_E_FORMAT, "a condensed file without tensors");
    return PLUMB_OK;
}

/* Every record has a detail, so this is what loading one comes to. */
static enum plumb_code refuse(const struct plumb_record *record, const struct plumb_file *file,
                              void **owned, uint64_t *bytes, struct plumb_error *err)
{
    (void)record, (void)file, (void)owned, (void)bytes;
    return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                      "condensed: its statistics were kept, its values were not");
}

const struct format format_condensed = {.name = "condensed",
                                        .endings = CONDENSED_ENDING,
                                        .recorded = true,
                                        .probe = probe,
                                        .list = list,
                                        .read = refuse};

/* -- What belongs to a dump.json ------------------------------------------------------------ */

enum plumb_code condensed_add(struct plumb_recorded *recorded, const struct plumb_record *record,
                              struct arena *arena)
{
    const struct plumb_recorded *kept = record->recorded;
    for (unsigned i = 0; i < PLUMB_STATISTICS; i++) {
        const struct plumb_value value = plumb_recorded_statistic(kept, i);
        if (recorded->statistic_kind[i] == PLUMB_VALUE_NONE &&
            !recorded_set_statistic(recorded, i, &value, arena))
            return PLUMB_E_NOMEM;
    }
    struct plumb_recorded_rest *rest = recorded_rest(recorded, arena);
    if (!rest)
        return PLUMB_E_NOMEM;
    rest->kept = plumb_recorded_kept(kept);
    /* Statistics say more: a checksum must not make this a run of checksums. */
    if (!recorded->checksum && !plumb_recorded_has_statistics(recorded) && record->count)
        recorded->checksum = kept->checksum;
    return PLUMB_OK;
}

enum plumb_code condensed_complete(struct plumb_recorded *recorded, const char *path,
                                   struct arena *arena, bool *found)
{
    struct plumb_error ignored;
    struct mapped in;
    struct listing listing = {.arena = arena};
    *found = false;
    listing.path = arena_printf(arena, "%s" CONDENSED_ENDING, path);
    if (!listing.path)
        return PLUMB_E_NOMEM;
    if (mapped_open(&in, listing.path, &ignored))
        return PLUMB_OK;
    enum plumb_code code = format_list(&format_condensed, &listing, &in.file, &ignored);
    code = mapped_close(&in, code, &ignored);
    if (code)
        return code == PLUMB_E_NOMEM ? code : PLUMB_OK;
    *found = listing.count == 1 && listing.records[0].recorded;
    if (*found)
        return condensed_add(recorded, &listing.records[0], arena);
    return PLUMB_OK;
}

/* -- What a script left --------------------------------------------------------------------- */

bool condensed_is_reduced(const char *path)
{
    static const char ending[] = "_min_max.npX"; /* .npy or .npz */
    size_t length = strlen(path), tail = sizeof ending - 1;
    return length > tail && memcmp(path + length - tail, ending, tail - 1) == 0 &&
           (path[length - 1] == 'y' || path[length - 1] == 'z');
}

bool condensed_original(const char *path, char *out, size_t size)
{
    size_t length = strlen(path), tail = sizeof CONDENSED_ENDING - 1;
    const char *ending = "";
    if (length > tail && strcmp(path + length - tail, CONDENSED_ENDING) == 0) {
        length -= tail;
    } else if (condensed_is_reduced(path)) {
        /* The script took the ending of a .npy away, and knows no other. */
        ending = path[length - 1] == 'y' ? ".npy" : "";
        length -= sizeof "_min_max.npy" - 1;
    } else {
        return false;
    }
    if (!out)
        return true;
    int wanted = snprintf(out, size, "%.*s%s", (int)length, path, ending);
    return wanted >= 0 && (size_t)wanted < size;
}
