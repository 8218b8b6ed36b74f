#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct item {
    const char *name;
    int64_t size; /* shape is [size]; 0 stands for [8] */
    int64_t step, rank;
    uint32_t path_call;
};

enum { MAX_ITEMS = 16 };

struct side {
    struct plumb_record records[MAX_ITEMS];
    const struct plumb_record *pointers[MAX_ITEMS];
    int64_t shapes[MAX_ITEMS];
    size_t count;
};

/* Up to the first item without a name. */
static void fill(struct side *side, const struct item items[MAX_ITEMS])
{
    *side = (struct side){0};
    for (size_t i = 0; i < MAX_ITEMS && items[i].name; i++) {
        side->shapes[i] = items[i].size ? items[i].size : 8;
        side->records[i] = (struct plumb_record){.name = items[i].name,
                                                 .step = items[i].step,
                                                 .rank = items[i].rank,
                                                 .path_call = items[i].path_call,
                                                 .ndim = 1,
                                                 .shape = &side->shapes[i]};
        side->pointers[i] = &side->records[i];
        side->count++;
    }
}

/* "0=1l 1=0n t2~0 g2~-": pairs with how (name, likeness, order, map), then what is left of target
 * and golden with the nearest of the other. */
static void describe(const struct plumb_matching *matching, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < matching->count; i++) {
        const struct plumb_pair *pair = &matching->pairs[i];
        char nearest[24] = "-";
        if (pair->nearest != PLUMB_NO_RECORD)
            snprintf(nearest, sizeof nearest, "%zu", pair->nearest);
        const char *gap = i ? " " : "";
        if (pair->how != PLUMB_UNMATCHED) {
            assert_true(i < matching->matched);
            used += (size_t)snprintf(text + used, size - used, "%s%zu=%zu%c", gap, pair->target,
                                     pair->golden, "nlom"[pair->how]);
        } else {
            assert_true(i >= matching->matched);
            bool target = pair->golden == PLUMB_NO_RECORD;
            used +=
                (size_t)snprintf(text + used, size - used, "%s%c%zu~%s", gap, target ? 't' : 'g',
                                 target ? pair->target : pair->golden, nearest);
        }
    }
}

static void check(const struct plumb_pair_options *options, const struct item *target,
                  const struct item *golden, const char *expected)
{
    struct side t, g;
    struct plumb_matching matching;
    struct plumb_error err;
    char text[1024];
    fill(&t, target);
    fill(&g, golden);
    assert_int_equal(
        match_records(&matching, t.pointers, t.count, g.pointers, g.count, options, &err),
        PLUMB_OK);
    describe(&matching, text, sizeof text);
    assert_string_equal(text, expected);
    plumb_matching_free(&matching);
}

#define N(text)                                                                                    \
    {                                                                                              \
        .name = (text)                                                                             \
    }
#define S(text, number)                                                                            \
    {                                                                                              \
        .name = (text), .size = (number)                                                           \
    }
#define P(text, in_step, on_rank)                                                                  \
    {                                                                                              \
        .name = (text), .step = (in_step), .rank = (on_rank)                                       \
    }
#define C(text, of_call)                                                                           \
    {                                                                                              \
        .name = (text), .path_call = (of_call)                                                     \
    }
#define ITEMS(...) ((const struct item[MAX_ITEMS]){__VA_ARGS__})
#define AUTO (&(const struct plumb_pair_options){.mode = PLUMB_PAIR_AUTO})
#define EXACT (&(const struct plumb_pair_options){.mode = PLUMB_PAIR_EXACT})
#define ORDER (&(const struct plumb_pair_options){.mode = PLUMB_PAIR_ORDER})

static void equal_names(void **state)
{
    (void)state;
    check(EXACT, ITEMS(N("a"), N("b"), N("c")), ITEMS(N("c"), N("a"), N("b")), "0=1n 1=2n 2=0n");
    check(EXACT, ITEMS(N("a"), N("b")), ITEMS(N("b"), N("c"), N("d")), "1=0n t0~- g1~- g2~-");
    check(EXACT, ITEMS(N(NULL)), ITEMS(N("a")), "g0~-");
    check(AUTO, ITEMS(N(NULL)), ITEMS(N(NULL)), "");
    /* the k-th with the k-th */
    check(EXACT, ITEMS(N("a"), N("b"), N("a"), N("a")), ITEMS(N("a"), N("a"), N("b")),
          "0=0n 1=2n 2=1n t3~0");
}

