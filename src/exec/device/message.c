/* What a worker is told: settings and calls as JSON, tensors beside them in shared memory. */
#define _POSIX_C_SOURCE 200809L
#include "exec/device/message.h"

#include "base/json_put.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ------------------------------------------------------------------------------------ */

/* With a point or an exponent, so that the reader knows it from an integer. */
static void put_number(struct buf *out, double number)
{
    if (!isfinite(number)) {
        buf_text(out, isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
        return;
    }
    char text[64];
    snprintf(text, sizeof text, "%.*e", DBL_DECIMAL_DIG - 1, number);
    char *point = strchr(text, ','); /* of the caller's locale */
    if (point)
        *point = '.';
    buf_text(out, text);
}

void message_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
}

/* ---- Settings -------------------------------------------------------------------------------- */

bool message_put_setup(struct buf *out, const struct message_setup *setup)
{
    buf_printf(out, "{\"version\":%d,\"device\":", MESSAGE_VERSION);
    json_put_string(out, setup->device);
    buf_printf(out, ",\"threads\":%u,\"jit\":%s,\"imports\":[", setup->threads,
               setup->jit ? "true" : "false");
    for (size_t k = 0; k < setup->n_imports; k++) {
        buf_text(out, k ? "," : "");
        json_put_string(out, setup->imports[k]);
    }
    buf_text(out, "]}");
    return !out->failed;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static enum plumb_code put_tensor(struct message_call *out, const struct plumb_tensor *tensor,
                                  bool grad, struct plumb_error *err)
{
    const uint64_t bytes = plumb_tensor_bytes(tensor);
    if (tensor->swap)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "a tensor in the byte order of another machine");
    if (out->n_places == out->max_places) {
        const size_t room = out->max_places ? 2 * out->max_places : 8;
        void *places = realloc(out->places, room * sizeof *out->places);
        if (!places)
            return plumb_no_memory(err);
        out->places = places;
        out->max_places = room;
    }
    out->places[out->n_places++] = (struct message_place){tensor, out->bytes};
    buf_printf(&out->text, "{\"dtype\":\"%s\",\"at\":%llu,\"grad\":%s,\"shape\":[",
               plumb_dtype_info(tensor->dtype)->name, (unsigned long long)out->bytes,
               grad ? "true" : "false");
    for (unsigned d = 0; d < tensor->rank; d++)
        buf_printf(&out->text, "%s%lld", d ? "," : "", (long long)tensor->shape[d]);
    buf_text(&out->text, "]}");
    if (__builtin_add_overflow(out->bytes, bytes, &out->bytes) || out->bytes > INT64_MAX / 2)
        return plumb_fail(err, PLUMB_E_NOMEM, "the arguments fit into no memory");
    out->bytes = (out->bytes + MESSAGE_ALIGN - 1) / MESSAGE_ALIGN * MESSAGE_ALIGN;
    return PLUMB_OK;
}

static enum plumb_code put_arg(struct message_call *out, const struct plumb_arg *arg,
                               struct plumb_error *err);

static enum plumb_code put_items(struct message_call *out, const struct plumb_arg *items, size_t n,
                                 struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    buf_text(&out->text, "[");
    for (size_t k = 0; k < n && !code; k++) {
        buf_text(&out->text, k ? "," : "");
        code = put_arg(out, &items[k], err);
    }
    buf_text(&out->text, "]");
    return code;
}

/* What was recorded only as something: an integer of many digits, or the name of a type. */
static void put_other(struct buf *out, const char *text)
{
    const size_t digits = text ? strspn(text + (*text == '-'), "0123456789") : 0;
    const bool integer = digits && text[digits + (*text == '-')] == '\0';
    buf_text(out, integer ? "{\"integer\":" : "{\"other\":");
    json_put_string(out, text ? text : "");
    buf_text(out, "}");
}

