/* Objects with a type: what was recorded about tensors, numbers, slices, ... */
#include "dump/call_parse.h"
#include "dump/outline.h"
#include "dump/uninitialised.h"

#include <string.h>

static enum plumb_code parse_limit(struct case_parser *p, enum json_event event,
                                   struct case_limit *out)
{
    *out = (struct case_limit){.kind = LIMIT_OTHER};
    switch (event) {
    case JSON_NULL:
        out->kind = LIMIT_NULL;
        return PLUMB_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        out->kind = LIMIT_BOOL;
        out->integer = event == JSON_TRUE;
        out->number = (double)out->integer;
        return PLUMB_OK;
    case JSON_NUMBER:
        out->number = json_double(&p->json);
        out->kind = case_is_integer(&p->json) ? LIMIT_INT : LIMIT_FLOAT;
        if (out->kind == LIMIT_INT && !json_int64(&p->json, &out->integer))
            out->integer = out->number < 0 ? INT64_MIN : INT64_MAX;
        return PLUMB_OK;
    default:
        return case_skip(p, event);
    }
}

/* numpy scalars are recorded under their bare names. */
static bool is_numpy_scalar(const struct json *json)
{
    static const char *const names[] = {
        "bool_",  "int8",    "int16",   "int32",   "int64",     "uint8",      "uint16", "uint32",
        "uint64", "float16", "float32", "float64", "complex64", "complex128", "str_",   "bytes_",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_is(json, names[i]))
            return true;
    return json->length > 6 && memcmp(json->text, "numpy.", 6) == 0;
}

static enum plumb_code parse_type(struct case_parser *p, enum json_event event,
                                  struct case_fields *f)
{
    static const struct {
        const char *name;
        enum case_type type;
    } types[] = {
        {"torch.Tensor", TYPE_TENSOR},   {"int", TYPE_PLAIN},
        {"float", TYPE_FLOAT},           {"torch.nn.parameter.Parameter", TYPE_TENSOR},
        {"slice", TYPE_SLICE},           {"ellipsis", TYPE_ELLIPSIS},
        {"torch.Size", TYPE_SIZE},       {"torch.dtype", TYPE_DTYPE},
        {"torch.device", TYPE_DEVICE},   {"torch.memory_format", TYPE_MEMORY_FORMAT},
        {"numpy.ndarray", TYPE_NDARRAY}, {"complex", TYPE_COMPLEX},
    };
    f->type = TYPE_NONE;
    if (event != JSON_STRING)
        return case_skip(p, event);
    f->type = TYPE_PLAIN;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (json_is(&p->json, types[i].name)) {
            f->type = types[i].type;
            f->type_text = types[i].name;
            f->numpy = f->type == TYPE_NDARRAY;
            return PLUMB_OK;
        }
    }
    f->numpy = is_numpy_scalar(&p->json);
    enum plumb_code code = case_text(p, &f->type_text);
    if (f->numpy && !code && strstr(f->type_text, "float"))
        f->type = TYPE_FLOAT;
    return code;
}

static enum plumb_code parse_string(struct case_parser *p, enum json_event event, const char **out)
{
    *out = NULL;
    return event == JSON_STRING ? case_text(p, out) : case_skip(p, event);
}