static void steps_and_ranks(void **state)
{
    (void)state;
    /* One each: they do not matter, whatever they are. */
    check(EXACT, ITEMS(P("a", 1, 0), P("b", 1, 0)), ITEMS(P("a", 7, -1), P("b", 7, -1)),
          "0=0n 1=1n");
    /* Several: they must be equal. */
    check(EXACT, ITEMS(P("a", 1, 0), P("a", 2, 0)), ITEMS(P("a", 2, 5), P("a", 3, 5)),
          "1=0n t0~1 g1~0");
    check(EXACT, ITEMS(P("a", 1, 0), P("a", 1, 1)), ITEMS(P("a", 1, 1), P("a", 1, 0)), "0=1n 1=0n");
    /* One against several. */
    check(EXACT, ITEMS(P("a", 2, 0)), ITEMS(P("a", 1, 0), P("a", 2, 0)), "0=1n g0~0");
    /* Fuzzy obeys the same. */
    check(AUTO, ITEMS(P("x/a", 1, 0), P("x/a", 2, 0)), ITEMS(P("x.a", 2, 0), P("x.a", 1, 0)),
          "0=1l 1=0l");
    /* "a" of step 11, rank 1 is not "a" of step 1, rank 11 */
    check(AUTO, ITEMS(P("a", 11, 1), P("b", 1, 1)), ITEMS(P("a", 1, 11), P("b", 1, 1)),
          "1=1n t0~0 g0~0");
}

static void single_records_always_match(void **state)
{
    (void)state;
    check(EXACT, ITEMS(N("a")), ITEMS(N("a")), "0=0n");
    check(EXACT, ITEMS(S("a", 2)), ITEMS(P("quite.another", 4, 5)), "0=0o");
    check(AUTO, ITEMS(N("a")), ITEMS(N("b")), "0=0o");
    check(AUTO, ITEMS(N("a")), ITEMS(N("b"), N("c")), "t0~- g0~- g1~-");
    /* But not what plays another part in a call. */
    check(AUTO, ITEMS(N("lin.Linear.0.forward_input.0")), ITEMS(N("lin.Linear.0.forward_output.0")),
          "t0~0 g0~0");
    check(EXACT, ITEMS(N("Torch.relu.0.forward.input.0")),
          ITEMS(N("Torch.relu.0.forward.output.0")), "t0~0 g0~0");
    check(AUTO, ITEMS(N("a.L.0.forward_input.0")), ITEMS(N("a.L.0.backward_input.0")), "t0~0 g0~0");
    check(AUTO, ITEMS(N("a.L.0.forward_params.weight")), ITEMS(N("a.L.0.forward_output.0")),
          "t0~0 g0~0");
    check(AUTO, ITEMS(N("a.L.0.forward_output.0")), ITEMS(N("quite.B.7.forward_output.1")), "0=0o");
    check(AUTO, ITEMS(N("a.L.0.forward_output.0")), ITEMS(N("x")), "0=0o");
    check(AUTO, ITEMS(N("input")), ITEMS(N("output")), "0=0o");
}

/* Conversion puts steps and ranks into names. */
static void converted(void **state)
{
    (void)state;
    check(EXACT, ITEMS(P("a", 1, 0), P("a", 2, 0), P("a", 1, 1), P("a", 2, 1)),
          ITEMS(P("rank1/2/a", -1, -1), P("rank1/1/a", -1, -1), P("rank0/2/a", -1, -1),
                P("rank0/1/a", -1, -1)),
          "0=3n 1=2n 2=1n 3=0n");
    check(EXACT, ITEMS(P("2/a", -1, -1), P("1/a", -1, -1)), ITEMS(P("a", 1, 0), P("a", 2, 0)),
          "0=1n 1=0n");
    check(EXACT, ITEMS(P("rank1/a", 3, -1), P("rank0/a", 3, -1)), ITEMS(P("a", 3, 0), P("a", 3, 1)),
          "0=1n 1=0n");
    check(EXACT, ITEMS(P("1/a", -1, -1), P("b", -1, -1)), ITEMS(P("1/a", 1, 0), P("b", 1, 0)),
          "0=0n 1=1n");
    check(EXACT, ITEMS(P("1/a", -1, -1), P("2/a", -1, -1)),
          ITEMS(P("2/a", -1, -1), P("1/a", -1, -1)), "0=1n 1=0n");
}

static void by_order(void **state)
{
    (void)state;
    check(ORDER, ITEMS(N("a"), N("b")), ITEMS(N("b"), N("x")), "0=0o 1=1o");
    struct side t, g;
    struct plumb_matching matching;
    struct plumb_error err;
    fill(&t, ITEMS(N("a"), N("b"), N("c")));
    fill(&g, ITEMS(N("a"), N("b")));
    assert_int_equal(
        match_records(&matching, t.pointers, t.count, g.pointers, g.count, ORDER, &err),
        PLUMB_E_ARG);
    assert_non_null(strstr(err.message, "3"));
    assert_non_null(strstr(err.message, "2"));
    assert_null(matching.pairs);
}

/* Two records a side, so that neither the rule for single ones nor a lucky guess does it. The
 * second pair differs only in what must keep it apart from the first. */
