#include "dump/reader.h"

#include <stdlib.h>

/* The bytes as dump.json, and as the two files beside it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dump_tree tree = {.folder = "fuzz", .path = "fuzz/dump.json"};
    struct plumb_error err;
    char path[300];
    if (dump_parse(&tree, data, size, NULL, NULL, &err) == PLUMB_OK) {
        dump_parse_stacks(&tree, data, size, "stack.json");
        dump_parse_parents(&tree, data, size, "construct.json");
    }
    for (size_t i = 0; i < tree.row_count; i++) {
        const struct dump_row *row = &tree.rows[i];
        if (!row->name || !row->path_name || !row->dtype || !row->shape ||
            row->api >= tree.api_count)
            abort();
        dump_payload(&tree, row->data_name, path, sizeof path);
    }
    for (size_t i = 0; i < tree.api_count; i++)
        if (tree.apis[i].first + tree.apis[i].count > tree.row_count ||
            tree.apis[i].stack > tree.stack_count || tree.apis[i].offset > size)
            abort();
    dump_close(&tree);
    return 0;
}