static enum plumb_code parse_field(struct case_parser *p, struct case_fields *f)
{
    enum {
        TYPE,
        DTYPE,
        SHAPE,
        MAX,
        MIN,
        GRAD,
        VALUE,
        DATA_NAME,
        DATAPATH,
        MAX_FINITE,
        MIN_FINITE,
        DTENSOR,
        VMAP,
        UNINITIALISED,
    };
    static const char *const names[] = {
        [TYPE] = "type",
        [DTYPE] = "dtype",
        [SHAPE] = "shape",
        [MAX] = "Max",
        [MIN] = "Min",
        [GRAD] = "requires_grad",
        [VALUE] = "value",
        [DATA_NAME] = "data_name",
        [DATAPATH] = "datapath",
        [MAX_FINITE] = "Max_except_inf_nan",
        [MIN_FINITE] = "Min_except_inf_nan",
        [DTENSOR] = "dtensor",
        [VMAP] = "vmap",
        [UNINITIALISED] = DUMP_UNINITIALISED,
    };
    size_t name = 0;
    while (name < sizeof names / sizeof names[0] && !json_is(&p->json, names[name]))
        name++;
    if (name == SHAPE)
        f->shape = p->json;
    if (name == DTENSOR)
        return outline_spread(&p->json, &f->spread) ? case_damaged(p) : PLUMB_OK;
    enum json_event event = json_next(&p->json);
    switch (name) {
    case TYPE:
        return parse_type(p, event, f);
    case VMAP:
        f->batched = true;
        return case_skip(p, event);
    case DTYPE:
        return parse_string(p, event, &f->dtype);
    case SHAPE:
        f->has_shape = true;
        return case_skip(p, event);
    case MAX:
        return parse_limit(p, event, &f->max);
    case MIN:
        return parse_limit(p, event, &f->min);
    case GRAD:
        f->requires_grad = event == JSON_TRUE;
        return case_skip(p, event);
    case UNINITIALISED:
        f->uninitialised = event == JSON_TRUE;
        return case_skip(p, event);
    case VALUE:
        f->has_value = true;
        return case_plain(p, event, &f->value);
    case DATA_NAME:
        return parse_string(p, event, &f->data_name);
    case DATAPATH:
        return parse_string(p, event, &f->datapath);
    case MAX_FINITE:
        return parse_limit(p, event, &f->max_finite);
    case MIN_FINITE:
        return parse_limit(p, event, &f->min_finite);
    default:
        return case_skip(p, event);
    }
}

enum plumb_code case_fields(struct case_parser *p, struct case_fields *f)
{
    *f = (struct case_fields){.type = TYPE_NONE};
    enum json_event event;
    while ((event = json_next(&p->json)) == JSON_KEY) {
        enum plumb_code code = parse_field(p, f);
        if (code)
            return code;
    }
    return event == JSON_OBJECT_END ? PLUMB_OK : case_damaged(p);
}

/* p stands before the value of "shape". */
static enum plumb_code parse_shape(struct case_parser *p, struct case_tensor *tensor)
{
    int64_t shape[PLUMB_MAX_RANK], bytes = 16; /* no element is larger */
    unsigned rank = 0;
    bool empty = false, overflow = false;
    enum json_event event = json_next(&p->json);
    if (event != JSON_ARRAY)
        return case_fail(p, "the shape of a tensor must be a list of sizes");
    while ((event = json_next(&p->json)) != JSON_ARRAY_END) {
        if (rank == PLUMB_MAX_RANK)
            return case_fail(p, "a tensor of more than %d dimensions", PLUMB_MAX_RANK);
        int64_t *size = &shape[rank++];
        int shown = p->json.length < 40 ? (int)p->json.length : 40;
        if (event != JSON_NUMBER)
            return case_fail(p, "the shape of a tensor holds something that is no size");
        if (!json_int64(&p->json, size) || *size < 0)
            return case_fail(p, "the shape of a tensor holds the size %.*s", shown, p->json.text);
        empty |= *size == 0;
        overflow |= __builtin_mul_overflow(bytes, *size, &bytes);
    }
    if (overflow && !empty)
        return case_fail(p, "a tensor of that shape fits into no memory");
    int64_t *copy = arena_array(p->arena, rank, sizeof *copy);
    if (!copy)
        return case_no_memory(p);
    memcpy(copy, shape, rank * sizeof *copy);
    tensor->shape = copy;
    tensor->rank = rank;
    return PLUMB_OK;
}

static enum plumb_code take_tensor(struct case_parser *p, const struct case_fields *f,
                                   struct case_arg *out)
{
    if (!f->has_shape)
        return case_fail(p, "a tensor without a shape");
    if (f->spread)
        return case_fail(p, "tensors of it are spread over processes, and one process has a part");
    if (f->batched)
        return case_fail(p, "it was called under vmap, and tensors of it hold the whole batch");
    struct case_tensor *tensor = arena_alloc(p->arena, sizeof *tensor);
    if (!tensor)
        return case_no_memory(p);
    tensor->dtype_name = f->dtype ? f->dtype : "";
    tensor->dtype = plumb_dtype_from_name(tensor->dtype_name);
    tensor->min = f->min;
    tensor->max = f->max;
    tensor->min_finite = f->min_finite;
    tensor->max_finite = f->max_finite;
    tensor->requires_grad = f->requires_grad;
    tensor->uninitialised = f->uninitialised;
    tensor->data_name = f->datapath ? f->datapath : f->data_name;
    out->value = (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .requires_grad = f->requires_grad};
    out->tensor = tensor;
    struct case_parser inside = *p;
    inside.json = f->shape;
    return parse_shape(&inside, tensor);
}

