/* What the names of weights say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "msprobe/profile.h"
#include "task/checkpoint/names.h"

#include <string.h>

static const struct checkpoint_profile usual = {0};

static void to_core(void **state)
{
    static const char *const cases[][2] = {
        {"decoder.layers.0.mlp.linear_fc1.weight", "decoder.layers.0.mlp.linear_fc1.weight"},
        {"language_model.encoder.layers.3.self_attention.query_key_value.bias",
         "decoder.layers.3.self_attention.linear_qkv.bias"},
        {"encoder.layers.1.self_attention.dense.weight",
         "decoder.layers.1.self_attention.linear_proj.weight"},
        {"encoder.layers.1.mlp.dense_4h_to_h.weight", "decoder.layers.1.mlp.linear_fc2.weight"},
        {"decoder.layers.1.self_attention.linear_qkv.layer_norm_weight",
         "decoder.layers.1.input_layernorm.weight"},
        {"decoder.layers.1.mlp.local_experts.2.dense_h_to_4h.weight",
         "decoder.layers.1.mlp.experts.local_experts.2.linear_fc1.weight"},
        {"encoderencoder", "decoderdecoder"},
        {"word_embeddings_for_head.weight", "output_layer.weight"},
    };
    struct arena arena = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(names_to_core(&arena, cases[i][0]), cases[i][1]);
    assert_null(names_alias(&arena, "decoder.layers.0.mlp.linear_fc1.weight"));
    assert_string_equal(names_alias(&arena, "a.mlp.linear_fc1.layer_norm_bias"),
                        "a.pre_mlp_layernorm.bias");
    arena_free(&arena);
}

static void joins(void **state)
{
    (void)state;
    assert_int_equal(names_join("a.linear_qkv.bias", false, &usual), CKPT_AXIS0);
    assert_int_equal(names_join("a.linear_fc1.weight", false, &usual), CKPT_AXIS0);
    assert_int_equal(names_join("a.linear_fc1.weight", true, &usual), CKPT_GATED);
    assert_int_equal(names_join("a.linear_fc1.weight", true, &msprobe_checkpoint), CKPT_AXIS0);
    assert_int_equal(names_join("a.linear_qkv.bias", true, &usual), CKPT_AXIS0);
    assert_int_equal(names_join("a.linear_fc2.weight", true, &usual), CKPT_AXIS1);
    assert_int_equal(names_join("a.linear_fc2.bias", true, &usual), CKPT_WHOLE);
    assert_int_equal(names_join("a.linear_proj.weight", false, &usual), CKPT_AXIS1);
    assert_int_equal(names_join("embedding.word_embeddings.weight", false, &usual), CKPT_AXIS0);
    assert_int_equal(names_join("embedding.position_embeddings.weight", false, &usual), CKPT_WHOLE);
    assert_int_equal(names_join("a.linear_fc1.layer_norm_weight", false, &usual), CKPT_WHOLE);
    assert_int_equal(names_join("a.linear_fc1.layer_norm_weight", false, &msprobe_checkpoint),
                     CKPT_AXIS0);
}

static void numbers(void **state)
{
    struct names_index index;
    struct arena arena = {0};
    const char *name = "decoder.layers.12.mlp.experts.local_experts.3.linear_fc1.weight";
    (void)state;
    assert_true(names_layer(name, &index));
    assert_int_equal(index.value, 12);
    assert_string_equal(names_renumber(&arena, name, &index, 112),
                        "decoder.layers.112.mlp.experts.local_experts.3.linear_fc1.weight");
    assert_ptr_equal(names_renumber(&arena, name, &index, 12), name);
    assert_true(names_expert(name, &usual, &index));
    assert_int_equal(index.value, 3);
    assert_string_equal(names_renumber(&arena, name, &index, 7),
                        "decoder.layers.12.mlp.experts.local_experts.7.linear_fc1.weight");
    assert_false(names_layer("decoder.layers.x.weight", &index));
    assert_false(names_layer("decoder.layers.12", &index));
    assert_false(names_layer("decoder.layers.12345678901.a", &index));
    assert_true(names_layer("layers.x.layers.4.a", &index));
    assert_int_equal(index.value, 4);

    name = "decoder.layers.0.mlp.experts.linear_fc2.weight11";
    assert_true(names_expert(name, &usual, &index));
    assert_int_equal(index.value, 11);
    assert_false(names_expert(name, &msprobe_checkpoint, &index));
    assert_false(names_expert("decoder.layers.0.mlp.experts.linear_fc2.weight", &usual, &index));
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_core),
        cmocka_unit_test(joins),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
