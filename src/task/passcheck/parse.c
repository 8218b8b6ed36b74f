/* A graph file, from its bytes to names, nodes and outputs. */
#include "task/passcheck/parse.h"

#include "base/mapped.h"
#include "base/nearest.h"

#include <stdlib.h>
#include <string.h>

/* The file while it is read. */
struct reader {
    struct case_parser p;
    struct plumb_passcheck_graph *graph;
    bool has_version, has_nodes, has_outputs;
};

static enum plumb_code expect_object(struct case_parser *p, const char *what)
{
    const enum json_event event = json_next(&p->json);
    if (event == JSON_ERROR)
        return case_damaged(p);
    return event == JSON_OBJECT ? PLUMB_OK : case_fail(p, "\"%s\" must be an object", what);
}

static enum plumb_code parse_leaves(struct reader *r, const char *what, enum passcheck_role role)
{
    struct plumb_passcheck_graph *graph = r->graph;
    struct case_parser *p = &r->p;
    enum plumb_code code = expect_object(p, what);
    enum json_event event = JSON_ERROR;
    while (!code && (event = json_next(&p->json)) == JSON_KEY) {
        if (graph->n_leaves == PASSCHECK_MAX_NAMES)
            return case_fail(p, "more than %d tensors", PASSCHECK_MAX_NAMES);
        graph->leaves = case_grow(p, graph->leaves, graph->n_leaves, sizeof *graph->leaves);
        if (!graph->leaves)
            return case_no_memory(p);
        struct passcheck_leaf *leaf = &graph->leaves[graph->n_leaves++];
        *leaf = (struct passcheck_leaf){.role = role, .requires_grad = role == PASSCHECK_PARAMETER};
        if (p->json.length == 0)
            return case_fail(p, "a tensor without a name");
        code = case_text(p, &leaf->name);
        p->items = 0;
        if (!code)
            code = passcheck_parse_leaf(p, leaf);
    }
    if (code)
        return code;
    return event == JSON_OBJECT_END ? PLUMB_OK : case_damaged(p);
}

static enum plumb_code parse_kwargs(struct case_parser *p, struct passcheck_node *node)
{
    enum plumb_code code = expect_object(p, "kwargs");
    enum json_event event = JSON_ERROR;
    while (!code && (event = json_next(&p->json)) == JSON_KEY) {
        if (node->n_kwargs == CASE_MAX_KWARGS)
            return case_fail(p, "more than %d keyword arguments", CASE_MAX_KWARGS);
        node->kwargs = case_grow(p, node->kwargs, node->n_kwargs, sizeof *node->kwargs);
        if (!node->kwargs)
            return case_no_memory(p);
        struct passcheck_kwarg *kwarg = &node->kwargs[node->n_kwargs++];
        code = case_text(p, &kwarg->name);
        for (size_t k = 0; !code && k + 1 < node->n_kwargs; k++)
            if (strcmp(node->kwargs[k].name, kwarg->name) == 0)
                return case_fail(p, "the keyword argument '%.60s' is given twice", kwarg->name);
        if (!code)
            code = passcheck_parse_arg(p, json_next(&p->json), &kwarg->value);
    }
    if (code)
        return code;
    return event == JSON_OBJECT_END ? PLUMB_OK : case_damaged(p);
}

static enum plumb_code parse_op(struct case_parser *p, struct passcheck_node *node)
{
    const char *text;
    enum plumb_code code = passcheck_parse_text(p, "op", &text);
    if (code)
        return code;
    node->def = passcheck_find_op(text, &node->prefix, &node->op);
    if (node->def)
        return PLUMB_OK;
    struct nearest near;
    const struct plumb_op *op;
    nearest_init(&near, node->op);
    for (size_t k = 0; (op = plumb_op_at(k)); k++)
        nearest_try(&near, op->names, strcspn(op->names, " "));
    const bool close = nearest_is_close(&near);
    return plumb_fail_at(p->err, PLUMB_E_UNSUPPORTED, p->json.start,
                         "plumb has no operator '%.80s'%s%s; 'plumb ops' lists those it has", text,
                         close ? ", did you mean " : "", close ? near.name : "");
}

static enum plumb_code parse_node(struct case_parser *p, struct passcheck_node *node)
{
    enum plumb_code code = PLUMB_OK;
    enum json_event event;
    *node = (struct passcheck_node){.at = p->json.start};
    p->items = 0;
    while ((event = json_next(&p->json)) == JSON_KEY) {
        if (json_is(&p->json, "name"))
            code = passcheck_parse_text(p, "name", &node->name);
        else if (json_is(&p->json, "op"))
            code = parse_op(p, node);
        else if (json_is(&p->json, "args"))
            code = passcheck_parse_args(p, "args", &node->args, &node->n_args);
        else if (json_is(&p->json, "kwargs"))
            code = node->kwargs ? case_fail(p, "\"kwargs\" is there twice") : parse_kwargs(p, node);
        else
            code = case_fail(p, "a node has name, op, args and kwargs, not \"%.*s\"",
                             p->json.length < 40 ? (int)p->json.length : 40, p->json.text);
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END)
        return case_damaged(p);
    if (!node->name || !node->def)
        return plumb_fail_at(p->err, PLUMB_E_FORMAT, node->at, "a node without \"%s\"",
                             node->name ? "op" : "name");
    return PLUMB_OK;
}

