/* Answers of a worker. Nothing in them is believed: not sizes, not places, not counts. */
#include "base/json.h"
#include "exec/device/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RESULTS = 1 << 20 };

struct reader {
    struct json json;
    struct arena *arena;
    struct plumb_error *err;
    const unsigned char *base;
    uint64_t memory; /* bytes at base */
    uint64_t left;   /* bytes of tensors that may still come: places may not be used twice over */
};

static enum plumb_code lie(struct reader *r, const char *what)
{
    return plumb_fail(r->err, PLUMB_E_FORMAT, "the worker's answer makes no sense: %s", what);
}

static enum plumb_code damaged(struct reader *r)
{
    return lie(r, "it is not the JSON that was agreed on");
}

static enum plumb_code no_memory(struct reader *r)
{
    return plumb_no_memory(r->err);
}

static enum plumb_code skip(struct reader *r, enum json_event event)
{
    return json_skip(&r->json, event) ? PLUMB_OK : damaged(r);
}

/* A string, cut to size and made fit for a message. */
static enum plumb_code get_text(struct reader *r, char *out, size_t size)
{
    struct arena scratch = {0};
    size_t length;
    char *text = json_copy(&r->json, &scratch, &length);
    snprintf(out, size, "%s", text ? text : "?");
    message_clean(out);
    arena_free(&scratch);
    return PLUMB_OK;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

static enum plumb_code get_shape(struct reader *r, int64_t *shape, unsigned *rank)
{
    enum json_event event = json_next(&r->json);
    if (event != JSON_ARRAY)
        return lie(r, "a shape is no list");
    for (*rank = 0; (event = json_next(&r->json)) != JSON_ARRAY_END; ++*rank)
        if (event != JSON_NUMBER || *rank == PLUMB_MAX_RANK || !json_int64(&r->json, &shape[*rank]))
            return lie(r, "a shape holds what is no size");
    return PLUMB_OK;
}

static enum plumb_code take_tensor(struct reader *r, enum plumb_dtype dtype, unsigned rank,
                                   const int64_t *shape, int64_t at, struct plumb_arg *out)
{
    struct plumb_tensor *tensor = arena_alloc(r->arena, sizeof *tensor);
    if (!tensor)
        return no_memory(r);
    if (dtype == PLUMB_DTYPE_COUNT)
        return lie(r, "a tensor of a type that plumb does not know");
    if (plumb_tensor_init(tensor, dtype, rank, shape, NULL))
        return lie(r, "a tensor of an impossible shape");
    const uint64_t bytes = plumb_tensor_bytes(tensor);
    if (bytes && (at < 0 || (uint64_t)at > r->memory || bytes > r->memory - (uint64_t)at))
        return lie(r, "a tensor outside the shared memory");
    if (bytes > r->left)
        return lie(r, "more tensors than the shared memory holds");
    r->left -= bytes;
    void *data = arena_alloc(r->arena, (size_t)bytes);
    if (!data)
        return no_memory(r);
    if (bytes)
        memcpy(data, r->base + at, (size_t)bytes);
    tensor->data = data;
    *out = (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = tensor};
    return PLUMB_OK;
}

static enum plumb_code get_tensor(struct reader *r, struct plumb_arg *out)
{
    enum plumb_dtype dtype = PLUMB_DTYPE_COUNT;
    int64_t shape[PLUMB_MAX_RANK], at = -1;
    unsigned rank = 0;
    bool has_shape = false;
    enum json_event event = json_next(&r->json);
    if (event != JSON_OBJECT)
        return lie(r, "a tensor is no object");
    while ((event = json_next(&r->json)) == JSON_KEY) {
        enum plumb_code code = PLUMB_OK;
        char name[32] = "";
        if (json_is(&r->json, "shape")) {
            has_shape = true;
            code = get_shape(r, shape, &rank);
        } else if (json_is(&r->json, "dtype")) {
            if (json_next(&r->json) != JSON_STRING)
                return lie(r, "a type is no text");
            get_text(r, name, sizeof name);
            dtype = plumb_dtype_from_name(name);
        } else if (json_is(&r->json, "at")) {
            if (json_next(&r->json) != JSON_NUMBER || !json_int64(&r->json, &at))
                return lie(r, "a place is no integer");
        } else {
            code = skip(r, JSON_KEY);
        }
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END)
        return damaged(r);
    return has_shape ? take_tensor(r, dtype, rank, shape, at, out)
                     : lie(r, "a tensor without a shape");
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* An object with one key, which says what it is. */
static enum plumb_code get_object(struct reader *r, struct plumb_arg *out)
{
    if (json_next(&r->json) != JSON_KEY)
        return lie(r, "a result is an empty object");
    enum plumb_code code = PLUMB_OK;
    *out = (struct plumb_arg){.kind = PLUMB_ARG_OTHER};
    if (json_is(&r->json, "tensor")) {
        code = get_tensor(r, out);
    } else if (json_is(&r->json, "float")) {
        if (json_next(&r->json) != JSON_NUMBER)
            return lie(r, "a float is no number");
        *out = (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = json_double(&r->json)};
    } else {
        code = skip(r, JSON_KEY);
    }
    if (!code && json_next(&r->json) != JSON_OBJECT_END)
        return lie(r, "a result is two things at once");
    return code;
}

static enum plumb_code get_value(struct reader *r, enum json_event event, struct plumb_arg *out)
{
    size_t length;
    *out = (struct plumb_arg){.kind = PLUMB_ARG_NONE};
    switch (event) {
    case JSON_NULL:
        return PLUMB_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = event == JSON_TRUE};
        return PLUMB_OK;
    case JSON_NUMBER:
        out->kind = PLUMB_ARG_INT;
        return json_int64(&r->json, &out->integer) ? PLUMB_OK : lie(r, "an integer does not fit");
    case JSON_STRING:
        out->kind = PLUMB_ARG_TEXT;
        out->text = json_copy(&r->json, r->arena, &length);
        return out->text ? PLUMB_OK : damaged(r);
    case JSON_OBJECT:
        return get_object(r, out);
    default:
        return lie(r, "a result is of no known kind");
    }
}

static enum plumb_code get_values(struct reader *r, struct plumb_arg **out, size_t *n)
{
    struct plumb_arg *values = NULL;
    size_t room = 0;
    enum json_event event = json_next(&r->json);
    *n = 0;
    if (event != JSON_ARRAY)
        return lie(r, "the results are no list");
    while ((event = json_next(&r->json)) != JSON_ARRAY_END) {
        if (event == JSON_ERROR)
            return damaged(r);
        if (*n == MAX_RESULTS)
            return lie(r, "too many results");
        if (*n == room) {
            room = room ? 2 * room : 4;
            struct plumb_arg *more = arena_array(r->arena, room, sizeof *more);
            if (!more)
                return no_memory(r);
            if (*n)
                memcpy(more, values, *n * sizeof *more);
            values = more;
        }
        enum plumb_code code = get_value(r, event, &values[(*n)++]);
        if (code)
            return code;
    }
    *out = values;
    return PLUMB_OK;
}

/* ---- Answers --------------------------------------------------------------------------------- */

struct answer {
    char error[400], kind[16];
    bool is_error, has_outputs, has_grads;
    int64_t ready, arg_grads;
    size_t n_written;
};

static enum plumb_code get_integer(struct reader *r, int64_t *out)
{
    return json_next(&r->json) == JSON_NUMBER && json_int64(&r->json, out)
               ? PLUMB_OK
               : lie(r, "a number is no integer");
}

static enum plumb_code get_note(struct reader *r, const char **out)
{
    char text[400];
    enum plumb_code code = get_text(r, text, sizeof text);
    if (!code && !(*out = arena_copy(r->arena, text, strlen(text))))
        code = no_memory(r);
    return code;
}

static enum plumb_code get_field(struct reader *r, struct answer *answer,
                                 struct plumb_result *result)
{
    if (json_is(&r->json, "error")) {
        answer->is_error = true;
        return json_next(&r->json) == JSON_STRING ? get_text(r, answer->error, sizeof answer->error)
                                                  : lie(r, "an error is no text");
    }
    if (json_is(&r->json, "kind"))
        return json_next(&r->json) == JSON_STRING ? get_text(r, answer->kind, sizeof answer->kind)
                                                  : lie(r, "a kind of error is no text");
    if (json_is(&r->json, "ready"))
        return get_integer(r, &answer->ready);
    if (result && json_is(&r->json, "arg_grads"))
        return get_integer(r, &answer->arg_grads);
    if (result && json_is(&r->json, "outputs") && !answer->has_outputs) {
        answer->has_outputs = true;
        return get_values(r, &result->outputs, &result->n_outputs);
    }
    if (result && json_is(&r->json, "grads") && !answer->has_grads) {
        answer->has_grads = true;
        return get_values(r, &result->grads, &result->n_grads);
    }
    if (result && json_is(&r->json, "written") && !result->written)
        return get_values(r, &result->written, &answer->n_written);
    if (result && json_is(&r->json, "note") && !result->note)
        return json_next(&r->json) == JSON_STRING ? get_note(r, &result->note)
                                                  : lie(r, "a note is no text");
    if (result && json_is(&r->json, "tuple")) {
        const enum json_event event = json_next(&r->json);
        result->tuple = event == JSON_TRUE;
        return event == JSON_TRUE || event == JSON_FALSE ? PLUMB_OK : damaged(r);
    }
    return skip(r, JSON_KEY);
}

static enum plumb_code get_answer(struct reader *r, const char *text, size_t size,
                                  struct answer *answer, struct plumb_result *result)
{
    *answer = (struct answer){.arg_grads = -1};
    json_init(&r->json, text, size);
    if (json_next(&r->json) != JSON_OBJECT)
        return damaged(r);
    enum json_event event;
    while ((event = json_next(&r->json)) == JSON_KEY) {
        enum plumb_code code = get_field(r, answer, result);
        if (code)
            return code;
    }
    return event == JSON_OBJECT_END && json_next(&r->json) == JSON_END ? PLUMB_OK : damaged(r);
}

enum plumb_code message_get_ready(const char *text, size_t size, char kind[16],
                                  struct plumb_error *err)
{
    struct reader r = {.err = err};
    struct answer answer;
    *kind = '\0';
    enum plumb_code code = get_answer(&r, text, size, &answer, NULL);
    if (code)
        return code;
    if (answer.is_error) {
        snprintf(kind, 16, "%s", answer.kind);
        return plumb_fail(err, PLUMB_E_IO, "%s", answer.error);
    }
    if (answer.ready != MESSAGE_VERSION)
        return plumb_fail(err, PLUMB_E_IO,
                          "worker.py speaks version %lld, plumb %d: they are of different releases",
                          (long long)answer.ready, MESSAGE_VERSION);
    return PLUMB_OK;
}

static enum plumb_code told_error(const struct answer *answer, struct plumb_error *err)
{
    if (strcmp(answer->kind, "refused") == 0)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "%s", answer->error);
    if (strcmp(answer->kind, "memory") == 0)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory: %s", answer->error);
    return plumb_fail(err, PLUMB_E_ARG, "%s", answer->error);
}

