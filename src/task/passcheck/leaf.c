/* The tensors that a graph starts from: generated, written down, or read. */
#include "base/memory.h"
#include "exec/values/parts.h"
#include "task/passcheck/side.h"

#include <string.h>

struct plumb_tensor *passcheck_like(const struct plumb_tensor *tensor, struct arena *arena,
                                    void **data)
{
    struct plumb_tensor *copy = arena_alloc(arena, sizeof *copy);
    *data = copy ? arena_alloc(arena, (size_t)plumb_tensor_bytes(tensor)) : NULL;
    if (!*data || plumb_tensor_init(copy, tensor->dtype, tensor->rank, tensor->shape, NULL))
        return NULL;
    copy->data = *data;
    return copy;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* The same numbers for the same seed, name, type and shape, in whatever file they stand. */
static enum plumb_code generate(const struct passcheck_leaf *leaf, uint64_t seed,
                                const struct plumb_tensor *out, void *data, struct plumb_error *err)
{
    struct case_tensor limits = {.min = leaf->from, .max = leaf->to};
    if (leaf->fill == PASSCHECK_NORMAL) { /* fill_normal wants the ends of three deviations */
        limits.min = (struct case_limit){.kind = LIMIT_FLOAT,
                                         .number = leaf->from.number - 3 * leaf->to.number};
        limits.max = (struct case_limit){.kind = LIMIT_FLOAT,
                                         .number = leaf->from.number + 3 * leaf->to.number};
    }
    struct fill fill = {.dtype = out->dtype,
                        .count = out->count,
                        .row = 1,
                        .data = data,
                        .key = value_key(seed, "graph", leaf->name)};
    struct encoder encoder;
    enum plumb_code code = values_limits(&limits, out->dtype, &fill.limits, err);
    if (code || !out->count)
        return code;
    if (plumb_dtype_info(out->dtype)->kind == PLUMB_KIND_FLOAT)
        encoder_init(&encoder, out->dtype);
    (leaf->fill == PASSCHECK_NORMAL ? fill_normal : fill_uniform)(&fill, &encoder);
    return PLUMB_OK;
}

static enum plumb_code write_down(const struct passcheck_leaf *leaf, const struct plumb_tensor *out,
                                  unsigned char *data, struct plumb_error *err)
{
    if (!leaf->one_for_all && leaf->n_values != out->count)
        return plumb_fail(err, PLUMB_E_FORMAT, "%zu values for %llu elements", leaf->n_values,
                          (unsigned long long)out->count);
    const size_t size = plumb_dtype_info(out->dtype)->bits / 8;
    for (uint64_t k = 0; k < out->count; k++)
        plumb_from_f64(out->dtype, &leaf->values[leaf->one_for_all ? 0 : k], 1, data + k * size);
    return PLUMB_OK;
}

static enum plumb_code check_described(const struct passcheck_leaf *leaf,
                                       const struct plumb_tensor *found, struct plumb_error *err)
{
    struct plumb_tensor said;
    char a[256], b[256];
    if (leaf->has_dtype && leaf->dtype != found->dtype)
        return plumb_fail(err, PLUMB_E_FORMAT, "its file holds %s instead of %s",
                          plumb_dtype_info(found->dtype)->name,
                          plumb_dtype_info(leaf->dtype)->name);
    if (plumb_dtype_info(found->dtype)->kind == PLUMB_KIND_COMPLEX ||
        plumb_dtype_info(found->dtype)->bits < 8)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "operators of plumb do not compute with %s",
                          plumb_dtype_info(found->dtype)->name);
    if (!leaf->has_shape)
        return PLUMB_OK;
    enum plumb_code code = plumb_tensor_init(&said, found->dtype, leaf->rank, leaf->shape, err);
    if (code)
        return code;
    if (leaf->rank != found->rank ||
        memcmp(leaf->shape, found->shape, leaf->rank * sizeof *leaf->shape) != 0)
        return plumb_fail(err, PLUMB_E_FORMAT, "its file holds the shape %s instead of %s",
                          plumb_shape_text(found, a, sizeof a),
                          plumb_shape_text(&said, b, sizeof b));
    return PLUMB_OK;
}

static enum plumb_code make(struct passcheck_side *side, const struct passcheck_leaf *leaf,
                            uint64_t max_bytes, struct plumb_tensor *out, void **data,
                            struct plumb_error *err)
{
    enum plumb_code code;
    if (leaf->fill == PASSCHECK_FILE) {
        code = passcheck_load_leaf(side->graph, leaf, max_bytes, &side->memory, out, data, err);
        return code ? code : check_described(leaf, out, err);
    }
    code = plumb_tensor_init(out, leaf->dtype, leaf->rank, leaf->shape, err);
    if (code)
        return code;
    if (plumb_tensor_bytes(out) > max_bytes)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "a tensor of %llu bytes: all of a graph's tensors together may take a "
                          "quarter of this machine's memory, %llu bytes",
                          (unsigned long long)plumb_tensor_bytes(out),
                          (unsigned long long)memory_total() / 4);
    *data = arena_alloc(&side->memory, (size_t)plumb_tensor_bytes(out));
    if (!*data)
        return plumb_no_memory(err);
    out->data = *data;
    return leaf->fill == PASSCHECK_VALUES ? write_down(leaf, out, *data, err)
                                          : generate(leaf, side->options->seed, out, *data, err);
}

