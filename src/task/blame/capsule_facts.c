/* What a capsule says of its call: the verdict, and the reference with its noise. */
#include "task/blame/capsule.h"

#include "base/json_put.h"
#include "base/number.h"
#include "plumb/cpu.h"
#include "plumb/write.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>

/* ---- What was expected ----------------------------------------------------------------------- */

/* A name in the folder of what was expected; noted, so that it can be taken back. */
static const char *expected_path(struct capsule *c, const char *direction, size_t k,
                                 const char *ending, struct plumb_error *err)
{
    const char *name = arena_printf(&c->arena, "%s.%zu%s.npy", direction, k, ending);
    if (!name || !map_put(&c->expected, name, strlen(name), NULL)) {
        plumb_no_memory(err);
        return NULL;
    }
    const char *path = arena_printf(&c->arena, "%s/" EXPECTED "/%s", c->folder, name);
    if (!path)
        plumb_no_memory(err);
    return path;
}

/* The reference of one result, and what right arithmetic may be off by. What numpy has no type for
 * is left out. */
static enum plumb_code save_result(struct capsule *c, struct plumb_expected *e,
                                   enum plumb_expected_part part, size_t k,
                                   const struct plumb_arg *reference, const struct plumb_arg *got,
                                   struct plumb_error *err)
{
    const char *direction = part == PLUMB_PART_GRADIENT ? "backward.output" : "forward.output";
    if (reference->kind != PLUMB_ARG_TENSOR)
        return PLUMB_OK;
    struct plumb_error why;
    const char *path = expected_path(c, direction, k, "", err);
    enum plumb_code code = path ? plumb_npy_write(path, reference->tensor, err) : PLUMB_E_NOMEM;
    if (code == PLUMB_E_UNSUPPORTED)
        return PLUMB_OK;
    if (code || got->kind != PLUMB_ARG_TENSOR)
        return code;
    const struct plumb_tensor *t = got->tensor;
    const size_t n = (size_t)t->count * plumb_dtype_parts(t->dtype);
    struct arena arena = {0};
    double *noise = arena_array(&arena, n + 1, sizeof *noise);
    if (!noise)
        code = plumb_no_memory(err);
    else if (!plumb_expected_noise(e, part, k, t, noise, &why) && t->rank < PLUMB_MAX_RANK) {
        struct plumb_tensor as;
        int64_t shape[PLUMB_MAX_RANK];
        for (unsigned d = 0; d < t->rank; d++)
            shape[d] = t->shape[d];
        shape[t->rank] = plumb_dtype_parts(t->dtype);
        plumb_tensor_init(&as, PLUMB_F64, t->rank + (shape[t->rank] > 1), shape, NULL);
        as.data = (void *)noise;
        path = expected_path(c, direction, k, ".noise", err);
        code = path ? plumb_npy_write(path, &as, err) : PLUMB_E_NOMEM;
    }
    arena_free(&arena);
    return code;
}

static enum plumb_code save_results(void *context, struct plumb_expected *e,
                                    const struct plumb_result *reference,
                                    const struct known_call *known, struct plumb_error *err)
{
    static const struct plumb_arg nothing = {.kind = PLUMB_ARG_NONE};
    const struct plumb_result *given = &known->given;
    struct capsule *c = context;
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < reference->n_outputs && !code; k++)
        code = save_result(c, e, PLUMB_PART_OUTPUT, k, &reference->outputs[k],
                           k < given->n_outputs ? &given->outputs[k] : &nothing, err);
    for (size_t k = 0; k < reference->n_grads && reference->grads && !code; k++)
        code = save_result(c, e, PLUMB_PART_GRADIENT, k, &reference->grads[k],
                           k < given->n_grads ? &given->grads[k] : &nothing, err);
    return code;
}

/* ---- What was said --------------------------------------------------------------------------- */