static enum plumb_code check_counts(struct reader *r, const struct answer *answer,
                                    const struct message_call *call,
                                    const struct plumb_result *result)
{
    if (!answer->has_outputs || !answer->has_grads)
        return lie(r, "it has no results");
    if (result->n_grads != call->n_leaves || answer->arg_grads != (int64_t)call->arg_leaves)
        return lie(r, "it has not one gradient for each tensor");
    for (size_t k = 0; k < result->n_grads; k++)
        if (result->grads[k].kind != PLUMB_ARG_NONE && result->grads[k].kind != PLUMB_ARG_TENSOR)
            return lie(r, "a gradient is no tensor");
    if (result->written && answer->n_written != call->n_leaves)
        return lie(r, "it does not say of each tensor what was written into it");
    for (size_t k = 0; k < answer->n_written; k++)
        if (result->written[k].kind != PLUMB_ARG_NONE &&
            result->written[k].kind != PLUMB_ARG_TENSOR)
            return lie(r, "what was written is no tensor");
    return PLUMB_OK;
}

enum plumb_code message_get_result(const char *text, size_t size, const struct message_call *call,
                                   const void *base, uint64_t memory, struct plumb_result *out,
                                   struct plumb_error *err)
{
    struct answer answer;
    *out = (struct plumb_result){0};
    struct arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return plumb_no_memory(err);
    struct reader r = {.arena = arena, .err = err, .base = base, .memory = memory, .left = memory};
    out->memory = arena;
    enum plumb_code code = get_answer(&r, text, size, &answer, out);
    if (!code && answer.is_error)
        code = told_error(&answer, err);
    else if (!code)
        code = check_counts(&r, &answer, call, out);
    out->n_arg_grads = call->arg_leaves;
    if (code)
        plumb_result_destroy(out);
    return code;
}
