/* Layouts that somebody wrote down: dimensions, meshes, files, placements of DTensors. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair/shards_dims.h"
#include "pair/shards_group.h"

#include <string.h>

static const int64_t ranks[] = {0, 1, 2, 3, 4, 5, 6, 7};

/* The layout of dims on a mesh, as text. */
static const char *text_of(const char *dims, const char *mesh, unsigned parts, char *text)
{
    struct arena arena = {0};
    struct shards_dims read;
    struct shards_mesh sizes = {0};
    struct shards_layout *layout;
    struct plumb_error err = {0};
    enum plumb_code code = shards_dims_parse(&read, dims, &err);
    if (!code && mesh)
        code = shards_mesh_parse(&sizes, mesh, &err);
    if (!code)
        code = shards_dims_layout(&layout, &arena, &read, &sizes, ranks, parts, read.ndim, &err);
    if (code)
        strcpy(text, "refused");
    else
        shards_text(layout, ranks, text, SHARDS_TEXT);
    arena_free(&arena);
    return text;
}

static void test_dims(void **state)
{
    static const struct {
        const char *dims, *mesh;
        unsigned parts;
        const char *layout;
    } cases[] = {
        {"b s h[tp] d", NULL, 4, "concat axis 2 over ranks 0,1,2,3"},
        {"b s h d", "tp=4", 4, "replica of 4: ranks 0|1|2|3"},
        {"b s[cp:zigzag] h[tp] d", "tp=2,cp=2", 4,
         "zigzag axis 1, then concat axis 2 over ranks 0,1,2,3"},
        {"b s[cp:zigzag,sp] h", "sp=2,cp=2", 4,
         "zigzag axis 1, then concat axis 1 over ranks 0,1,2,3"},
        {"b s[sp,cp] h", "sp=2,cp=2", 4, "concat axis 1, then concat axis 1 over ranks 0,2,1,3"},
        {"b h[tp:partial]", "tp=2,dp=2", 4, "sum of 2: ranks 0|2+1|3"},
        {"b[dp] h[tp:partial]", "tp=2,dp=2", 4, "concat axis 0, sum of 2 over ranks 0+1,2+3"},
        {"(b*s)[cp:natural+sharded] 1 h", NULL, 2, "concat axis 0 over ranks 0,1"},
        {"o[tp:fused=4:1:1] i # dp:=x ep:replicated", NULL, 2,
         "interleaved 4:1:1 axis 0 over ranks 0,1"},
        {"[dp:mean]", NULL, 2, "mean of 2: ranks 0+1"},
        {"b[dp:scaled]", NULL, 2, "concat axis 0 over ranks 0,1, each 2 times too large"},
        {"h[ tp : partial ]", NULL, 2, "refused"},
        {"h[ tp ]", NULL, 2, "concat axis 0 over ranks 0,1"},
        {"h[tp] w[cp]", NULL, 4, "refused"}, /* how many of which? */
        {"", NULL, 2, "refused"},
        {"# tp:replicated", NULL, 2, "refused"},
        {"h # whatever", NULL, 2, "refused"},
        {"h[tp:fused=1]", NULL, 2, "refused"},
        {"h[tp:fused=1:0]", NULL, 2, "refused"},
        {"h[]", NULL, 2, "refused"},
        {"(h*)[tp]", NULL, 2, "refused"},
        {"[tp]", NULL, 2, "refused"},
        {"a[tp] b[tp]", NULL, 2, "refused"},
    };
    char text[SHARDS_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(text_of(cases[i].dims, cases[i].mesh, cases[i].parts, text),
                            cases[i].layout);
}

static void test_mesh(void **state)
{
    static const char *const bad[] = {"tp",    "tp=",
                                      "tp=0",  "tp=-1",
                                      "=2",    "tp=2,",
                                      "tp=2x", "tp=1000000,pp=1000000",
                                      "a b=2", "tp=99999999999999999999"};
    struct shards_mesh mesh;
    (void)state;
    assert_int_equal(shards_mesh_parse(&mesh, "tp=2,cp=3,pp=4", NULL), PLUMB_OK);
    assert_int_equal(shards_mesh_ranks(&mesh), 24);
    assert_int_equal(shards_mesh_place(&mesh, shards_mesh_find(&mesh, "tp"), 17), 1);
    assert_int_equal(shards_mesh_place(&mesh, shards_mesh_find(&mesh, "cp"), 17), 2);
    assert_int_equal(shards_mesh_place(&mesh, shards_mesh_find(&mesh, "pp"), 17), 2);
    assert_null(shards_mesh_find(&mesh, "dp"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (strcmp(bad[i], "tp=2,") != 0)
            assert_int_equal(shards_mesh_parse(&mesh, bad[i], NULL), PLUMB_E_ARG);
}

static const char *recorded(const char *dtensor, unsigned parts, char *text)
{
    struct arena arena = {0};
    struct shards_layout *layout;
    if (shards_recorded(&layout, &arena, dtensor, ranks, parts, NULL))
        strcpy(text, "refused");
    else
        shards_text(layout, ranks, text, SHARDS_TEXT);
    arena_free(&arena);
    return text;
}

static void test_recorded(void **state)
{
    static const struct {
        const char *text;
        unsigned parts;
        const char *layout;
    } cases[] = {
        {"{\"placements\": [\"S(1)\"], \"mesh\": [0, 1]}", 2, "concat axis 1 over ranks 0,1"},
        {"{\"placements\": [\"R\", \"S(0)\"], \"mesh\": [[0, 1], [2, 3]]}", 4,
         "concat axis 0 over ranks 0|2,1|3"},
        {"{\"mesh\": [[0, 2], [1, 3]], \"placements\": [\"S(0)\", \"S(1)\"]}", 4,
         "concat axis 0, then concat axis 1 over ranks 0,2,1,3"},
        {"{\"placements\": [\"_S(0, 2)\", \"S(0)\"], \"mesh\": [[0, 1], [2, 3]]}", 4,
         "concat axis 0, then concat axis 0 over ranks 0,2,1,3"},
        {"{\"placements\": [\"P(sum)\"], \"mesh\": [0, 1]}", 2, "sum of 2: ranks 0+1"},
        {"{\"placements\": [\"P(avg)\"], \"mesh\": [0, 1]}", 2, "mean of 2: ranks 0+1"},
        {"{\"placements\": [\"P(max)\"], \"mesh\": [0, 1]}", 2, "refused"},
        {"{\"placements\": [\"R\"], \"mesh\": [0, 1]}", 4, "refused"}, /* ranks 2 and 3? */
        {"{\"placements\": [\"S(0)\"], \"mesh\": [[0, 1], [2]]}", 3, "refused"},
        {"{\"placements\": [\"S(0)\"], \"mesh\": [[0, 1], [2, 3]]}", 4, "refused"},
        {"{\"placements\": [\"S(0)\"], \"mesh\": []}", 1, "refused"},
        {"{\"placements\": \"S(0)\", \"mesh\": [0]}", 1, "refused"},
        {"{", 1, "refused"},
        {"", 1, "refused"},
    };
    char text[SHARDS_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(recorded(cases[i].text, cases[i].parts, text), cases[i].layout);
}

static void test_rules(void **state)
{
    static const char file[] =
        "parallel: {target: \"tp=2\", golden: \"tp=4\"}\n"
        "layouts:\n"
        "  \"*.weight\": o[tp] i\n"
        "overrides:\n"
        "  - {match: \"h\\\\d+\\\\.\", dims: \"b s[tp] h\", side: baseline}\n";
    struct arena arena = {0};
    struct shards_rules rules = {0};
    struct plumb_error err;
    (void)state;
    assert_int_equal(shards_rules_add(&rules, &arena, "a.weight=o i[tp]", &err), PLUMB_OK);
    assert_int_equal(shards_rules_parse(&rules, &arena, file, sizeof file - 1, &err), PLUMB_OK);
    assert_int_equal(rules.mesh[0].axis[0].size, 2);
    assert_int_equal(rules.mesh[1].axis[0].size, 4);
    assert_ptr_equal(shards_rules_find(&rules, 0, "a.weight"), &rules.list[0].dims);
    assert_ptr_equal(shards_rules_find(&rules, 0, "b.weight"), &rules.list[1].dims);
    assert_null(shards_rules_find(&rules, 0, "x.h12.y"));
    assert_ptr_equal(shards_rules_find(&rules, 1, "x.h12.y"), &rules.list[2].dims);
    assert_null(shards_rules_find(&rules, 1, "x.h.y"));
    shards_rules_free(&rules);
    arena_free(&arena);
}

/* Stages that count their layers from 0, and calls that two stages both call the first. */
static void test_groups(void **state)
{
    static const struct plumb_caller caller = {.parent = "Module.layers.0.A.forward.0"};
    static const struct plumb_recorded first = {.tensor = true,
                                                .api = "Functional.linear.0.forward",
                                                .caller = &caller},
                                       whole = {.tensor = true,
                                                .api = "Module.layers.0.A.forward.0"};
    struct plumb_record records[4] = {
        {.name = "Module.layers.0.A.forward.0.output.0", .rank = 0, .recorded = &whole},
        {.name = "Functional.linear.0.forward.output.0", .rank = 0, .recorded = &first},
        {.name = "Module.layers.0.A.forward.0.output.0", .rank = 1, .recorded = &whole},
        {.name = "Functional.linear.0.forward.output.0", .rank = 1, .recorded = &first},
    };
    const struct plumb_record *list[4] = {&records[0], &records[1], &records[2], &records[3]};
    struct arena arena = {0};
    struct shards_groups groups;
    const struct shards_numbers none = {1, 0}, twice = {2, 0};
    (void)state;
    assert_true(shards_group(&groups, &arena, list, 4, NULL, &none));
    assert_int_equal(groups.count, 2); /* two ranks with the same */
    assert_int_equal(groups.list[0].parts, 2);
    assert_true(shards_group(&groups, &arena, list, 4, NULL, &twice));
    assert_int_equal(groups.stages, 2);
    assert_int_equal(groups.count, 4);
    assert_string_equal(groups.list[2].name, "Module.layers.1.A.forward.0.output.0");
    assert_string_equal(groups.list[3].name, "Functional.linear.1.forward.output.0");
    assert_string_equal(groups.list[3].parent, "Module.layers.1.A.forward.0");
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dims),     cmocka_unit_test(test_mesh),
        cmocka_unit_test(test_recorded), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