static void put_verdict(struct buf *out, const char *direction, const struct local_verdict *v)
{
    char worst[NUMBER_BYTES];
    buf_printf(out, ",\n \"%s\": {\"verdict\": \"%s\", \"result\": ", direction,
               plumb_word_text(v->word));
    json_put_string(out, v->result);
    number_exact(v->worst, false, worst);
    buf_printf(out, ", \"worst\": %s, \"at\": ", isfinite(v->worst) ? worst : "null");
    json_put_string(out, v->place ? v->place : "");
    buf_text(out, ", \"pattern\": ");
    json_put_string(out, v->pattern ? v->pattern : "");
    buf_text(out, ", \"why\": ");
    json_put_string(out, v->why);
    buf_text(out, "}");
}

/* The types of the tensors, in order of arguments and results. */
static void put_type(struct buf *out, const struct case_arg *arg, const char *what, size_t *n)
{
    if (arg->tensor) {
        buf_printf(out, "%s\n  {\"tensor\": \"%s\", \"dtype\": ", (*n)++ ? "," : "", what);
        json_put_string(out, arg->tensor->dtype_name ? arg->tensor->dtype_name : "");
        buf_text(out, ", \"shape\": [");
        for (unsigned d = 0; d < arg->tensor->rank; d++)
            buf_printf(out, "%s%lld", d ? ", " : "", (long long)arg->tensor->shape[d]);
        buf_text(out, "]}");
    }
    for (size_t k = 0; k < arg->n_items; k++)
        put_type(out, &arg->items[k], what, n);
}

static enum plumb_code put_types(struct capsule *c, struct buf *out, struct plumb_error *err)
{
    struct check_case from;
    struct case_results results = {0};
    size_t n = 0;
    enum plumb_code code = case_parse(c->file, c->call, &c->arena, &from, err);
    if (!code)
        code = case_parse_results(c->file, c->call, &c->arena, &results, err);
    if (code)
        return code;
    buf_text(out, ",\n \"tensors\": [");
    for (size_t k = 0; k < from.n_args; k++)
        put_type(out, &from.args[k], "input", &n);
    for (size_t k = 0; k < from.n_kwargs; k++)
        put_type(out, &from.kwargs[k].value, "input", &n);
    for (size_t k = 0; k < results.n_outputs; k++)
        put_type(out, &results.outputs[k], "output", &n);
    buf_text(out, "]");
    return PLUMB_OK;
}

/* What was said of it when it was made, and where: nothing of the environment. */
enum plumb_code capsule_facts(struct capsule *c, struct plumb_error *err)
{
    static const char *const directions[] = {"forward", "backward"};
    const struct local_options options = {.file = c->file,
                                          .memory = SIZE_MAX / 4,
                                          .seed = CAPSULE_SEED,
                                          .watch = save_results,
                                          .watch_context = c};
    struct local_verdict verdicts[LOCAL_DIRECTIONS];
    struct utsname machine;
    enum plumb_code code = local_judge(&options, c->call, &c->arena, verdicts, err);
    if (code)
        return code;
    struct buf out = {0};
    buf_printf(&out,
               "{\"capsule\": 1, \"plumb\": \"%s\", \"verdict_version\": %d, \"seed\": %d, "
               "\"machine\": ",
               PLUMB_VERSION, PLUMB_EXPECTED_VERSION, CAPSULE_SEED);
    json_put_string(&out, uname(&machine) == 0 ? machine.machine : "");
    buf_printf(&out, ", \"simd\": \"%s\",\n \"call\": ", plumb_cpu_level());
    json_put_string(&out, case_place(c->file, c->call)->name);
    buf_printf(&out, ", \"step\": %lld, \"rank\": %lld, \"source\": ", (long long)c->tree->step,
               (long long)c->tree->rank);
    json_put_string(&out, c->source ? c->source : "");
    for (int d = 0; d < 2; d++)
        if (verdicts[d].seen) {
            put_verdict(&out, directions[d], &verdicts[d]);
            buf_printf(&c->said, "%s: %s: %s\n", directions[d], plumb_word_text(verdicts[d].word),
                       verdicts[d].why);
        }
    code = put_types(c, &out, err);
    buf_text(&out, "}\n");
    if (code) {
        buf_free(&out);
        return code;
    }
    return capsule_save(c, "capsule.json", &out, err);
}
