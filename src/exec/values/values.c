/* From the arguments of a case to the arguments of a call. */
#include "exec/values/values.h"

#include "base/memory.h"
#include "exec/values/parts.h"

#include <string.h>

const struct value_profile values_documented = {.name = "documented"};

static enum plumb_code make_arg(struct maker *m, const struct place *at,
                                const struct case_arg *from, struct plumb_arg *out);

/* A tensor that was recorded, or an argument that says why it cannot be had. */
static enum plumb_code make_result(struct maker *m, const struct place *at,
                                   const struct case_tensor *info, struct plumb_arg *out)
{
    struct plumb_error why = {0}, *err = m->err;
    m->err = &why;
    const enum plumb_code code = maker_tensor(m, at, info, out);
    m->err = err;
    if (!code)
        return PLUMB_OK;
    const char *slash = strrchr(why.file, '/'); /* rows do not depend on where the dump lies */
    *out = (struct plumb_arg){.kind = PLUMB_ARG_OTHER,
                              .text = arena_printf(m->arena, "%s%s%s", slash ? slash + 1 : why.file,
                                                   *why.file ? ": " : "", why.message)};
    return out->text ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code make_items(struct maker *m, const struct place *at,
                                  const struct case_arg *from, struct plumb_arg *out)
{
    struct plumb_arg *items = arena_array(m->arena, from->n_items, sizeof *items);
    if (!items)
        return plumb_no_memory(m->err);
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < from->n_items && !code; i++) {
        struct place inside = {.position = arena_printf(m->arena, "%s.%zu", at->position, i),
                               .need_grad = at->need_grad};
        code = inside.position ? make_arg(m, &inside, &from->items[i], &items[i])
                               : plumb_no_memory(m->err);
    }
    out->items = items;
    out->n_items = from->n_items;
    return code;
}

static enum plumb_code make_arg(struct maker *m, const struct place *at,
                                const struct case_arg *from, struct plumb_arg *out)
{
    if (from->tensor)
        return m->results ? make_result(m, at, from->tensor, out)
                          : maker_tensor(m, at, from->tensor, out);
    enum plumb_code code = m->profile->refuse ? m->profile->refuse(from, m->err) : PLUMB_OK;
    if (code)
        return maker_blame(m->err, at->position, code);
    *out = from->value;
    if (from->named_tuple_or_dict)
        out->kind = PLUMB_ARG_LIST;
    if (out->kind == PLUMB_ARG_LIST || out->kind == PLUMB_ARG_SLICE)
        return make_items(m, at, from, out);
    return PLUMB_OK;
}

/* With these sparse modes fused attention takes one fixed, compressed mask. */
static bool is_causal_mask(const struct maker *m, const struct case_kwarg *kwarg)
{
    if (!maker_api_is(m, "npu_fusion_attention") || strcmp(kwarg->name, "atten_mask") != 0 ||
        !kwarg->value.tensor || (kwarg->value.tensor->data_name && m->options->data_dir))
        return false;
    for (size_t i = 0; i < m->from->n_kwargs; i++) {
        const struct case_kwarg *mode = &m->from->kwargs[i];
        if (strcmp(mode->name, "sparse_mode") == 0)
            return mode->value.value.kind == PLUMB_ARG_INT && mode->value.value.integer >= 2 &&
                   mode->value.value.integer <= 4;
    }
    return false;
}

static enum plumb_code make_kwarg(struct maker *m, const struct case_kwarg *from,
                                  struct plumb_kwarg *out)
{
    const struct case_arg *value = &from->value;
    bool list = !value->tensor && value->value.kind == PLUMB_ARG_LIST;
    struct place at = {.position = arena_printf(m->arena, "forward.kwargs.%s", from->name),
                       .need_grad = !(list && m->profile->lists_need_no_grad)};
    out->name = from->name;
    if (!at.position)
        return plumb_no_memory(m->err);
    if (is_causal_mask(m, from))
        return maker_causal_mask(m, at.position, &out->value);
    enum plumb_code code =
        list && m->profile->refuse_list ? m->profile->refuse_list(value, m->err) : PLUMB_OK;
    if (code)
        return maker_blame(m->err, at.position, code);
    return make_arg(m, &at, value, &out->value);
}

static enum plumb_code make_kwargs(struct maker *m, struct plumb_call *out)
{
    const struct check_case *from = m->from;
    struct plumb_kwarg *kwargs = arena_array(m->arena, from->n_kwargs, sizeof *kwargs);
    if (!kwargs)
        return plumb_no_memory(m->err);
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < from->n_kwargs && !code; i++)
        code = make_kwarg(m, &from->kwargs[i], &kwargs[i]);
    out->kwargs = kwargs;
    out->n_kwargs = from->n_kwargs;
    return code;
}

