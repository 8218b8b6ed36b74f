/* A failing call on the disk: a dump that `plumb acc_check` reads (dump.json and its tensors), and
 * beside it outputs.json, of the same form, whose two entries hold what the kernel and what the
 * reference gave. */
#define _GNU_SOURCE
#include "base/folder.h"
#include "base/json_put.h"
#include "base/output.h"
#include "task/guard/guard.h"

#include "plumb/write.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FOLDERS = 100000 };

struct saver {
    char folder[900];
    const char *side; /* in the names of tensor files: "input", "output", "reference" */
    size_t tensors;
    struct buf json;
    struct plumb_error *err;
    enum plumb_code code;
};

static void save_tensor(struct saver *s, const struct plumb_arg *arg)
{
    const struct plumb_tensor *tensor = arg->tensor;
    char name[64], path[1024];
    snprintf(name, sizeof name, "%s.%zu.pt", s->side, s->tensors++);
    snprintf(path, sizeof path, "%s/dump_tensor_data/%s", s->folder, name);
    if (!s->code)
        s->code = plumb_pt_write(path, tensor, s->err);
    buf_printf(&s->json, "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.%s\", \"shape\": [",
               plumb_dtype_info(tensor->dtype)->name);
    for (unsigned k = 0; k < tensor->rank; k++)
        buf_printf(&s->json, "%s%" PRId64, k ? ", " : "", tensor->shape[k]);
    buf_printf(&s->json,
               "], \"Max\": null, \"Min\": null, \"Mean\": null, \"Norm\": null, "
               "\"requires_grad\": %s, \"data_name\": \"%s\"}",
               arg->requires_grad ? "true" : "false", name);
}

static void save_number(struct saver *s, double value)
{
    if (isnan(value))
        buf_text(&s->json, "NaN");
    else if (isinf(value))
        buf_text(&s->json, value > 0 ? "Infinity" : "-Infinity");
    else
        spell_number(&s->json, value);
}

static void save_typed(struct saver *s, const char *type, const char *value)
{
    buf_printf(&s->json, "{\"type\": \"%s\", \"value\": ", type);
    json_put_string(&s->json, value);
    buf_text(&s->json, "}");
}

static void save_list(struct saver *s, const struct plumb_arg *args, size_t n);

static void save_arg(struct saver *s, const struct plumb_arg *arg)
{
    struct buf *out = &s->json;
    char name[64];
    switch (arg->kind) {
    case PLUMB_ARG_NONE:
        buf_text(out, "null");
        break;
    case PLUMB_ARG_TENSOR:
        save_tensor(s, arg);
        break;
    case PLUMB_ARG_BOOL:
        buf_printf(out, "{\"type\": \"bool\", \"value\": %s}", arg->integer ? "true" : "false");
        break;
    case PLUMB_ARG_INT:
        buf_printf(out, "{\"type\": \"int\", \"value\": %" PRId64 "}", arg->integer);
        break;
    case PLUMB_ARG_FLOAT:
        buf_text(out, "{\"type\": \"float\", \"value\": ");
        save_number(s, arg->number);
        buf_text(out, "}");
        break;
    case PLUMB_ARG_TEXT:
        save_typed(s, "str", arg->text);
        break;
    case PLUMB_ARG_DTYPE:
        snprintf(name, sizeof name, "torch.%s", plumb_dtype_info(arg->dtype)->name);
        save_typed(s, "torch.dtype", name);
        break;
    case PLUMB_ARG_DEVICE:
        save_typed(s, "torch.device", arg->text);
        break;
    case PLUMB_ARG_LIST:
        save_list(s, arg->items, arg->n_items);
        break;
    case PLUMB_ARG_SLICE:
        buf_text(out, "{\"type\": \"slice\", \"value\": [");
        for (size_t k = 0; k < arg->n_items; k++) {
            buf_text(out, k ? ", " : "");
            if (arg->items[k].kind == PLUMB_ARG_INT)
                buf_printf(out, "%" PRId64, arg->items[k].integer);
            else
                buf_text(out, "null");
        }
        buf_text(out, "]}");
        break;
    case PLUMB_ARG_ELLIPSIS:
        save_typed(s, "ellipsis", "...");
        break;
    case PLUMB_ARG_OTHER:
        save_typed(s, "str", arg->text ? arg->text : "");
        break;
    case PLUMB_ARG_COMPLEX:
        buf_text(out, "{\"type\": \"complex\", \"value\": [");
        save_number(s, arg->number);
        buf_text(out, ", ");
        save_number(s, arg->imaginary);
        buf_text(out, "]}");
        break;
    }
}

static void save_list(struct saver *s, const struct plumb_arg *args, size_t n)
{
    buf_text(&s->json, "[");
    for (size_t k = 0; k < n; k++) {
        buf_text(&s->json, k ? ", " : "");
        save_arg(s, &args[k]);
    }
    buf_text(&s->json, "]");
}

static void save_head(struct saver *s)
{
    buf_text(&s->json, "{\"task\": \"tensor\", \"level\": \"L1\", \"framework\": \"pytorch\",\n"
                       " \"dump_data_dir\": \"dump_tensor_data\",\n");
}