static bool is_slice(const struct case_arg *value)
{
    bool good = value->value.kind == PLUMB_ARG_LIST && value->n_items == 3;
    for (size_t i = 0; good && i < 3; i++)
        good = value->items[i].value.kind == PLUMB_ARG_INT ||
               value->items[i].value.kind == PLUMB_ARG_NONE;
    return good;
}

/* Its two parts, which stand in a list. */
static bool take_complex(struct case_arg *value)
{
    double parts[2] = {0, 0};
    bool good = value->value.kind == PLUMB_ARG_LIST && value->n_items == 2;
    for (size_t i = 0; good && i < 2; i++) {
        const struct plumb_arg *part = &value->items[i].value;
        good = part->kind == PLUMB_ARG_FLOAT || part->kind == PLUMB_ARG_INT;
        parts[i] = part->kind == PLUMB_ARG_FLOAT ? part->number : (double)part->integer;
    }
    if (good)
        value->value = (struct plumb_arg){
            .kind = PLUMB_ARG_COMPLEX, .number = parts[0], .imaginary = parts[1]};
    return good;
}

static enum plumb_code take_device(struct case_parser *p, struct plumb_arg *value)
{
    if (value->kind == PLUMB_ARG_INT)
        value->text = arena_printf(p->arena, "%lld", (long long)value->integer);
    if (!value->text && value->kind == PLUMB_ARG_INT)
        return case_no_memory(p);
    value->kind = value->text ? PLUMB_ARG_DEVICE : PLUMB_ARG_OTHER;
    return PLUMB_OK;
}

enum plumb_code case_object(struct case_parser *p, const struct case_fields *f,
                            struct case_arg *out)
{
    if (f->type == TYPE_TENSOR)
        return take_tensor(p, f, out);
    *out = f->value;
    out->numpy = f->numpy;
    struct plumb_arg *value = &out->value;
    bool good = f->has_value;
    switch (f->type) {
    case TYPE_MEMORY_FORMAT:
        value->kind = PLUMB_ARG_NONE;
        return PLUMB_OK;
    case TYPE_ELLIPSIS:
        value->kind = PLUMB_ARG_ELLIPSIS;
        return PLUMB_OK;
    case TYPE_DEVICE:
        return take_device(p, value);
    case TYPE_FLOAT:
        if (value->kind == PLUMB_ARG_INT) {
            value->kind = PLUMB_ARG_FLOAT;
            value->number = (double)value->integer;
        }
        break;
    case TYPE_SLICE:
        good = is_slice(out);
        value->kind = PLUMB_ARG_SLICE;
        break;
    case TYPE_COMPLEX:
        good = take_complex(out);
        break;
    case TYPE_SIZE:
        good = value->kind == PLUMB_ARG_LIST;
        break;
    case TYPE_DTYPE:
        value->dtype =
            value->kind == PLUMB_ARG_TEXT ? plumb_dtype_from_name(value->text) : PLUMB_DTYPE_COUNT;
        good = value->dtype != PLUMB_DTYPE_COUNT;
        value->kind = PLUMB_ARG_DTYPE;
        break;
    case TYPE_NDARRAY:
        good = false;
        break;
    default:
        break;
    }
    if (!good) {
        value->kind = PLUMB_ARG_OTHER;
        if (!value->text)
            value->text = f->type_text;
    }
    return PLUMB_OK;
}

enum plumb_code case_typed(struct case_parser *p, struct case_arg *out)
{
    struct case_fields fields;
    enum plumb_code code = case_fields(p, &fields);
    return code ? code : case_object(p, &fields, out);
}