static void alike(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"blocks.0.mlp.linear_fc1.ColumnParallelLinear.0.forward_params.bias",
         "blocks.0.mlp.linear_fc1.ColumnParalleLinear.forward_params.bias"},
        {"blocks.0.norm1.LayerNorm.0.forward_output.0",
         "blocks.0.norm1.RMSNorm.7.forward_output.0"},
        {"blocks.0.norm1.LayerNorm.0.forward_output.0",
         "blocks.0.norm1.LayerNorm.forward_output.0"},
        {"blocks.0.norm1.LayerNorm.0.forward_output.0", "blocks.0.norm1.forward_output.0"},
        {"blocks.0.norm1.LayerNorm.0.forward_output.0",
         "blocks/0/norm1/LayerNorm/0/forward_output/0"},
        {"blocks.0.norm1.LayerNorm.0.forward_output.0",
         "Blocks.0.Norm1.layernorm.0.Forward_Output.0"},
        {"blocks.0.norm1.LayerNorm.0.forward_input.0",
         "module.blocks.0.norm1.LayerNorm.0.forward_input.0"},
        {"_orig_mod.blocks.0.norm1.weight", "blocks.0._orig_mod.norm1.weight"},
        {"model.visual.blocks.0.norm1.LayerNorm.0.forward_input.0",
         "blocks.0.norm1.LayerNorm.0.forward_input.0"},
        {"visual.blocks.0.norm1.LayerNorm.0.forward_input.0",
         "model.visual.blocks.0.norm1.FusedNorm.forward_input.0"},
        {"visual.merger.ln_q.weight", "module.model.visual.merger.ln_q.weight"},
        {"Module.blocks.0.norm1.LayerNorm.forward.0.input.0",
         "blocks.0.norm1.LayerNorm.0.forward_input.0"},
        {"blocks.0.attn.qkv.QKVParallelLinear.0.forward_params.weight", "blocks.0.attn.qkv.weight"},
        {"blocks.0.bn.BatchNorm.0.forward_buffers.mean",
         "blocks.0.bn.MyNorm.2.forward_buffers.mean"},
        {"blocks[0].attn.weight", "blocks.0.attn.weight"},
        {"blocks_0_attn_proj_weight", "blocks.0.attn_proj.weight"},
        {"blocks.0.act.GELU.0.backward_output.0", "blocks.0.act.QuickGELU.3.backward_outputs.0"},
        {"Qwen3_VisionTransformer.0.forward_output.0", "VisionModel.forward_output.0"},
        {"a.Block.0.forward_output.0.hidden.1", "a.MyBlock.0.forward_output.0.hidden.1"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        check(AUTO, ITEMS(N(pairs[i][0]), S("zzz", 5)), ITEMS(S("qqq", 6), N(pairs[i][1])),
              "0=1l t1~- g0~-");
        check(AUTO, ITEMS(N(pairs[i][1]), S("zzz", 5)), ITEMS(S("qqq", 6), N(pairs[i][0])),
              "0=1l t1~- g0~-");
        /* Not asked for. */
        struct side t, g;
        struct plumb_matching matching;
        fill(&t, ITEMS(N(pairs[i][0]), N("zzz")));
        fill(&g, ITEMS(N("qqq"), N(pairs[i][1])));
        assert_int_equal(
            match_records(&matching, t.pointers, t.count, g.pointers, g.count, EXACT, NULL),
            PLUMB_OK);
        assert_int_equal(matching.matched, 0);
        assert_int_equal(matching.count, 4);
        plumb_matching_free(&matching);
    }
}

static void unlike(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"blocks.0.fc.Linear.0.forward_params.weight", "blocks.0.fc.Linear.0.forward_params.bias"},
        {"blocks.0.fc.Linear.0.forward_params.mean", "blocks.0.fc.Linear.0.forward_buffers.mean"},
        {"blocks.0.fc.Linear.0.forward_input.0", "blocks.0.fc.Linear.0.forward_output.0"},
        {"blocks.0.fc.Linear.0.forward_input.0", "blocks.0.fc.Linear.0.forward_input.1"},
        {"blocks.0.fc.Linear.0.forward_input.0", "blocks.0.fc.Linear.0.backward_input.0"},
        {"blocks.1.fc.Linear.0.forward_input.0", "blocks.10.fc.Linear.0.forward_input.0"},
        {"blocks.1.fc.weight", "blocks.10.fc.weight"},
        {"blocks.1.fc.weight", "visual.blocks.10.fc.weight"},
        {"blocks.1.forward_output.0", "blocks.2.forward_output.0"},
        {"layers.1.weight", "layers.11.weight"},
        {"stage1.conv.weight", "stage2.conv.weight"},
        {"norm1.LayerNorm.0.forward_output.0", "norm2.LayerNorm.0.forward_output.0"},
        {"encoder.conv.weight", "decoder.conv.weight"},
        {"blocks.0.fc1.weight", "blocks.0.fc2.weight"},
        {"features.Mixed_5b.forward_output.0", "features.Mixed_6a.forward_output.0"},
        {"Conv2d.0.forward_input.0", "Conv2d.1.backward_input.0"},
        {"bert.layer.0.output.dense.weight", "bert.layer.0.input.dense.weight"},
        {"blocks.0.fc.weight", "fc.weight"}, /* which block was that? */
        {"a.weight", "b.weight"},
        {"weight", "bias"},
        {"x.output", "x.output.1"},
        {"torch.add.0.forward_input.0", "torch.add.1.forward_input.0"},
        {"fc.Linear.0.forward_output.0.key", "fc.Linear.0.forward_output.0.value"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct side t, g;
        struct plumb_matching matching;
        fill(&t, ITEMS(N(pairs[i][0]), S("zzz", 5)));
        fill(&g, ITEMS(N(pairs[i][1]), S("qqq", 6)));
        assert_int_equal(
            match_records(&matching, t.pointers, t.count, g.pointers, g.count, AUTO, NULL),
            PLUMB_OK);
        if (matching.matched)
            fail_msg("%s was taken for %s", pairs[i][0], pairs[i][1]);
        plumb_matching_free(&matching);
    }
}

