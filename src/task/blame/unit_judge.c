/* A module computed again: its tensors, the settings that it may have, and what comes of them. */
#include "task/blame/modules.h"
#include "task/blame/pieces.h"

#include "verdict/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct judge {
    const struct unit_options *options;
    const struct unit *unit;
    struct arena *arena; /* of texts that stay */
    struct loader loader;
    struct list inputs, outputs, parameters, grads_in, grads_out, parameter_grads;
    struct setting_list settings;
    const struct known_class *class;
    unsigned dimensions;
    bool parameters_known; /* there are none but those */
    struct local_verdict *out;
};

/* ---- Tensors --------------------------------------------------------------------------------- */

/* Parameters and buffers: recorded with this call, with the first of its module, or given. */
static enum plumb_code take_parameters(struct judge *j, struct plumb_error *err)
{
    const struct unit *first = &j->options->units->list[j->unit->first];
    const struct unit *with = j->unit->of[PIECE_PARAMETER].count ? j->unit : first;
    enum plumb_code code = list_take(&j->loader, &with->of[PIECE_PARAMETER], &j->parameters, err);
    if (!code && !j->loader.refused &&
        j->parameters.count + with->of[PIECE_BUFFER].count <= MAX_TENSORS)
        code = list_take(&j->loader, &with->of[PIECE_BUFFER], &j->parameters, err);
    j->parameters_known = j->parameters.count > 0;
    for (const char *at = j->class->tensors; *at && !code && !j->loader.refused;) {
        size_t length = strcspn(at, " "), record;
        const size_t name = length - (at[length - 1] == '!');
        const char *text = arena_copy(&j->loader.arena, at, name);
        if (!text)
            return plumb_no_memory(err);
        struct named *next = &j->parameters.items[j->parameters.count];
        if (j->options->weights && !list_find(&j->parameters, at, name) &&
            j->parameters.count < MAX_TENSORS &&
            weights_find(j->options->weights, j->unit->path, text, &record)) {
            *next = (struct named){.name = text, .arg = {.kind = PLUMB_ARG_TENSOR}};
            code = loader_take(&j->loader, weights_run(j->options->weights), record,
                               &next->arg.tensor, err);
            j->parameters.count += !code;
            j->parameters_known = true;
        } else if (name < length && !list_find(&j->parameters, at, name)) {
            j->loader.refused = "its parameters were not recorded";
        }
        at += length;
        at += strspn(at, " ");
    }
    return code;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* Inputs by position, and what else they must be. */
static void check_places(struct judge *j)
{
    for (size_t k = 0; k < j->inputs.count && !j->loader.refused; k++)
        if (strchr(j->inputs.items[k].name, '.') || j->inputs.items[k].arg.kind != PLUMB_ARG_TENSOR)
            j->loader.refused = "its inputs are nested, or no tensors";
    for (size_t k = 0; k < j->outputs.count && !j->loader.refused; k++)
        if (strchr(j->outputs.items[k].name, '.') ||
            j->outputs.items[k].arg.kind != PLUMB_ARG_TENSOR)
            j->loader.refused = "its outputs are nested";
    if (j->loader.refused)
        return;
    if (!j->inputs.count || !j->outputs.count)
        j->loader.refused = "its inputs or its outputs were not recorded";
    else if (j->inputs.count != j->class->inputs || j->outputs.count != 1)
        j->loader.refused = "it was called in a way that plumb does not know";
}

static const char *op_name(struct judge *j)
{
    const char *zero = strchr(j->class->op, '0');
    return zero ? arena_printf(&j->loader.arena, "%.*s%u%s", (int)(zero - j->class->op),
                               j->class->op, j->dimensions, zero + 1)
                : j->class->op;
}

/* Gradients that were recorded, beside the tensors that they belong to. */
static enum plumb_code place_gradients(struct judge *j, struct known_call *known,
                                       const struct named *const *tensors, size_t n,
                                       struct plumb_error *err)
{
    struct plumb_arg *grads = arena_array(&j->loader.arena, n + 1, sizeof *grads);
    struct known_gradient *names = arena_array(&j->loader.arena, n + 1, sizeof *names);
    const struct unit *first = &j->options->units->list[j->unit->first];
    if (!grads || !names)
        return plumb_no_memory(err);
    for (size_t k = 0; k < n; k++) {
        const char *name = tensors[k]->name;
        const bool parameter = k >= j->inputs.count;
        const struct list *from = parameter ? &j->parameter_grads : &j->grads_out;
        const struct named *grad = list_find(from, name, strlen(name));
        names[k] = (struct known_gradient){.name = parameter ? name : NULL, .parameter = parameter};
        grads[k] = (struct plumb_arg){.kind = PLUMB_ARG_NONE};
        /* What a pass adds to a parameter is of all calls of the module together. */
        if (grad && grad->arg.kind == PLUMB_ARG_TENSOR && (!parameter || first->calls == 1))
            grads[k] = grad->arg;
    }
    known->gradients = names;
    known->given.grads = grads;
    known->given.n_grads = known->given.n_arg_grads = n;
    return PLUMB_OK;
}

/* The gradient that came in for the one output. */
static enum plumb_code take_incoming(struct judge *j, struct known_call *known,
                                     struct plumb_error *err)
{
    const struct named *grad = j->grads_in.count ? &j->grads_in.items[0] : NULL;
    known->has_backward = j->unit->sites[LOCAL_BACKWARD] > 0;
    if (!grad || grad->arg.kind != PLUMB_ARG_TENSOR || j->grads_in.count != 1) {
        known->no_backward = "the gradient that came in was not recorded";
        return PLUMB_OK;
    }
    if (!tensor_same_shape(grad->arg.tensor, j->outputs.items[0].arg.tensor)) {
        known->no_backward = "the gradient that came in has another shape than the output";
        return PLUMB_OK;
    }
    const struct plumb_tensor **grads = arena_array(&j->loader.arena, 1, sizeof *grads);
    if (!grads)
        return plumb_no_memory(err);
    grads[0] = grad->arg.tensor;
    known->call.grads = grads;
    known->call.n_grads = 1;
    return PLUMB_OK;
}

/* The call that the module is with these settings. */
static enum plumb_code make_call(struct judge *j, const struct module_try *try,
                                 struct known_call *known, struct plumb_error *err)
{
    const struct named *tensors[2 * MAX_TENSORS];
    size_t n = 0, n_kwargs = 0;
    struct plumb_arg *args = arena_array(&j->loader.arena, j->inputs.count, sizeof *args);
    struct plumb_kwarg *kwargs =
        arena_array(&j->loader.arena, j->parameters.count + try->count + 1, sizeof *kwargs);
    *known = (struct known_call){.call = {.prefix = "Functional", .name = op_name(j)},
                                 .only_recorded = true};
    if (!args || !kwargs || !known->call.name)
        return plumb_no_memory(err);
    for (size_t k = 0; k < j->inputs.count; k++) {
        args[k] = j->inputs.items[k].arg;
        args[k].requires_grad = true;
        tensors[n++] = &j->inputs.items[k];
    }
    for (const char *at = j->class->tensors; *at;) {
        const size_t length = strcspn(at, " "), name = length - (at[length - 1] == '!');
        const struct named *parameter = list_find(&j->parameters, at, name);
        if (parameter) {
            kwargs[n_kwargs] =
                (struct plumb_kwarg){.name = parameter->name, .value = parameter->arg};
            kwargs[n_kwargs++].value.requires_grad = true;
            tensors[n++] = parameter;
        }
        at += length;
        at += strspn(at, " ");
    }
    for (size_t k = 0; k < try->count; k++)
        kwargs[n_kwargs++] = try->kwargs[k];
    known->call.args = args;
    known->call.n_args = j->inputs.count;
    known->call.kwargs = kwargs;
    known->call.n_kwargs = n_kwargs;
    known->given.outputs = &j->outputs.items[0].arg;
    known->given.n_outputs = 1;
    enum plumb_code code = take_incoming(j, known, err);
    if (!code)
        code = place_gradients(j, known, tensors, n, err);
    const char *dtype = plumb_dtype_info(j->outputs.items[0].arg.tensor->dtype)->name;
    return code ? code : convert_autocast(&known->call, dtype, true, &j->loader.arena, err);
}

/* ---- Which settings -------------------------------------------------------------------------- */

static enum plumb_code run_forward(struct judge *j, const struct module_try *try,
                                   struct plumb_result *out, struct plumb_error *err)
{
    struct known_call known;
    *out = (struct plumb_result){0};
    enum plumb_code code = make_call(j, try, &known, err);
    if (code)
        return code;
    known.call.n_grads = 0;
    known.call.memory = j->options->local.memory;
    return plumb_op_run(&known.call, PLUMB_RAISED, out, err);
}

/* The settings that come nearest to what was recorded. */
static enum plumb_code choose(struct judge *j, const struct module_tries *tries, size_t *best,
                              struct plumb_error *err)
{
    double least = INFINITY;
    /* Nothing else comes nearer; numbers of 16 bits are too coarse to tell. */
    const double close = j->outputs.items[0].arg.tensor->dtype == PLUMB_F32   ? 0x1p-22
                         : j->outputs.items[0].arg.tensor->dtype == PLUMB_F64 ? 0x1p-50
                                                                              : 0;
    *best = 0;
    for (size_t k = 0; tries->count > 1 && k < tries->count; k++) {
        struct plumb_result result;
        struct plumb_error why = {0};
        const enum plumb_code code = run_forward(j, &tries->list[k], &result, &why);
        if (code == PLUMB_E_NOMEM) {
            plumb_result_destroy(&result);
            *err = why;
            return code;
        }
        const double apart =
            code || result.n_outputs != 1
                ? INFINITY
                : tensor_distance(&result.outputs[0], j->outputs.items[0].arg.tensor);
        plumb_result_destroy(&result);
        if (apart < least) {
            least = apart;
            *best = k;
        }
        if (apart <= close)
            break;
    }
    return PLUMB_OK;
}

/* Whether some element lies outside what the smallest and the largest eps give: then no eps
 * between them explains it. */
static bool is_outside(const struct plumb_tensor *low, const struct plumb_tensor *high,
                       const struct plumb_tensor *got)
{
    enum { BLOCK = 1024 };
    double a[BLOCK], b[BLOCK], c[BLOCK];
    const double u = got->dtype == PLUMB_BF16  ? 0x1p-8
                     : got->dtype == PLUMB_F16 ? 0x1p-11
                     : got->dtype == PLUMB_F32 ? 0x1p-19
                                               : 0x1p-40;
    for (uint64_t at = 0; at < got->count; at += BLOCK) {
        const size_t n = got->count - at < BLOCK ? (size_t)(got->count - at) : BLOCK;
        plumb_tensor_to_f64(low, at, n, a);
        plumb_tensor_to_f64(high, at, n, b);
        plumb_tensor_to_f64(got, at, n, c);
        for (size_t k = 0; k < n; k++) {
            const double slack = 4 * u * (fabs(a[k]) + fabs(b[k])) + 0x1p-20;
            if (!(c[k] >= fmin(a[k], b[k]) - slack && c[k] <= fmax(a[k], b[k]) + slack))
                return true;
        }
    }
    return false;
}

/* The same for all settings but eps as in the best try. */
static bool no_eps_explains(struct judge *j, const struct module_tries *tries, size_t best)
{
    const struct plumb_tensor *got = j->outputs.items[0].arg.tensor;
    struct plumb_error why;
    struct plumb_result ends[2] = {{0}, {0}};
    struct module_try try = tries->list[best];
    struct plumb_kwarg *kwargs = arena_array(&j->loader.arena, try.count + 1, sizeof *kwargs);
    bool fine = kwargs && plumb_dtype_parts(got->dtype) == 1;
    for (int k = 0; k < 2 && fine; k++) {
        memcpy(kwargs, try.kwargs, try.count * sizeof *kwargs);
        for (size_t i = 0; i < try.count; i++)
            if (strcmp(kwargs[i].name, "eps") == 0)
                kwargs[i].value =
                    (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = k ? 1e-2 : 1e-30};
        const struct module_try end = {.kwargs = kwargs, .count = try.count};
        fine = !run_forward(j, &end, &ends[k], &why) && ends[k].n_outputs == 1 &&
               ends[k].outputs[0].kind == PLUMB_ARG_TENSOR &&
               tensor_same_shape(ends[k].outputs[0].tensor, got);
    }
    const bool outside =
        fine && is_outside(ends[0].outputs[0].tensor, ends[1].outputs[0].tensor, got);
    plumb_result_destroy(&ends[0]);
    plumb_result_destroy(&ends[1]);
    return outside;
}

/* ---- Verdicts -------------------------------------------------------------------------------- */

static enum plumb_code leave(struct judge *j, const char *why, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (int d = 0; d < LOCAL_DIRECTIONS && !code; d++)
        if (j->unit->sites[d] && !j->out[d].seen)
            code = verdict_none(&j->out[d], why, j->arena, err);
    return code;
}

/* A fault that rests on what was only assumed is none that anybody is to be blamed for. */
static enum plumb_code doubt(struct judge *j, const char *assumed, struct plumb_error *err)
{
    for (int d = 0; d < LOCAL_DIRECTIONS; d++) {
        struct local_verdict *out = &j->out[d];
        if (!out->seen || out->word != PLUMB_WORD_FAULT)
            continue;
        out->why = arena_printf(j->arena, "%s; with what is usual: %s", assumed, out->why);
        if (!out->why)
            return plumb_no_memory(err);
        out->word = PLUMB_WORD_NOT_JUDGED;
        out->doubtful = true;
    }
    return PLUMB_OK;
}

/* Settings that were found by an output that is wrong say nothing about gradients. */
static enum plumb_code forget_gradients(struct judge *j, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (int d = LOCAL_BACKWARD; d < LOCAL_DIRECTIONS && !code; d++)
        if (j->out[d].seen && j->out[d].word == PLUMB_WORD_FAULT) {
            j->out[d] = (struct local_verdict){0};
            code = verdict_none(&j->out[d],
                                "its settings were not recorded, and its output does not tell them",
                                j->arena, err);
        }
    return code;
}

/* Why a fault may be none, or NULL. */
static const char *assumption(struct judge *j, const struct module_tries *tries, size_t best)
{
    const char *own = j->settings.class;
    const struct case_arg *hooks = settings_get(&j->settings, "hooks");
    if (!j->class->foreign && own && strncmp(own, "torch.nn.modules.", 17) != 0)
        return "its class has the name of one of PyTorch's, but is another";
    if (!own && strcmp(j->unit->class, "RMSNorm") == 0)
        return "classes of that name are not all the same";
    if (hooks && hooks->value.integer)
        return "it has hooks, which may change what goes in and out";
    if (*j->class->tensors && !j->parameters_known && !own)
        return "it has no parameters, or they were not recorded";
    if (!tries->complete || (tries->any_eps && !no_eps_explains(j, tries, best)))
        return arena_printf(&j->loader.arena, "not recorded: %s", tries->guessed);
    return NULL;
}

static bool is_padding_unknown(const struct judge *j)
{
    return strcmp(j->class->op, "embedding") == 0 && !settings_get(&j->settings, "padding_idx");
}

/* One that nothing is known of: what passes its input on was off. */
static bool is_dropout(const struct judge *j)
{
    return strstr(j->unit->class, "Dropout") && !j->settings.class;
}

static enum plumb_code finish(struct judge *j, const struct known_call *known,
                              struct plumb_error *err)
{
    const struct unit *first = &j->options->units->list[j->unit->first];
    const char *why = known->no_backward      ? known->no_backward
                      : first->calls > 1      ? "it is the sum over several calls of the module"
                      : is_padding_unknown(j) ? "its padding_idx was not recorded"
                                              : "no gradient was recorded";
    struct local_verdict *out = &j->out[LOCAL_PARAMETERS], *backward = &j->out[LOCAL_BACKWARD];
    /* Others number backward calls as they come, which is not the order of the forward ones. */
    if (first->calls > 1 && !j->settings.class && backward->word == PLUMB_WORD_FAULT) {
        *backward = (struct local_verdict){0};
        const enum plumb_code code = verdict_none(
            backward, "which of several calls of the module it belongs to is not certain", j->arena,
            err);
        if (code)
            return code;
    }
    if (is_padding_unknown(j))
        out->seen = false;
    return j->unit->sites[LOCAL_PARAMETERS] && !out->seen ? verdict_none(out, why, j->arena, err)
                                                          : PLUMB_OK;
}

/* ---- Gradients of parameters ----------------------------------------------------------------- */

static bool same_statistics(const struct plumb_recorded *a, const struct plumb_recorded *b)
{
    if (!a || !b || !a->tensor || !b->tensor || !a->shape || !b->shape ||
        strcmp(a->shape, b->shape) != 0)
        return false;
    bool any = false, same = true;
    for (unsigned k = 0; k < PLUMB_STATISTICS; k++) {
        const struct plumb_value x = plumb_recorded_statistic(a, k);
        const struct plumb_value y = plumb_recorded_statistic(b, k);
        any |= x.kind == PLUMB_VALUE_NUMBER;
        same &= x.kind == y.kind && (x.kind != PLUMB_VALUE_NUMBER || x.number == y.number);
    }
    return any && same;
}

static bool has_gradient_like(const struct plumb_run *run, const struct unit *unit,
                              const struct plumb_recorded *recorded)
{
    const struct pieces *grads = &unit->of[PIECE_PARAMETER_GRAD];
    for (size_t k = 0; k < grads->count; k++)
        if (same_statistics(plumb_run_record(run, grads->list[k].record)->recorded, recorded))
            return true;
    return false;
}

/* Whether another module got the same gradient: then they have the parameter in common. */
static bool is_shared(const struct judge *j)
{
    const struct units *units = j->options->units;
    const struct pieces *mine = &j->unit->of[PIECE_PARAMETER_GRAD];
    for (size_t k = 0; k < mine->count; k++) {
        const struct plumb_recorded *recorded =
            plumb_run_record(j->options->run, mine->list[k].record)->recorded;
        for (size_t i = 0; i < units->count; i++) {
            const struct unit *other = &units->list[i];
            if (other != j->unit && other->step == j->unit->step && other->rank == j->unit->rank &&
                has_gradient_like(j->options->run, other, recorded))
                return true;
        }
    }
    return false;
}

/* What a pass adds to a parameter is of all that used it: other modules, functions, a penalty in
 * the loss. That it is not what this module gave is therefore no fault. */
static enum plumb_code excuse_parameters(struct judge *j, struct plumb_error *err)
{
    struct local_verdict *out = &j->out[LOCAL_PARAMETERS];
    if (!out->seen || out->word != PLUMB_WORD_FAULT)
        return PLUMB_OK;
    if (is_shared(j)) {
        *out = (struct local_verdict){0};
        return verdict_none(out, "the parameter is shared with another module", j->arena, err);
    }
    out->why = arena_printf(j->arena,
                            "this module alone does not explain it, and whether something else "
                            "uses the parameter is not recorded: %s",
                            out->why);
    out->word = PLUMB_WORD_NOT_JUDGED;
    out->doubtful = true;
    return out->why ? PLUMB_OK : plumb_no_memory(err);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static enum plumb_code judge_known(struct judge *j, struct plumb_error *err)
{
    const struct named *weight = list_find(&j->parameters, "weight", 6);
    const struct module_facts facts = {
        .class = j->class,
        .dimensions = j->dimensions,
        .settings = &j->settings,
        .input = j->inputs.items[0].arg.tensor,
        .output = j->outputs.items[0].arg.tensor,
        .weight = weight ? weight->arg.tensor : NULL,
        .buffers = list_find(&j->parameters, "running_mean", 12) != NULL,
    };
    struct module_tries tries;
    struct known_call known = {0};
    size_t best = 0;
    enum plumb_code code = modules_tries(&facts, &j->loader.arena, &tries, err);
    if (!code)
        code = choose(j, &tries, &best, err);
    if (!code)
        code = make_call(j, &tries.list[best], &known, err);
    if (!code)
        code = known_judge(&j->options->local, &known, j->arena, j->out, err);
    if (!code && is_dropout(j) && j->out[LOCAL_FORWARD].word != PLUMB_WORD_SAME) {
        memset(j->out, 0, LOCAL_DIRECTIONS * sizeof *j->out);
        return leave(j, "whether its dropout was on is not recorded", err);
    }
    bool fault = false;
    for (int d = 0; d < LOCAL_DIRECTIONS && !code; d++)
        fault |= j->out[d].seen && j->out[d].word == PLUMB_WORD_FAULT;
    const char *assumed = fault ? assumption(j, &tries, best) : NULL;
    const enum plumb_word word = j->out[LOCAL_FORWARD].word;
    if (!code && tries.count > 1 && (word == PLUMB_WORD_FAULT || word == PLUMB_WORD_CHEAPER))
        code = forget_gradients(j, err);
    if (!code && assumed)
        code = doubt(j, assumed, err);
    if (!code)
        code = excuse_parameters(j, err);
    return code ? code : finish(j, &known, err);
}

static enum plumb_code run(struct judge *j, struct plumb_error *err)
{
    const struct unit *unit = j->unit;
    bool found;
    if (unit->kind == UNIT_FUNCTION)
        return leave(j, "arguments of functions that are no tensors are not in such captures", err);
    j->class = modules_find(unit->class, &j->dimensions);
    if (unit->inside)
        return leave(j, "it has modules inside", err);
    if (!j->class) {
        const char *text = arena_printf(j->arena, "plumb does not know the module %s", unit->class);
        return text ? leave(j, text, err) : plumb_no_memory(err);
    }
    enum plumb_code code = PLUMB_OK;
    struct plumb_error ignored;
    if (unit->name && settings_of(j->options->settings, unit->name, &j->loader.arena, &j->settings,
                                  &found, &ignored))
        j->settings = (struct setting_list){0}; /* damaged: as if there were none */
    const struct {
        enum piece_role role;
        struct list *list;
    } lists[] = {{PIECE_INPUT, &j->inputs},
                 {PIECE_OUTPUT, &j->outputs},
                 {PIECE_GRAD_IN, &j->grads_in},
                 {PIECE_GRAD_OUT, &j->grads_out},
                 {PIECE_PARAMETER_GRAD, &j->parameter_grads}};
    for (size_t k = 0; k < sizeof lists / sizeof *lists && !code && !j->loader.refused; k++)
        code = list_take(&j->loader, &unit->of[lists[k].role], lists[k].list, err);
    if (!code && !j->loader.refused)
        code = take_parameters(j, err);
    if (!code)
        check_places(j);
    if (!code && !j->loader.refused)
        code = judge_known(j, err);
    return code || !j->loader.refused ? code : leave(j, j->loader.refused, err);
}

enum plumb_code unit_judge(const struct unit_options *options, const struct unit *unit,
                           struct arena *arena, struct local_verdict out[LOCAL_DIRECTIONS],
                           struct plumb_error *err)
{
    if (unit->kind == UNIT_NODE)
        return node_judge(options, unit, arena, out, err);
    struct judge *j = calloc(1, sizeof *j); /* too large for the stack of a thread */
    struct plumb_error why = {0};
    if (!j)
        return plumb_no_memory(err);
    j->options = options;
    j->unit = unit;
    j->arena = arena;
    j->loader = (struct loader){.run = options->run, .left = options->local.memory / 3};
    j->out = out;
    memset(out, 0, LOCAL_DIRECTIONS * sizeof *out);
    enum plumb_code code = run(j, &why);
    if (code == PLUMB_E_NOMEM)
        *err = why;
    else if (code)
        code = leave(j, verdict_reason(arena, &why), err);
    arena_free(&j->loader.arena);
    free(j);
    return code;
}
