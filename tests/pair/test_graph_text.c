#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "msprobe/graph.h"
#include "pair/graph_names.h"
#include "pair/graph_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;

static struct graph parse(const char *text)
{
    struct graph graph;
    assert_int_equal(graph_parse(&graph, text, strlen(text), &arena, NULL), PLUMB_OK);
    return graph;
}

static const struct graph_op *find(const struct graph *graph, const char *name)
{
    return graph_find(graph, name, strlen(name));
}

#define ADD                                                                                        \
    "op {\n  name: \"Add\"\n  input: \"a:b:0\"\n  input: \"Mul:1\"\n"                              \
    "  input_desc {\n    name: \"x\"\n  }\n"                                                       \
    "  output_desc {\n    name: \"y\"\n    attr {\n      key: \"_meta\"\n      value {\n"          \
    "        s: \"no: name {\"\n      }\n    }\n"                                                  \
    "    attr {\n      key: \"_fx_tensor_name\"\n      value {\n"                                  \
    "        s: \"add-aten.add.Tensor.OUTPUT.0\"\n      }\n    }\n  }\n"                           \
    "  output_desc {\n    attr {\n      key: \"_fx_tensor_name\"\n      value {\n"                 \
    "        s: \"add_9\"\n      }\n    }\n  }\n}\n"
#define PLAIN(name) "op {\n  name: \"" name "\"\n  type: \"T\"\n}\n"

static void what_an_operator_says(void **state)
{
    (void)state;
    struct graph graph = parse("name: \"graph_1\"\nattr {\n  key: \"x\"\n  value {\n    i: 1\n"
                               "  }\n}\n" ADD PLAIN("Mul"));
    assert_int_equal(graph.count, 2);
    assert_int_equal(graph.odd_lines, 0);
    const struct graph_op *add = find(&graph, "Add");
    assert_int_equal(add->input_count, 2);
    assert_string_equal(add->inputs[0], "a:b");
    assert_string_equal(add->inputs[1], "Mul");
    assert_int_equal(add->fx_count, 2);
    assert_string_equal(add->fx[0].key, "add-aten.add.Tensor");
    assert_int_equal(add->fx[0].fx_output, 0);
    assert_int_equal(add->fx[0].output, 0);
    assert_string_equal(add->fx[1].key, "add_9");
    assert_int_equal(add->fx[1].fx_output, -1);
    assert_int_equal(add->fx[1].output, 1);
    assert_null(find(&graph, "Ad"));
    graph_free(&graph);
    arena_free(&arena);
}

/* Each line of the first operator broken or lost in turn: the second is always there. */
static void each_line_broken(void **state)
{
    (void)state;
    static const char text[] = ADD, tail[] = PLAIN("Mul");
    for (size_t at = 0, end; at < sizeof text - 1; at = end) {
        end = at + strcspn(text + at, "\n") + 1;
        for (int lost = 0; lost < 2; lost++) {
            char broken[2048] = "";
            snprintf(broken, sizeof broken, "%.*s%s%s%s", (int)at, text, lost ? "" : "@ %&\n",
                     text + end, tail);
            struct graph graph = parse(broken);
            assert_non_null(find(&graph, "Mul"));
            assert_true(lost || graph.odd_lines > 0);
            graph_free(&graph);
        }
    }
    struct graph graph = parse("op {\n  name: \"Add\"\n@\n}\n");
    assert_int_equal(graph.odd_lines, 1);
    assert_int_equal(graph.first_odd, 3);
    assert_non_null(find(&graph, "Add"));
    graph_free(&graph);
    arena_free(&arena);
}

static void cut_anywhere(void **state)
{
    (void)state;
    static const char text[] = ADD PLAIN("Mul");
    for (size_t size = 0; size < sizeof text; size++) {
        struct graph graph;
        char *copy = malloc(size + 1);
        assert_non_null(copy);
        memcpy(copy, text, size);
        assert_int_equal(graph_parse(&graph, copy, size, &arena, NULL), PLUMB_OK);
        if (size > 20)
            assert_non_null(find(&graph, "Add"));
        graph_free(&graph);
        free(copy);
    }
    arena_free(&arena);
}

static void names_of_ge_files(void **state)
{
    (void)state;
    static const struct {
        const char *name, *op, *origin_op;
    } cases[] = {
        {"Add.Add_2.44.6.1706596912161941", "Add_2", "Add_2"},
        {"Add.layers.0.Add.21.6.1740800000002877", "layers.0.Add", "layers.0.Add"},
        {"Add.Add_2.44.1706596912161941", "Add_2", NULL}, /* no stream id */
        {"Add.Add_2.44.6.1706596912161941.4.1.0.7", "Add_2", "Add_2.44.6.1706596912161941.4"},
        {"88888888888888888888888888888888", NULL, NULL},
        {"mapping.csv", NULL, NULL},
        {"a.b.c.d.e", NULL, "b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int origin = 0; origin < 2; origin++) {
            const char *want = origin ? cases[i].origin_op : cases[i].op;
            struct ge_name parts;
            bool (*take)(const char *, struct ge_name *) =
                origin ? msprobe_graph.rules.parse_name : ge_name_parse;
            bool ok = take(cases[i].name, &parts);
            assert_int_equal(ok, want != NULL);
            if (ok) {
                assert_int_equal(parts.op_length, strlen(want));
                assert_memory_equal(parts.op, want, parts.op_length);
            }
        }
    }
}

static void names_of_fx_files(void **state)
{
    (void)state;
    struct fx_name parts;
    assert_true(fx_name_parse("add-aten.add.Tensor.INPUT.10.20250301120000000274.npy", &parts));
    assert_true(parts.input && parts.index == 10 && parts.inner == 0 && parts.key_length == 19);
    assert_true(fx_name_parse("cat-aten.cat.INPUT.0.11.20250301120000000274.npy", &parts));
    assert_true(parts.index == 0 && parts.inner == 11);
    assert_true(fx_name_parse("a.OUTPUT.3.2025030112.npy", &parts));
    assert_true(!parts.input && parts.index == 3 && parts.inner == 0);
    assert_false(fx_name_parse("a.OUTPUT.3.2025.bin", &parts));
    assert_false(fx_name_parse("weights.npy", &parts));
}

static void names_of_folders_and_graphs(void **state)
{
    (void)state;
    uint64_t id;
    assert_int_equal(rank_of_folder("worldsize2_global_rank1"), 1);
    assert_int_equal(rank_of_folder("worldsize2_global_rank"), -1);
    assert_int_equal(rank_of_folder("world_rank1"), -1);
    assert_int_equal(rank_of_folder("20250301120002"), -1);
    assert_true(graph_name_parse("dynamo_original_graph_12_rank_0_pid_4_ts_5.txt", -1, &id));
    assert_int_equal(id, 12);
    assert_true(graph_name_parse("dynamo_original_graph_12_rank_0_pid_4_ts_5.txt", 0, &id));
    assert_false(graph_name_parse("dynamo_original_graph_12_rank_10_pid_4_ts_5.txt", 1, &id));
    assert_false(graph_name_parse("dynamo_optimized_graph_12_rank_0_pid_4_ts_5.txt", 0, &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_operator_says), cmocka_unit_test(each_line_broken),
        cmocka_unit_test(cut_anywhere),          cmocka_unit_test(names_of_ge_files),
        cmocka_unit_test(names_of_fx_files),     cmocka_unit_test(names_of_folders_and_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