static void several_candidates(void **state)
{
    (void)state;
    /* A module that is called twice: in order, when there are as many on both sides. */
    check(AUTO, ITEMS(N("act.GELU.0.forward_output.0"), N("x"), N("act.GELU.5.forward_output.0")),
          ITEMS(N("act.Gelu.1.forward_output.0"), N("act.Gelu.2.forward_output.0"), N("x")),
          "0=0l 1=2n 2=1l");
    /* Not as many: nobody knows which. */
    check(AUTO, ITEMS(N("act.GELU.8.forward_output.0"), N("act.GELU.9.forward_output.0")),
          ITEMS(N("act.Gelu.1.forward_output.0"), N("act.Gelu.2.forward_output.0"),
                N("act.Gelu.3.forward_output.0")),
          "t0~0 t1~0 g0~0 g1~0 g2~0");
    /* But the shape may know. */
    check(AUTO, ITEMS(S("act.GELU.8.forward_output.0", 4), S("act.GELU.9.forward_output.0", 5)),
          ITEMS(S("act.Gelu.1.forward_output.0", 5), S("act.Gelu.2.forward_output.0", 4),
                S("act.Gelu.3.forward_output.0", 6)),
          "0=1l 1=0l g2~0");
    /* The closer likeness goes first, whatever the order. */
    check(AUTO, ITEMS(N("a.B.forward_input.0"), N("a.C.1.forward_input.0")),
          ITEMS(N("a.C.0.forward_input.0"), N("a.B.0.forward_input.0")), "0=1l 1=0l");
    /* Calls without a module path are told apart by their number only. */
    check(AUTO, ITEMS(N("Linear.0.forward_input.0"), N("Linear.1.forward_input.0")),
          ITEMS(N("Linear.1.forward_input.0"), N("Linear.2.forward_input.0")), "1=0n t0~1 g1~0");
    check(AUTO, ITEMS(N("Linear.0.forward_input.0"), N("Conv2d.0.forward_input.0")),
          ITEMS(N("Linear.0.forward_input.0"), N("Conv3d.0.forward_input.0")), "0=0n t1~1 g1~1");
    /* One and one are paired even if the shape differs: the comparison will say so. */
    check(AUTO, ITEMS(S("a.X.0.forward_input.0", 4), N("z")), ITEMS(S("a.Y.0.forward_input.0", 5)),
          "0=0l t1~-");
}

