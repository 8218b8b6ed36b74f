#include "pair/graph_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct graph graph;
    if (graph_parse(&graph, (const char *)data, size, &arena, NULL))
        abort();
    for (size_t i = 0; i < graph.count; i++) {
        const struct graph_op *op = &graph.ops[i];
        if (!graph_find(&graph, op->name, strlen(op->name)))
            abort();
        for (size_t k = 0; k < op->fx_count; k++)
            if (op->fx[k].output >= op->outputs)
                abort();
    }
    if (!graph_spell_as_files(&graph, &arena))
        abort();
    for (size_t i = 0; i < graph.count; i++) {
        const struct graph_op *found =
            graph_find(&graph, graph.ops[i].key, strlen(graph.ops[i].key));
        if (!found || strcmp(found->key, graph.ops[i].key) != 0 ||
            strlen(found->key) > graph.longest)
            abort();
    }
    if ((graph.odd_lines > 0) != (graph.first_odd > 0))
        abort();
    graph_free(&graph);
    arena_free(&arena);
    return 0;
}