/* The reference computes everything in float64, the steps of the optimizer included. */
static enum plumb_code raise(struct passcheck_side *side, size_t k, struct plumb_error *err)
{
    enum { PIECE = 1024 };
    double piece[PIECE];
    struct plumb_tensor *t = &side->leaves[k];
    const struct plumb_tensor from = *t;
    if (plumb_dtype_info(from.dtype)->kind != PLUMB_KIND_FLOAT || from.dtype == PLUMB_F64)
        return PLUMB_OK;
    enum plumb_code code = plumb_tensor_init(t, PLUMB_F64, from.rank, from.shape, err);
    double *data = code ? NULL : arena_array(&side->memory, (size_t)from.count, sizeof *data);
    if (!data)
        return code ? code : plumb_no_memory(err);
    for (uint64_t first = 0; first < from.count; first += PIECE) {
        const size_t n = from.count - first < PIECE ? (size_t)(from.count - first) : PIECE;
        plumb_tensor_to_f64(&from, first, n, piece);
        memcpy(data + first, piece, n * sizeof *piece);
    }
    t->data = side->leaf_data[k] = data;
    return PLUMB_OK;
}

enum plumb_code passcheck_make_leaf(struct passcheck_side *side, size_t k, uint64_t *bytes_left,
                                    struct plumb_error *err)
{
    const struct passcheck_leaf *leaf = &side->graph->leaves[k];
    struct plumb_error why = {.offset = PLUMB_NO_OFFSET};
    enum plumb_code code =
        make(side, leaf, *bytes_left, &side->leaves[k], &side->leaf_data[k], &why);
    if (!code) {
        *bytes_left -= plumb_tensor_bytes(&side->leaves[k]);
        side->declared[k] = side->leaves[k].dtype;
        code = side->options->device ? PLUMB_OK : raise(side, k, &why);
    }
    if (!code)
        return PLUMB_OK;
    if (*why.file) { /* a tensor file with a fault of its own */
        plumb_fail_at(err, code, why.offset, "'%.80s': %.400s", leaf->name, why.message);
        plumb_error_in_file(err, why.file);
    } else {
        plumb_fail_at(err, code, leaf->at, "'%.80s': %.400s", leaf->name, why.message);
        plumb_error_in_file(err, side->graph->path);
    }
    return code;
}

/* ---- A side ---------------------------------------------------------------------------------- */

static enum plumb_code take_input(struct passcheck_side *side, size_t k,
                                  const struct passcheck_side *inputs, struct plumb_error *err)
{
    const struct passcheck_leaf *leaf = &side->graph->leaves[k];
    const size_t from = passcheck_find_leaf(inputs->graph, leaf->name);
    enum plumb_code code = PLUMB_OK;
    char a[256], b[256];
    if (from == SIZE_MAX || inputs->graph->leaves[from].role != PASSCHECK_INPUT) {
        code = plumb_fail_at(err, PLUMB_E_ARG, leaf->at, "%s has no input named '%.80s'",
                             inputs->graph->path, leaf->name);
    } else {
        const struct plumb_tensor *t = &inputs->leaves[from];
        struct plumb_tensor said;
        side->leaves[k] = *t;
        side->declared[k] = inputs->declared[from];
        if (leaf->has_dtype && leaf->dtype != inputs->declared[from])
            code = plumb_fail_at(
                err, PLUMB_E_ARG, leaf->at, "the input '%.80s' is %s here and %s in %s", leaf->name,
                plumb_dtype_info(leaf->dtype)->name, plumb_dtype_info(inputs->declared[from])->name,
                inputs->graph->path);
        else if (leaf->has_shape)
            code = plumb_tensor_init(&said, t->dtype, leaf->rank, leaf->shape, err);
        if (!code && leaf->has_shape &&
            (leaf->rank != t->rank ||
             memcmp(leaf->shape, t->shape, leaf->rank * sizeof *leaf->shape) != 0))
            code = plumb_fail_at(err, PLUMB_E_ARG, leaf->at,
                                 "the input '%.80s' is %s here and %s in %s", leaf->name,
                                 plumb_shape_text(&said, a, sizeof a),
                                 plumb_shape_text(t, b, sizeof b), inputs->graph->path);
    }
    if (code)
        plumb_error_in_file(err, side->graph->path);
    return code;
}

enum plumb_code passcheck_side_init(struct passcheck_side *side,
                                    const struct plumb_passcheck_graph *graph,
                                    const struct plumb_passcheck_options *options,
                                    const struct passcheck_side *inputs, struct plumb_error *err)
{
    *side = (struct passcheck_side){.graph = graph, .options = options};
    const size_t leaves = graph->n_leaves, nodes = graph->n_nodes;
    side->leaves = arena_array(&side->memory, leaves, sizeof *side->leaves);
    side->leaf_data = arena_array(&side->memory, leaves, sizeof *side->leaf_data);
    side->declared = arena_array(&side->memory, leaves, sizeof *side->declared);
    side->leaf_grads = arena_array(&side->memory, leaves, sizeof *side->leaf_grads);
    side->results = arena_array(&side->memory, nodes, sizeof *side->results);
    side->needs_grad = arena_array(&side->memory, nodes, sizeof *side->needs_grad);
    side->node_grads = arena_array(&side->memory, nodes, sizeof *side->node_grads);
    if (!side->leaves || !side->leaf_data || !side->declared || !side->leaf_grads ||
        !side->results || !side->needs_grad || !side->node_grads)
        return plumb_no_memory(err);
    uint64_t bytes_left = memory_total() / 4;
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < leaves && !code; k++)
        code = inputs && graph->leaves[k].role == PASSCHECK_INPUT
                   ? take_input(side, k, inputs, err)
                   : passcheck_make_leaf(side, k, &bytes_left, err);
    return code;
}

void passcheck_side_destroy(struct passcheck_side *side)
{
    for (size_t k = 0; side->graph && side->results && k < side->graph->n_nodes; k++)
        plumb_result_destroy(&side->results[k]);
    arena_free(&side->scratch);
    arena_free(&side->memory);
    *side = (struct passcheck_side){0};
}