/* The number of a call counts its class, which another class of some module shifts. */
static void turns(void **state)
{
    (void)state;
    /* b is of a subclass in the target: the calls of a are numbered otherwise. */
    check(AUTO,
          ITEMS(N("a.Linear.0.forward_output.0"), N("b.MyLinear.0.forward_output.0"),
                N("a.Linear.1.forward_output.0"), N("b.MyLinear.1.forward_output.0"),
                N("a.Linear.2.forward_output.0")),
          ITEMS(N("a.Linear.0.forward_output.0"), N("b.Linear.1.forward_output.0"),
                N("a.Linear.2.forward_output.0"), N("b.Linear.3.forward_output.0"),
                N("a.Linear.4.forward_output.0")),
          "0=0n 1=1l 2=2l 3=3l 4=4l");
    /* By the number, not by the order in the run: 10 comes after 9. */
    check(AUTO,
          ITEMS(N("a.L.10.forward_output.0"), N("a.L.8.forward_output.0"),
                N("a.L.9.forward_output.0")),
          ITEMS(N("a.L.9.forward_output.0"), N("a.L.10.forward_output.0"),
                N("a.L.11.forward_output.0")),
          "0=2l 1=0l 2=1l");
    /* Inputs, parameters and gradients go with their call. */
    check(
        AUTO,
        ITEMS(N("a.L.0.forward_params.weight"), N("a.L.0.forward_input.0"),
              N("a.L.1.forward_input.0"), N("a.L.1.backward_input.0"), N("a.L.0.backward_input.0")),
        ITEMS(N("a.L.1.forward_params.weight"), N("a.L.1.forward_input.0"),
              N("a.L.3.forward_input.0"), N("a.L.3.backward_input.0"), N("a.L.1.backward_input.0")),
        "0=0l 1=1l 2=2l 3=3l 4=4l");
    /* A call more on one side: its numbers say nothing when others of the class are shifted. */
    check(AUTO,
          ITEMS(N("a.L.0.forward_output.0"), N("a.L.1.forward_output.0"),
                N("a.L.2.forward_output.0"), N("b.M.0.forward_output.0")),
          ITEMS(N("a.L.0.forward_output.0"), N("b.L.1.forward_output.0"),
                N("a.L.2.forward_output.0")),
          "0=0n 1=2l 3=1l t2~2");
    /* They say what is missing when nothing is shifted. */
    check(AUTO,
          ITEMS(N("a.L.0.forward_output.0"), N("b.L.1.forward_output.0"),
                N("a.L.2.forward_output.0")),
          ITEMS(N("b.L.1.forward_output.0"), N("a.L.2.forward_output.0")), "1=0n 2=1n t0~1");
    /* Steps and ranks have calls of their own. */
    check(AUTO,
          ITEMS(P("a.L.0.forward_output.0", 1, 0), P("a.L.1.forward_output.0", 1, 0),
                P("a.L.0.forward_output.0", 2, 0), P("a.L.1.forward_output.0", 2, 0)),
          ITEMS(P("a.L.3.forward_output.0", 2, 0), P("a.L.4.forward_output.0", 2, 0),
                P("a.L.1.forward_output.0", 1, 0), P("a.L.2.forward_output.0", 1, 0)),
          "0=2l 1=3l 2=0l 3=1l");
    /* Wrappers add a level, and nothing else. */
    check(AUTO,
          ITEMS(N("module.a.L.0.forward_output.0"), N("module.a.L.1.forward_output.0"),
                N("module.a.L.2.forward_output.0")),
          ITEMS(N("a.L.0.forward_output.0"), N("a.L.2.forward_output.0"),
                N("a.L.4.forward_output.0")),
          "0=0l 1=1l 2=2l");
    /* What was recorded counts, also where calls are missing or a class begins with a small
     * letter. */
    check(AUTO, ITEMS(C("a.L.1.forward_output.0", 2), C("a.L.2.forward_output.0", 3)),
          ITEMS(C("a.L.0.forward_output.0", 1), C("a.L.2.forward_output.0", 2),
                C("a.L.4.forward_output.0", 3)),
          "0=1l 1=2l g0~0");
    check(AUTO, ITEMS(C("a.my.0.forward_output.0", 1), C("a.my.1.forward_output.0", 2)),
          ITEMS(C("a.your.1.forward_output.0", 1), C("a.your.3.forward_output.0", 2)), "0=0l 1=1l");
    check(AUTO, ITEMS(C("a.L.0.forward_output.0", 1), C("a.L.1.forward_output.0", 2)),
          ITEMS(N("a.L.1.forward_output.0"), N("a.L.2.forward_output.0")), "0=0l 1=1l");
    /* In dumps the number is that of the module's call, and the class may be another. */
    check(AUTO,
          ITEMS(N("Module.a.Sub.forward.0.input.0"), N("Module.a.Sub.forward.1.input.0"),
                N("Module.a.Sub.backward.1.input.0"), N("Module.a.Sub.parameters_grad.0.weight")),
          ITEMS(N("Module.a.Linear.parameters_grad.0.weight"),
                N("Module.a.Linear.forward.1.input.0"), N("Module.a.Linear.backward.1.input.0"),
                N("Module.a.Linear.forward.0.input.0")),
          "0=3l 1=1l 2=2l 3=0l");
    check(AUTO,
          ITEMS(N("Module.a.Linear.forward.1.input.0"), N("Module.b.Linear.forward.0.input.0")),
          ITEMS(N("Module.a.Linear.forward.0.input.0"), N("Module.a.Linear.forward.1.input.0"),
                N("Module.b.Linear.forward.0.input.0")),
          "0=1n 1=2n g0~0");
    /* Functions are no modules, and equal names only are equal names. */
    check(AUTO, ITEMS(N("Functional.relu.0.forward_output.0"), N("x")),
          ITEMS(N("Functional.gelu.0.forward_output.0"), N("x")), "1=1n t0~0 g0~0");
    check(EXACT, ITEMS(N("a.L.0.forward_output.0"), N("x")),
          ITEMS(N("a.L.1.forward_output.0"), N("x")), "1=1n t0~0 g0~0");
}