static enum plumb_code parse_nodes(struct reader *r)
{
    struct plumb_passcheck_graph *graph = r->graph;
    struct case_parser *p = &r->p;
    enum json_event event = json_next(&p->json);
    if (event == JSON_ERROR)
        return case_damaged(p);
    if (event != JSON_ARRAY || r->has_nodes)
        return case_fail(p, "\"nodes\" must be one list of objects");
    r->has_nodes = true;
    while ((event = json_next(&p->json)) != JSON_ARRAY_END) {
        if (event == JSON_ERROR)
            return case_damaged(p);
        if (event != JSON_OBJECT)
            return case_fail(p, "a node must be an object");
        if (graph->n_nodes == PASSCHECK_MAX_NAMES)
            return case_fail(p, "more than %d nodes", PASSCHECK_MAX_NAMES);
        graph->nodes = case_grow(p, graph->nodes, graph->n_nodes, sizeof *graph->nodes);
        if (!graph->nodes)
            return case_no_memory(p);
        enum plumb_code code = parse_node(p, &graph->nodes[graph->n_nodes++]);
        if (code)
            return code;
    }
    return PLUMB_OK;
}

static enum plumb_code parse_version(struct reader *r)
{
    int64_t version;
    const enum json_event event = json_next(&r->p.json);
    if (event == JSON_ERROR)
        return case_damaged(&r->p);
    if (event != JSON_NUMBER || !json_int64(&r->p.json, &version) || version != 1)
        return case_fail(&r->p, "\"plumb_graph\" must be 1, the version that this plumb reads");
    r->has_version = true;
    return PLUMB_OK;
}

static enum plumb_code parse_field(struct reader *r)
{
    struct case_parser *p = &r->p;
    if (json_is(&p->json, "plumb_graph"))
        return parse_version(r);
    if (json_is(&p->json, "inputs"))
        return parse_leaves(r, "inputs", PASSCHECK_INPUT);
    if (json_is(&p->json, "parameters"))
        return parse_leaves(r, "parameters", PASSCHECK_PARAMETER);
    if (json_is(&p->json, "buffers"))
        return parse_leaves(r, "buffers", PASSCHECK_BUFFER);
    if (json_is(&p->json, "nodes"))
        return parse_nodes(r);
    if (json_is(&p->json, "outputs")) {
        p->items = 0;
        r->has_outputs = true;
        return passcheck_parse_args(p, "outputs", &r->graph->outputs, &r->graph->n_outputs);
    }
    return case_skip(p, JSON_KEY); /* comments, and what later versions add */
}

static enum plumb_code parse_all(struct reader *r)
{
    struct case_parser *p = &r->p;
    enum json_event event = json_next(&p->json);
    if (event == JSON_ERROR)
        return case_damaged(p);
    if (event != JSON_OBJECT)
        return case_fail(p, "not a graph file: it must be one object");
    while ((event = json_next(&p->json)) == JSON_KEY) {
        enum plumb_code code = parse_field(r);
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END || json_next(&p->json) != JSON_END)
        return case_damaged(p);
    if (!r->has_version)
        return plumb_fail(p->err, PLUMB_E_FORMAT,
                          "not a graph file: it does not say \"plumb_graph\": 1");
    if (!r->has_outputs || r->graph->n_outputs == 0)
        return plumb_fail(p->err, PLUMB_E_FORMAT, "the graph has no \"outputs\"");
    return PLUMB_OK;
}

enum plumb_code plumb_passcheck_graph_parse(struct plumb_passcheck_graph **out, const void *bytes,
                                            size_t size, const char *path, struct plumb_error *err)
{
    struct plumb_error own;
    err = err ? err : &own;
    *out = NULL;
    enum plumb_code code = plumb_op_ready(err);
    if (code)
        return code;
    struct plumb_passcheck_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return plumb_no_memory(err);
    struct reader r = {.p = {.arena = &graph->arena, .err = err}, .graph = graph};
    json_init(&r.p.json, bytes, size);
    code = parse_all(&r);
    if (!code)
        code = passcheck_resolve(graph, err);
    graph->path = arena_copy(&graph->arena, path, strlen(path));
    if (!code && !graph->path)
        code = plumb_no_memory(err);
    if (code) {
        plumb_error_in_file(err, path);
        plumb_passcheck_graph_free(graph);
        return code;
    }
    *out = graph;
    return PLUMB_OK;
}

enum plumb_code plumb_passcheck_graph_open(struct plumb_passcheck_graph **out, const char *path,
                                           struct plumb_error *err)
{
    struct mapped in;
    *out = NULL;
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    code = plumb_passcheck_graph_parse(out, in.file.data, (size_t)in.file.size, path, err);
    code = mapped_close(&in, code, err);
    if (code) {
        plumb_passcheck_graph_free(*out);
        *out = NULL;
    }
    return code;
}

void plumb_passcheck_graph_free(struct plumb_passcheck_graph *graph)
{
    if (!graph)
        return;
    map_free(&graph->names);
    arena_free(&graph->arena);
    free(graph);
}
