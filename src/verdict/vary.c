/* A call with one of its arguments changed. */
#include "verdict/vary.h"

#include "base/plain.h"
#include "verdict/change.h"

#include <stdlib.h>
#include <string.h>

/* ---- Reading a signature --------------------------------------------------------------------- */

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

bool vary_has_type(const struct vary_parameter *p, const char *type)
{
    return is_word(p->type, p->type_length, type);
}

bool vary_has_name(const struct vary_parameter *p, const char *name)
{
    return is_word(p->name, p->length, name);
}

/* A default: None, True, False, a number; other ones count as None. */
static struct plumb_arg read_default(const char *text, size_t length)
{
    char *end;
    const double number = plain_number(text, &end);
    const bool point = memchr(text, '.', length) || memchr(text, 'e', length);
    if (is_word(text, length, "True") || is_word(text, length, "False"))
        return (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = *text == 'T'};
    if (end != text + length || !length)
        return (struct plumb_arg){.kind = PLUMB_ARG_NONE};
    return (struct plumb_arg){.kind = point ? PLUMB_ARG_FLOAT : PLUMB_ARG_INT,
                              .integer = point ? 0 : (int64_t)number,
                              .number = number};
}

/* One parameter, "int dim|axis=-1"; returns where it ends. */
static const char *read_parameter(const char *at, struct vary_parameter *p)
{
    *p = (struct vary_parameter){.type = at, .type_length = strcspn(at, " ")};
    at += p->type_length;
    p->name = at += *at == ' ';
    p->length = strcspn(at, "|=,)");
    at += strcspn(at, "=,)");
    if (*at == '=') {
        const char *text = at + 1;
        const size_t length = *text == '[' ? strcspn(text, "]") + 1 : strcspn(text, ",)");
        p->now = read_default(text, length);
        at = text + length;
    }
    return at;
}

/* Whether one of the names, "dim|axis", is that of the keyword. */
static bool goes_by(const struct vary_parameter *p, const char *keyword)
{
    const size_t length = strlen(keyword);
    for (const char *at = p->name;; at++) {
        const size_t n = strcspn(at, "|=,)");
        if (n == length && memcmp(at, keyword, n) == 0)
            return true;
        at += n;
        if (*at != '|')
            return false;
    }
}

/* Whether a positional argument may stand there. */
static bool takes(const struct vary_parameter *p, const struct plumb_arg *arg)
{
    const bool tensors = strncmp(p->type, "Tensor", 6) == 0;
    const bool any = strncmp(p->type, "any", 3) == 0 || strncmp(p->type, "Operand", 7) == 0;
    const bool list = memchr(p->type, '[', p->type_length) != NULL;
    if (any || arg->kind == PLUMB_ARG_NONE)
        return true;
    if (arg->kind == PLUMB_ARG_LIST)
        return list;
    return tensors == (arg->kind == PLUMB_ARG_TENSOR);
}

/* Puts the arguments of the call beside the parameters; false when one has no place. */
static bool place_arguments(const struct plumb_call *call, struct vary_list *list, size_t positions)
{
    if (call->n_args > positions)
        return false;
    for (size_t k = 0; k < list->n; k++) {
        struct vary_parameter *p = &list->parameter[k];
        p->keyword = k >= call->n_args;
        p->at = p->keyword ? call->n_kwargs : k;
        if (!p->keyword && !takes(p, &call->args[k]))
            return false;
        if (!p->keyword)
            p->now = call->args[k];
    }
    for (size_t j = 0; j < call->n_kwargs; j++) {
        size_t k = call->n_args;
        while (k < list->n && !goes_by(&list->parameter[k], call->kwargs[j].name))
            k++;
        if (k == list->n)
            continue; /* out, device: of no account for numbers */
        list->parameter[k].at = j;
        list->parameter[k].now = call->kwargs[j].value;
    }
    return true;
}