/* lin(input=x) and lin(x) */
static void keywords(void **state)
{
    (void)state;
    check(AUTO,
          ITEMS(N("a.L.0.forward_input.input"), N("a.L.0.forward_output.0"),
                N("a.L.0.backward_output.input")),
          ITEMS(N("a.L.0.forward_input.0"), N("a.L.0.forward_output.0"),
                N("a.L.0.backward_output.0")),
          "0=0l 1=1n 2=2l");
    /* The call that belongs to it has another number and class. */
    check(AUTO,
          ITEMS(N("a.L.0.forward_input.0"), N("a.L.0.forward_output.0"), N("a.L.1.forward_input.0"),
                N("a.L.1.forward_output.0")),
          ITEMS(N("a.M.1.forward_input.x"), N("a.M.1.forward_output.0"), N("a.M.3.forward_input.x"),
                N("a.M.3.forward_output.0")),
          "0=0l 1=1l 2=2l 3=3l");
    /* Several, in the order of the call; what lies inside keeps its place. */
    check(AUTO,
          ITEMS(N("a.L.0.forward_input.0"), S("a.L.0.forward_input.1", 4),
                N("a.L.0.forward_input.2.0"), N("a.L.0.forward_input.2.1")),
          ITEMS(N("a.L.0.forward_input.q"), S("a.L.0.forward_input.k", 4),
                N("a.L.0.forward_input.m.1"), N("a.L.0.forward_input.m.0")),
          "0=0l 1=1l 2=3l 3=2l");
    check(AUTO, ITEMS(N("a.L.0.forward_input.0"), S("a.L.0.forward_input.mask", 4)),
          ITEMS(N("a.L.0.forward_input.0"), S("a.L.0.forward_input.1", 4)), "0=0n 1=1l");
    /* Gradients come in any order, and go with their arguments. */
    check(AUTO,
          ITEMS(N("a.L.0.forward_input.q"), N("a.L.0.forward_input.k"),
                N("a.L.0.backward_output.k"), N("a.L.0.backward_output.q")),
          ITEMS(N("a.L.0.forward_input.0"), N("a.L.0.forward_input.1"),
                N("a.L.0.backward_output.0"), N("a.L.0.backward_output.1")),
          "0=0l 1=1l 2=3l 3=2l");
    check(AUTO, ITEMS(N("a.L.0.backward_output.x"), N("z")),
          ITEMS(N("a.L.0.backward_output.0"), N("z")), "0=0l 1=1n");
    /* Other shapes, not as many, two names, two numbers: not the same. */
    check(AUTO, ITEMS(S("a.L.0.forward_input.x", 3), N("z")),
          ITEMS(S("a.L.0.forward_input.0", 4), N("z")), "1=1n t0~0 g0~0");
    check(AUTO, ITEMS(N("a.L.0.forward_input.x"), N("z")),
          ITEMS(N("a.L.0.forward_input.0"), N("a.L.0.forward_input.1"), N("z")),
          "1=2n t0~0 g0~0 g1~0");
    check(AUTO, ITEMS(N("a.L.0.forward_input.x"), N("z")),
          ITEMS(N("a.L.0.forward_input.y"), N("z")), "1=1n t0~0 g0~0");
    check(AUTO, ITEMS(N("a.L.0.forward_output.x"), N("z")),
          ITEMS(N("a.L.0.forward_output.0"), N("z")), "1=1n t0~0 g0~0");
    check(EXACT, ITEMS(N("a.L.0.forward_input.x"), N("z")),
          ITEMS(N("a.L.0.forward_input.0"), N("z")), "1=1n t0~0 g0~0");
}

static void prefixes(void **state)
{
    (void)state;
    /* Both runs have beginnings of their own, and all the rest agrees. */
    check(AUTO,
          ITEMS(N("tower.blocks.0.fc.weight"), N("tower.blocks.1.fc.weight"),
                N("tower.norm.weight"), N("tower.norm.bias")),
          ITEMS(N("visual.blocks.0.fc.weight"), N("visual.blocks.1.fc.weight"),
                N("visual.norm.weight"), N("visual.norm.bias")),
          "0=0l 1=1l 2=2l 3=3l");
    /* A part of the model against the whole: the block that has these shapes. */
    check(AUTO, ITEMS(S("fc1.weight", 4), S("fc1.bias", 5), S("fc2.weight", 6), S("fc2.bias", 7)),
          ITEMS(S("blocks.3.fc1.weight", 4), S("blocks.3.fc1.bias", 5), S("blocks.3.fc2.weight", 6),
                S("blocks.3.fc2.bias", 7)),
          "0=0l 1=1l 2=2l 3=3l");
    /* Two that fit as well as each other: neither. */
    check(AUTO, ITEMS(N("encoder.norm.weight"), N("decoder.norm.weight")),
          ITEMS(N("norm.weight"), N("q")), "t0~0 t1~0 g0~0 g1~-");
    /* The one that has more in common, not the first one. */
    check(AUTO,
          ITEMS(N("decoder.norm.weight"), N("encoder.norm.weight"), N("encoder.fc.weight"),
                N("encoder.fc.bias")),
          ITEMS(N("norm.weight"), N("fc.weight"), N("fc.bias")), "1=0l 2=1l 3=2l t0~0");
    /* Two beginnings that do not compete. */
    check(AUTO, ITEMS(N("a.fc.weight"), N("b.norm.weight")),
          ITEMS(N("norm.weight"), N("fc.weight")), "0=1l 1=0l");
    /* Of another shape: not the same. */
    check(AUTO, ITEMS(S("a.fc.weight", 4), N("z")), ITEMS(S("fc.weight", 5), N("q")),
          "t0~0 t1~- g0~0 g1~-");
}

static void nearest_names(void **state)
{
    (void)state;
    check(AUTO, ITEMS(N("blocks.3.attn.query.weight"), N("blocks.4.attn.query.weight"), N("same")),
          ITEMS(N("same"), N("blocks.4.attn.q.weight"), N("blocks.3.attn.q.weight"),
                N("head.classifier.bias")),
          "2=0n t0~2 t1~1 g1~1 g2~0 g3~-");
    /* When nothing is free on the other side, one that is taken is still a hint. */
    check(AUTO, ITEMS(N("layer.conv.weight"), N("layer.conv.bias")), ITEMS(N("layer.conv.weight")),
          "0=0n t1~0");
    /* A slip of the pen in a name of one word. */
    check(AUTO, ITEMS(N("logits"), N("z")), ITEMS(N("embedding"), N("logtis")),
          "t0~1 t1~- g0~- g1~0");
}

static char map_path[] = "/tmp/plumb-test-XXXXXX";