static enum plumb_code put_arg(struct message_call *out, const struct plumb_arg *arg,
                               struct plumb_error *err)
{
    struct buf *text = &out->text;
    enum plumb_code code = PLUMB_OK;
    switch (arg->kind) {
    case PLUMB_ARG_NONE:
        buf_text(text, "null");
        break;
    case PLUMB_ARG_TENSOR:
        out->n_leaves++;
        buf_text(text, "{\"tensor\":");
        code = put_tensor(out, arg->tensor, arg->requires_grad, err);
        buf_text(text, "}");
        break;
    case PLUMB_ARG_BOOL:
        buf_text(text, arg->integer ? "true" : "false");
        break;
    case PLUMB_ARG_INT:
        buf_printf(text, "%lld", (long long)arg->integer);
        break;
    case PLUMB_ARG_FLOAT:
        put_number(text, arg->number);
        break;
    case PLUMB_ARG_TEXT:
        json_put_string(text, arg->text);
        break;
    case PLUMB_ARG_DTYPE:
        buf_printf(text, "{\"dtype\":\"%s\"}", plumb_dtype_info(arg->dtype)->name);
        break;
    case PLUMB_ARG_LIST:
        code = put_items(out, arg->items, arg->n_items, err);
        break;
    case PLUMB_ARG_SLICE:
        buf_text(text, "{\"slice\":");
        code = put_items(out, arg->items, arg->n_items, err);
        buf_text(text, "}");
        break;
    case PLUMB_ARG_ELLIPSIS:
        buf_text(text, "{\"ellipsis\":true}");
        break;
    case PLUMB_ARG_DEVICE:
        buf_text(text, "{\"device\":");
        json_put_string(text, arg->text);
        buf_text(text, "}");
        break;
    case PLUMB_ARG_OTHER:
        put_other(text, arg->text);
        break;
    case PLUMB_ARG_COMPLEX:
        buf_text(text, "{\"complex\":[");
        put_number(text, arg->number);
        buf_text(text, ",");
        put_number(text, arg->imaginary);
        buf_text(text, "]}");
        break;
    }
    return code;
}

static enum plumb_code put_grads(struct message_call *out, const struct plumb_call *call,
                                 struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    buf_text(&out->text, "],\"grads\":[");
    for (size_t k = 0; k < call->n_grads && !code; k++) {
        buf_text(&out->text, k ? "," : "");
        if (call->grads[k])
            code = put_tensor(out, call->grads[k], false, err);
        else
            buf_text(&out->text, "null");
    }
    buf_text(&out->text, "]");
    return code;
}

enum plumb_code message_put_call(struct message_call *out, const struct plumb_call *call,
                                 bool raised, uint64_t memory, struct plumb_error *err)
{
    *out = (struct message_call){0};
    enum plumb_code code = PLUMB_OK;
    buf_printf(&out->text, "{\"raise\":%s,\"prefix\":", raised ? "true" : "false");
    json_put_string(&out->text, call->prefix ? call->prefix : "");
    buf_text(&out->text, ",\"name\":");
    json_put_string(&out->text, call->name);
    buf_text(&out->text, ",\"args\":[");
    for (size_t k = 0; k < call->n_args && !code; k++) {
        buf_text(&out->text, k ? "," : "");
        code = put_arg(out, &call->args[k], err);
    }
    out->arg_leaves = out->n_leaves;
    if (!code)
        code = put_grads(out, call, err);
    buf_text(&out->text, ",\"kwargs\":{");
    for (size_t k = 0; k < call->n_kwargs && !code; k++) {
        buf_text(&out->text, k ? "," : "");
        json_put_string(&out->text, call->kwargs[k].name);
        buf_text(&out->text, ":");
        code = put_arg(out, &call->kwargs[k].value, err);
    }
    const unsigned long long bytes = out->bytes, limit = bytes + memory / 4;
    buf_printf(&out->text, "},\"free\":%llu,\"limit\":%llu,\"memory\":%llu}", bytes, limit,
               (unsigned long long)memory);
    if (!code && out->text.failed)
        code = plumb_no_memory(err);
    if (code)
        message_call_destroy(out);
    return code;
}

void message_call_destroy(struct message_call *call)
{
    buf_free(&call->text);
    free(call->places);
    *call = (struct message_call){0};
}

void message_put_tensors(const struct message_call *call, void *base)
{
    for (size_t k = 0; k < call->n_places; k++) {
        const struct plumb_tensor *tensor = call->places[k].tensor;
        if (tensor->count)
            plumb_tensor_gather(tensor, 0, (size_t)tensor->count,
                                (unsigned char *)base + call->places[k].at);
    }
}