static bool has_out(const struct check_case *from)
{
    for (size_t i = 0; i < from->n_kwargs; i++)
        if (strcmp(from->kwargs[i].name, "out") == 0)
            return true;
    return false;
}

static enum plumb_code make_args(struct maker *m, const char *kind, const struct case_arg *from,
                                 size_t count, struct plumb_arg **out)
{
    *out = arena_array(m->arena, count, sizeof **out);
    if (!*out)
        return plumb_no_memory(m->err);
    bool need_grad = !has_out(m->from);
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < count && !code; i++) {
        struct place at = {.position = arena_printf(m->arena, "%s.%zu", kind, i),
                           .need_grad = need_grad,
                           .first = i == 0 && !m->gradient,
                           .second = i == 1 && !m->gradient};
        code = at.position ? make_arg(m, &at, &from[i], &(*out)[i]) : plumb_no_memory(m->err);
    }
    return code;
}

static uint32_t next_draw(void *state)
{
    return value_draw(state);
}

static enum plumb_code make_draws(struct maker *m, struct plumb_call *out)
{
    struct {
        struct plumb_draws draws;
        struct value_draws source;
    } *both = arena_alloc(m->arena, sizeof *both);
    if (!both)
        return plumb_no_memory(m->err);
    uint64_t key = value_key(m->options->seed, m->from->name, "forward.draws");
    both->source = (struct value_draws){m->options->mt, key, 0};
    both->draws = (struct plumb_draws){next_draw, &both->source};
    out->draws = &both->draws;
    return PLUMB_OK;
}

static enum plumb_code begin(struct maker *m)
{
    m->profile = m->options->profile ? m->options->profile : &values_documented;
    m->bytes_left = m->options->memory ? m->options->memory : memory_default() / 3;
    if (m->options->mt && m->options->inputs != INPUTS_UNIFORM)
        return plumb_fail(m->err, PLUMB_E_ARG,
                          "the generator of %s makes uniform values only; leave out --inputs "
                          "or --rng",
                          m->options->rng->name);
    return PLUMB_OK;
}

enum plumb_code generate_call(const struct check_case *from, const struct generate_options *options,
                              struct arena *arena, struct plumb_call *out, struct plumb_error *err)
{
    struct maker m = {.from = from, .options = options, .arena = arena, .err = err};
    *out = (struct plumb_call){.prefix = from->prefix, .name = from->api};
    struct plumb_arg *args = NULL;
    enum plumb_code code = begin(&m);
    if (!code)
        code = make_draws(&m, out);
    if (!code)
        code = make_kwargs(&m, out);
    if (!code)
        code = make_args(&m, "forward.input", from->args, from->n_args, &args);
    out->args = args;
    out->n_args = from->n_args;
    return code;
}

enum plumb_code generate_grads(const struct check_case *from,
                               const struct generate_options *options, struct arena *arena,
                               const struct plumb_tensor *const **out, size_t *n,
                               struct plumb_error *err)
{
    struct maker m = {
        .from = from, .options = options, .arena = arena, .err = err, .gradient = true};
    struct plumb_arg *grads;
    *out = NULL;
    *n = 0;
    enum plumb_code code = begin(&m);
    if (!code)
        code = make_args(&m, "backward.input", from->grads, from->n_grads, &grads);
    if (code)
        return code;
    const struct plumb_tensor **tensors = arena_array(arena, from->n_grads, sizeof *tensors);
    if (!tensors)
        return plumb_no_memory(err);
    for (size_t k = 0; k < from->n_grads; k++)
        tensors[k] = grads[k].kind == PLUMB_ARG_TENSOR ? grads[k].tensor : NULL;
    *out = tensors;
    *n = from->n_grads;
    return PLUMB_OK;
}

enum plumb_code recorded_args(const struct check_case *from, const char *kind,
                              const struct case_arg *list, size_t n,
                              const struct generate_options *options, struct arena *arena,
                              struct plumb_arg **out, struct plumb_error *err)
{
    struct maker m = {.from = from,
                      .options = options,
                      .arena = arena,
                      .err = err,
                      .gradient = true,
                      .results = true};
    *out = NULL;
    const enum plumb_code code = begin(&m);
    return code ? code : make_args(&m, kind, list, n, out);
}