static void write_map(const char *text, size_t size)
{
    FILE *file = fopen(map_path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static const struct plumb_pair_options with_map = {.mode = PLUMB_PAIR_EXACT, .map_file = map_path};

static void map_files(void **state)
{
    (void)state;
    static const char *const fine[] = {
        "a.b: x.y\nc: z\n",
        "a.b,x.y\nc,z",
        "a.b\tx.y\r\nc\tz\r\n",
        "\xef\xbb\xbf# a map\n\n  a.b :  x.y  # why\n\t\n'c': \"z\" # because\n",
        "\"a.b\",'x.y'\n\"c\"\t\"z\"\n",
        "c:z\na.b:x.y\n",
    };
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        write_map(fine[i], strlen(fine[i]));
        check(&with_map, ITEMS(N("a.b"), N("z"), N("c")), ITEMS(N("z"), N("q"), N("x.y")),
              "0=2m 2=0m t1~- g1~-");
    }
    /* Odd names, a doubled quote, and the map goes before equal names. */
    static const char odd[] = "\"say \"\"a, b\"\"\": 'it''s: c'\nns::op: z\nz: ns::op\n";
    write_map(odd, sizeof odd - 1);
    check(&with_map, ITEMS(N("say \"a, b\""), N("ns::op"), N("z")),
          ITEMS(N("z"), N("ns::op"), N("it's: c")), "0=2m 1=0m 2=1m");
    /* Step by step, the k-th with the k-th. */
    write_map("a: b\n", 5);
    check(&with_map, ITEMS(P("a", 1, 0), P("a", 2, 0), P("a", 2, 0)),
          ITEMS(P("b", 2, 0), P("b", 1, 0), P("b", 2, 0)), "0=1m 1=0m 2=2m");
    /* What is not in the map goes on as usual. */
    const struct plumb_pair_options fuzzy = {.mode = PLUMB_PAIR_AUTO, .map_file = map_path};
    check(&fuzzy, ITEMS(N("a"), N("x/y"), N("n")), ITEMS(N("n"), N("x.y"), N("b")),
          "0=2m 1=1l 2=0n");
    const struct plumb_pair_options order = {.mode = PLUMB_PAIR_ORDER, .map_file = map_path};
    check(&order, ITEMS(N("a"), N("1"), N("2")), ITEMS(N("3"), N("4"), N("b")), "0=2m 1=0o 2=1o");
}

static void check_bad_map(const char *text, size_t size, const char *part)
{
    struct side t, g;
    struct plumb_matching matching;
    struct plumb_error err;
    write_map(text, size);
    fill(&t, ITEMS(N("blocks.0.fc1.weight"), N("c")));
    fill(&g, ITEMS(N("layers.0.fc1.weight"), N("d")));
    assert_int_equal(
        match_records(&matching, t.pointers, t.count, g.pointers, g.count, &with_map, &err),
        PLUMB_E_FORMAT);
    if (!strstr(err.message, part))
        fail_msg("'%s' is not in: %s", part, err.message);
    assert_string_equal(err.file, map_path);
    assert_null(matching.pairs);
}

static void bad_map_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"# first\nno separator\n", "line 2: expected"},
        {"c:\n", "line 1: expected"},
        {": d\n", "line 1: expected"},
        {"c,\n", "line 1: expected"},
        {"\"c: d\n", "line 1: expected"},
        {"'c' d\n", "line 1: expected"},
        {"c: 'd\n", "line 1: expected"},
        {"c: 'd' e\n", "line 1: expected"},
        {"c: d\nblocks.0.fc1.wieght: d\n", "line 2: the target run has no tensor "
                                           "'blocks.0.fc1.wieght'; the nearest is "
                                           "'blocks.0.fc1.weight'"},
        {"c: layers.0.fc2.weight\n", "the nearest is 'layers.0.fc1.weight'"},
        {"something: d\n", "line 1: the target run has no tensor 'something'"},
        {"d: c\n", "the target's name comes first"},
        {"c: d\nc: layers.0.fc1.weight\n", "line 2: line 1 already maps 'c'"},
        {"c: d\nblocks.0.fc1.weight: d\n", "line 2: line 1 already maps 'd'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_bad_map(cases[i].text, strlen(cases[i].text), cases[i].part);
    check_bad_map("c: d\0\n", 6, "line 1: not a text");

    struct side t;
    struct plumb_matching matching;
    struct plumb_error err;
    fill(&t, ITEMS(N("a")));
    static const char *const unreadable[] = {"/nonexistent/map", "/"};
    for (size_t i = 0; i < 2; i++) {
        const struct plumb_pair_options options = {.mode = PLUMB_PAIR_AUTO,
                                                   .map_file = unreadable[i]};
        assert_int_equal(match_records(&matching, t.pointers, 1, t.pointers, 1, &options, &err),
                         PLUMB_E_IO);
        assert_string_equal(err.file, unreadable[i]);
    }
}