static void save_file(struct saver *s, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    if (s->json.failed && !s->code)
        s->code = plumb_no_memory(s->err);
    if (!s->code)
        s->code = output_whole(path, s->json.data, s->json.size, false, s->err);
    buf_free(&s->json);
    s->json = (struct buf){0};
}

static void save_outputs(struct saver *s, const struct plumb_guard_case *about,
                         const struct plumb_arg *reference, size_t n_reference)
{
    save_head(s);
    buf_text(&s->json, " \"data\": {\n  \"Aten.kernel.0.forward\": {\"input_args\": ");
    s->side = about->judged ? "judged" : "output";
    s->tensors = 0;
    if (about->judged)
        save_list(s, about->judged, about->n_judged);
    else
        save_list(s, about->outputs, about->n_outputs);
    buf_text(&s->json, ", \"input_kwargs\": {}, \"output\": []},\n"
                       "  \"Aten.reference.0.forward\": {\"input_args\": ");
    s->side = "reference";
    s->tensors = 0;
    save_list(s, reference, n_reference);
    buf_text(&s->json, ", \"input_kwargs\": {}, \"output\": []}}}\n");
    save_file(s, "outputs.json");
}

static void save_call(struct saver *s, const struct plumb_guard_op *op,
                      const struct plumb_guard_case *about, bool raised,
                      const struct plumb_guard_verdict *verdict)
{
    struct buf *out = &s->json;
    const struct plumb_call *call = &about->call;
    save_head(s);
    buf_text(out, " \"precision_check\": {\"op\": ");
    json_put_string(out, op->full);
    buf_text(out, ", \"error\": ");
    json_put_string(out, plumb_fault_name(verdict->found.fault));
    buf_text(out, ", \"message\": ");
    json_put_string(out, verdict->found.message);
    buf_text(out, ", \"judged\": ");
    json_put_string(out, verdict->label);
    buf_text(out, ", \"rtol\": ");
    spell_number(out, verdict->found.rtol);
    buf_text(out, ", \"atol\": ");
    spell_number(out, verdict->found.atol);
    buf_printf(out, ", \"reference\": \"%s\", \"derived\": %s, \"stack\": ",
               raised ? "float64" : "native", about->judged ? "true" : "false");
    json_put_string(out, about->where ? about->where : "");
    buf_text(out, "},\n \"data\": {\n  ");
    char name[256];
    snprintf(name, sizeof name, "Aten.%s.0.forward", op->name);
    json_put_string(out, name);
    buf_text(out, ": {\"input_args\": ");
    s->side = "input";
    s->tensors = 0;
    save_list(s, call->args, call->n_args);
    buf_text(out, ", \"input_kwargs\": {");
    for (size_t k = 0; k < call->n_kwargs; k++) {
        buf_text(out, k ? ", " : "");
        json_put_string(out, call->kwargs[k].name);
        buf_text(out, ": ");
        save_arg(s, &call->kwargs[k].value);
    }
    buf_text(out, "}, \"output\": ");
    s->side = "output";
    s->tensors = 0;
    save_list(s, about->outputs, about->n_outputs);
    buf_text(out, "}}}\n");
    save_file(s, "dump.json");
}

/* A folder that nobody else has: several processes may save here. */
static void make_folder(struct saver *s, const struct plumb_guard *guard,
                        const struct plumb_guard_op *op)
{
    char name[128];
    snprintf(name, sizeof name, "%s", op->name);
    for (char *c = name; *c; c++)
        if (*c == '/' || *c == ':')
            *c = '_';
    bool failed = folder_make(guard->save, NULL) != PLUMB_OK;
    for (unsigned k = 0; !failed && k < MOST_FOLDERS; k++) {
        const int n = snprintf(s->folder, sizeof s->folder, "%s/%s.%u", guard->save, name, k);
        if (n < 0 || (size_t)n >= sizeof s->folder) {
            errno = ENAMETOOLONG;
            failed = true;
        } else if (mkdir(s->folder, 0777) == 0) {
            break;
        } else {
            failed = errno != EEXIST;
        }
    }
    char tensors[1024];
    snprintf(tensors, sizeof tensors, "%s/dump_tensor_data", s->folder);
    if (failed || mkdir(tensors, 0777)) {
        s->code =
            plumb_fail(s->err, PLUMB_E_IO, "the failing inputs of %s cannot be saved there: %s",
                       op->name, strerror(errno));
        plumb_error_in_file(s->err, guard->save);
    }
}

enum plumb_code guard_save_failure(struct plumb_guard *guard, const struct plumb_guard_op *op,
                                   const struct plumb_guard_case *about,
                                   const struct plumb_arg *reference, size_t n_reference,
                                   bool raised, struct plumb_guard_verdict *verdict,
                                   struct plumb_error *err)
{
    struct saver s = {.err = err};
    make_folder(&s, guard, op);
    if (s.code)
        return s.code;
    save_outputs(&s, about, reference, n_reference);
    save_call(&s, op, about, raised, verdict);
    if (!s.code)
        snprintf(verdict->saved, sizeof verdict->saved, "%s", s.folder);
    return s.code;
}