static bool read_line(const char *line, const struct plumb_call *call, struct vary_list *list)
{
    const char *at = strchr(line, '(');
    size_t positions = VARY_MOST;
    list->n = 0;
    for (at += at != NULL; at && *at && *at != ')' && list->n < VARY_MOST;) {
        if (*at == ' ' || *at == ',') {
            at++;
        } else if (*at == '*') {
            positions = list->n;
            at++;
        } else {
            at = read_parameter(at, &list->parameter[list->n++]);
        }
    }
    return at && place_arguments(call, list, positions < list->n ? positions : list->n);
}

/* A signature with a prefix, "Functional.embedding(...", serves calls with that one. */
static bool serves(const char *line, const char *prefix)
{
    const size_t length = strcspn(line, ".(");
    return line[length] != '.' || (prefix && is_word(line, length, prefix));
}

void vary_read(const struct plumb_op *op, const struct plumb_call *call, struct vary_list *list)
{
    list->n = 0;
    for (const char *line = op->schema; line && *line; line = strchr(line, '\n'), line += !!line)
        if (serves(line, call->prefix) && read_line(line, call, list))
            return;
    list->n = 0;
}

/* ---- Changing one ---------------------------------------------------------------------------- */

bool vary_set(struct arena *arena, struct plumb_call *call, const struct vary_parameter *p,
              const struct plumb_arg *value)
{
    if (!p->keyword) {
        struct plumb_arg *args = arena_array(arena, call->n_args, sizeof *args);
        if (!args)
            return false;
        memcpy(args, call->args, call->n_args * sizeof *args);
        args[p->at] = *value;
        call->args = args;
        return true;
    }
    const bool more = p->at >= call->n_kwargs;
    const size_t n = call->n_kwargs + more;
    struct plumb_kwarg *kwargs = arena_array(arena, n, sizeof *kwargs);
    char *name = arena_copy(arena, p->name, p->length);
    if (!kwargs || !name)
        return false;
    if (call->n_kwargs)
        memcpy(kwargs, call->kwargs, call->n_kwargs * sizeof *kwargs);
    if (more)
        kwargs[n - 1].name = name;
    kwargs[more ? n - 1 : p->at].value = *value;
    call->kwargs = kwargs;
    call->n_kwargs = n;
    return true;
}

/* ---- All of them in float32 ------------------------------------------------------------------ */

static bool is_narrow(enum plumb_dtype dtype)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    return info->kind == PLUMB_KIND_FLOAT && info->bits >= 8 && info->bits < 32;
}

static const struct plumb_tensor *widened(struct arena *arena, const struct plumb_tensor *from)
{
    struct plumb_tensor *tensor = arena_alloc(arena, sizeof *tensor);
    float *values = arena_array(arena, (size_t)from->count + 1, sizeof *values);
    if (!tensor || !values)
        return NULL;
    for (uint64_t k = 0; k < from->count; k++) {
        double x;
        plumb_tensor_to_f64(from, k, 1, &x);
        values[k] = (float)x;
    }
    plumb_tensor_init(tensor, PLUMB_F32, from->rank, from->shape, NULL);
    tensor->data = values;
    return tensor;
}

static bool widen_arg(void *context, const char *name, const struct plumb_arg *from,
                      struct plumb_arg *to)
{
    (void)name;
    *to = *from;
    if (from->kind == PLUMB_ARG_DTYPE && is_narrow(from->dtype))
        to->dtype = PLUMB_F32;
    if (from->kind == PLUMB_ARG_TENSOR && is_narrow(from->tensor->dtype))
        to->tensor = widened(context, from->tensor);
    return to->kind != PLUMB_ARG_TENSOR || to->tensor;
}

bool vary_widen(struct arena *arena, struct plumb_call *call)
{
    const struct plumb_tensor **grads = arena_array(arena, call->n_grads + 1, sizeof *grads);
    bool fine = grads && change_call(arena, widen_arg, arena, call);
    for (size_t k = 0; fine && k < call->n_grads; k++) {
        grads[k] = call->grads[k];
        if (grads[k] && is_narrow(grads[k]->dtype))
            fine = (grads[k] = widened(arena, grads[k])) != NULL;
    }
    call->grads = grads;
    return fine;
}