static void hostile_names(void **state)
{
    (void)state;
    size_t length = 200000;
    char *dots = malloc(length + 1), *tokens = malloc(length + 1);
    assert_true(dots && tokens);
    memset(dots, '.', length);
    for (size_t i = 0; i < length; i++)
        tokens[i] = i % 2 ? '.' : 'a';
    dots[length] = tokens[length] = '\0';
    check(AUTO, ITEMS(N(dots), N(tokens), N(""), N("\xff\xfe"), N("forward_input"), N("forward.0")),
          ITEMS(N(tokens + 2), N(dots + 1), N("_"), N("module"), N("backward_"), N("..x")),
          "t0~1 t1~0 t2~- t3~- t4~- t5~- g0~1 g1~0 g2~- g3~- g4~- g5~-");
    free(dots);
    free(tokens);
}

/* Of the processor: what else the machine does must not fail a test. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct many {
    struct plumb_record *records;
    const struct plumb_record **pointers;
    char *names;
};

enum { NAME_BYTES = 96 };

static struct many make_many(size_t count, const char *format)
{
    static const int64_t shape[] = {4, 4};
    struct many many = {calloc(count, sizeof *many.records), calloc(count, sizeof *many.pointers),
                        calloc(count, NAME_BYTES)};
    assert_true(many.records && many.pointers && many.names);
    for (size_t i = 0; i < count; i++) {
        char *name = many.names + i * NAME_BYTES;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(name, NAME_BYTES, format, i / 50, i % 50);
#pragma GCC diagnostic pop
        many.records[i] = (struct plumb_record){.name = name, .ndim = 2, .shape = shape};
        many.pointers[i] = &many.records[i];
    }
    return many;
}

static void free_many(struct many *many)
{
    free(many->records);
    free(many->pointers);
    free(many->names);
}

static double time_match(const char *target, const char *golden, size_t count, size_t matched)
{
    struct many t = make_many(count, target), g = make_many(count, golden);
    struct plumb_matching matching;
    double start = seconds();
    assert_int_equal(match_records(&matching, t.pointers, count, g.pointers, count, AUTO, NULL),
                     PLUMB_OK);
    double took = seconds() - start;
    assert_int_equal(matching.matched, matched);
    assert_int_equal(matching.count, matched + 2 * (count - matched));
    plumb_matching_free(&matching);
    free_many(&t);
    free_many(&g);
    return took;
}

/* Linear, not quadratic. The limits are loose, for slow and sanitized builds,
 * and of processor time: others may be busy too. */
static void large_runs(void **state)
{
    (void)state;
    const char *name = "blocks.%zu.attn.m%zu.Linear.0.forward_output.0";
    assert_true(time_match(name, name, 100000, 100000) < 5);
    assert_true(time_match(name, "module.blocks.%zu.attn.m%zu.QLinear.forward_output.0", 100000,
                           100000) < 15);
    assert_true(
        time_match(name, "model.visual.blocks.%zu.attn.m%zu.forward_output.0", 20000, 20000) < 10);
    assert_true(time_match(name, "layers.%zu.attention.n%zu.Linear.0.forward_output.0", 10000, 0) <
                15);
    assert_true(time_match("a.b.c.d.e.f.g.%zu_%zu", "a.b.c.d.e.g.g.%zux%zu", 10000, 0) < 15);
}

/* Through real files. */
static void runs(void **state)
{
    (void)state;
    char folder[] = "/tmp/plumb-test-XXXXXX", path[2][64];
    static const char *const names[2][2] = {{"fc.weight", "module.fc.bias"},
                                            {"fc.bias", "fc.weight"}};
    struct plumb_run *run[2];
    struct plumb_error err;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        char header[256];
        int length = snprintf(header, sizeof header,
                              "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                              "\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                              names[i][0], names[i][1]);
        uint8_t size[8] = {(uint8_t)length};
        assert_true(length > 0 && length < 256);
        snprintf(path[i], sizeof path[i], "%s/%d.safetensors", folder, i);
        FILE *file = fopen(path[i], "wb");
        assert_non_null(file);
        fwrite(size, 1, 8, file);
        fwrite(header, 1, (size_t)length, file);
        fwrite("\0\0\0\0\0\0\0", 1, 8, file);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(plumb_run_open(&run[i], path[i], &err), PLUMB_OK);
    }
    struct plumb_matching matching;
    char text[64];
    assert_int_equal(plumb_match(&matching, run[0], run[1], NULL, &err), PLUMB_OK);
    describe(&matching, text, sizeof text);
    assert_string_equal(text, "0=1n 1=0l");
    plumb_matching_free(&matching);
    for (int i = 0; i < 2; i++) {
        plumb_run_free(run[i]);
        unlink(path[i]);
    }
    rmdir(folder);
}

static int set_up(void **state)
{
    (void)state;
    int fd = mkstemp(map_path);
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(map_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_names),
        cmocka_unit_test(steps_and_ranks),
        cmocka_unit_test(single_records_always_match),
        cmocka_unit_test(converted),
        cmocka_unit_test(by_order),
        cmocka_unit_test(alike),
        cmocka_unit_test(unlike),
        cmocka_unit_test(several_candidates),
        cmocka_unit_test(turns),
        cmocka_unit_test(keywords),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(nearest_names),
        cmocka_unit_test(map_files),
        cmocka_unit_test(bad_map_files),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(large_runs),
        cmocka_unit_test(runs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
