#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/archive.h"

static const double ramp[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static void open_good(struct opened *o, const char *name)
{
    if (open_data(o, &format_pt, name))
        fail_msg("%s: %s", name, o->err.message);
}

static void assert_names(const struct opened *o, const char *const *names, size_t count)
{
    assert_int_equal(o->listing.count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(o->listing.records[i].name, names[i]);
}

static void state_dict(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/state.pt");
    const char *names[] = {"0.weight", "0.bias", "2.weight", "2.bias"};
    assert_names(&o, names, 4);
    assert_int_equal(record_of(&o, "0.weight")->ndim, 2);
    assert_int_equal(record_of(&o, "0.weight")->shape[0], 2);
    assert_int_equal(record_of(&o, "0.weight")->shape[1], 3);
    assert_int_equal(record_of(&o, "0.weight")->requires_grad, 0);
    assert_null(record_of(&o, "0.weight")->detail);
    assert_int_equal(record_of(&o, "0.weight")->offset % 64, 0);
    close_data(&o);
}

static void optimizer_state(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/optimizer.pt");
    assert_int_equal(o.listing.count, 12);
    assert_string_equal(o.listing.records[0].name, "state.0.step");
    assert_values(&o, &format_pt, "state.3.step", PLUMB_F32, 0, NULL, (double[]){1});
    assert_int_equal(record_of(&o, "state.0.exp_avg_sq")->count, 6);
    close_data(&o);
}

static void views_share_a_storage(void **state)
{
    (void)state;
    const double transposed[] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
    const double even[] = {0, 2, 4, 6, 8, 10}, fives[] = {5, 5, 5, 5, 5, 5};
    struct opened o;
    open_good(&o, "pt/views.pt");
    assert_values(&o, &format_pt, "base", PLUMB_F32, 2, (int64_t[]){3, 4}, ramp);
    assert_values(&o, &format_pt, "t", PLUMB_F32, 2, (int64_t[]){4, 3}, transposed);
    assert_values(&o, &format_pt, "row", PLUMB_F32, 1, (int64_t[]){4}, ramp + 4);
    assert_values(&o, &format_pt, "step", PLUMB_F32, 2, (int64_t[]){3, 2}, even);
    assert_values(&o, &format_pt, "wide", PLUMB_F32, 2, (int64_t[]){2, 3}, fives);
    assert_values(&o, &format_pt, "param", PLUMB_F32, 1, (int64_t[]){4}, ramp + 8);
    assert_int_equal(record_of(&o, "param")->requires_grad, 1);
    assert_int_equal(record_of(&o, "frozen")->requires_grad, 0);
    assert_int_equal(record_of(&o, "row")->view->start, 4);
    assert_int_equal(record_of(&o, "row")->offset, record_of(&o, "base")->offset);
    assert_int_equal(record_of(&o, "row")->bytes, 48);
    close_data(&o);
}

static void all_dtypes(void **state)
{
    (void)state;
    const double values[] = {0, 1, 3}, truth[] = {0, 1, 1};
    struct opened o;
    open_good(&o, "pt/dtypes.pt");
    assert_int_equal(o.listing.count, 12);
    for (size_t i = 0; i < o.listing.count; i++) {
        const char *name = o.listing.records[i].name;
        enum plumb_dtype dtype = plumb_dtype_from_name(name);
        assert_true(dtype < PLUMB_DTYPE_COUNT);
        assert_values(&o, &format_pt, name, dtype, 1, (int64_t[]){3},
                      dtype == PLUMB_BOOL ? truth : values);
    }
    close_data(&o);
}

static void checkpoint_with_everything(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/checkpoint.pt");
    const char *names[] = {"holder.kept", "nested.0.0", "nested.0.1.7", "nested.1.x", "storage"};
    assert_names(&o, names, 5);
    assert_values(&o, &format_pt, "holder.kept", PLUMB_F32, 1, (int64_t[]){4}, ramp);
    assert_values(&o, &format_pt, "nested.0.0", PLUMB_I64, 0, NULL, (double[]){1});
    assert_values(&o, &format_pt, "nested.0.1.7", PLUMB_F32, 1, (int64_t[]){1}, (double[]){2});
    assert_values(&o, &format_pt, "nested.1.x", PLUMB_F64, 0, NULL, (double[]){3.5});
    assert_values(&o, &format_pt, "storage", PLUMB_F32, 1, (int64_t[]){4}, ramp);
    close_data(&o);
}

static void lone_tensor_has_the_name_of_the_file(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/lone.pt");
    assert_int_equal(o.listing.count, 1);
    assert_values(&o, &format_pt, "lone", PLUMB_F32, 2, (int64_t[]){3, 4}, ramp);
    close_data(&o);
}

static void whole_module_shows_its_parameters(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/module.pt");
    assert_true(o.listing.count >= 4);
    assert_int_equal(record_of(&o, "_modules.0._parameters.weight")->requires_grad, 1);
    assert_int_equal(record_of(&o, "_modules.2._parameters.bias")->count, 1);
    close_data(&o);
}

static void other_sorts_of_tensors_are_named(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/others.pt");
    assert_int_equal(o.listing.count, 3);
    assert_refused(&o, "quantized", PLUMB_E_UNSUPPORTED, "torch._utils._rebuild_qtensor");
    assert_refused(&o, "sparse", PLUMB_E_UNSUPPORTED, "torch._utils._rebuild_sparse_tensor");
    assert_values(&o, &format_pt, "dense", PLUMB_F32, 1, (int64_t[]){2}, (double[]){1, 1});
    close_data(&o);
}

static void values_that_are_not_stored_are_refused(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/lazy.pt");
    assert_int_equal(o.listing.count, 4);
    assert_refused(&o, "array", PLUMB_E_UNSUPPORTED, "numpy.core.multiarray._reconstruct");
    assert_refused(&o, "conj", PLUMB_E_UNSUPPORTED, "resolve_conj");
    assert_refused(&o, "neg", PLUMB_E_UNSUPPORTED, "resolve_neg");
    assert_values(&o, &format_pt, "plain", PLUMB_F32, 2, (int64_t[]){2, 3}, ramp);
    close_data(&o);
}

static void untyped_storages(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/v3.pt");
    assert_values(&o, &format_pt, "e4m3fn", PLUMB_F8_E4M3FN, 1, (int64_t[]){4},
                  (double[]){1, 2, -1, 0x1p-9});
    assert_values(&o, &format_pt, "e5m2", PLUMB_F8_E5M2, 2, (int64_t[]){2, 2},
                  (double[]){0.5, -0.5, 2, 0x1p-16});
    assert_values(&o, &format_pt, "e4m3fnuz", PLUMB_F8_E4M3FNUZ, 1, (int64_t[]){4},
                  (double[]){0.5, 1, -0.5, 0x1p-10});
    assert_values(&o, &format_pt, "e5m2fnuz", PLUMB_F8_E5M2FNUZ, 1, (int64_t[]){4},
                  (double[]){0.25, 1, -0.25, 0x1p-17});
    assert_values(&o, &format_pt, "u16", PLUMB_U16, 1, (int64_t[]){2}, (double[]){0x4038, 0x01b8});
    assert_values(&o, &format_pt, "u32", PLUMB_U32, 1, (int64_t[]){1}, (double[]){0x01b84038});
    assert_values(&o, &format_pt, "u64", PLUMB_U64, 0, NULL, (double[]){0x1p64});
    assert_refused(&o, "odd", PLUMB_E_UNSUPPORTED, "torch.qint8");
    close_data(&o);
}

static void byte_order_and_deflated_storages(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/bigendian.pt");
    assert_true(record_of(&o, "w")->swap);
    assert_values(&o, &format_pt, "w", PLUMB_F32, 2, (int64_t[]){2, 3}, ramp);
    close_data(&o);
    open_good(&o, "pt/deflated.pt");
    assert_non_null(record_of(&o, "z")->detail);
    assert_values(&o, &format_pt, "w", PLUMB_F32, 2, (int64_t[]){2, 3}, ramp);
    assert_values(&o, &format_pt, "z", PLUMB_F32, 1, (int64_t[]){8},
                  (double[]){5, 7, 9, 11, 13, 15, 17, 19});
    close_data(&o);
}

static void lies_cost_their_record(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/lies.pt");
    assert_int_equal(o.listing.count, 8);
    assert_refused(&o, "count", PLUMB_E_FORMAT, "sizes disagree with the tensor header");
    assert_refused(&o, "reach", PLUMB_E_FORMAT, "outside its storage");
    assert_refused(&o, "huge", PLUMB_E_UNSUPPORTED, "repeats 6 stored elements");
    assert_refused(&o, "overflow", PLUMB_E_FORMAT, "2^63");
    assert_refused(&o, "missing", PLUMB_E_FORMAT, "storage '9' is not in the archive");
    assert_refused(&o, "strides", PLUMB_E_FORMAT, "number of strides");
    assert_refused(&o, "negative", PLUMB_E_FORMAT, "offset");
    assert_values(&o, &format_pt, "good", PLUMB_F32, 2, (int64_t[]){2, 3}, ramp);
    close_data(&o);
}

static void shared_values_end(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/cycle.pt");
    assert_int_equal(o.listing.count, 1);
    assert_values(&o, &format_pt, "1", PLUMB_F32, 2, (int64_t[]){2, 3}, ramp);
    close_data(&o);
    assert_open_refused(&format_pt, "pt/bomb.pt", PLUMB_E_UNSUPPORTED, "over and over");
}

static void refusals_say_what_and_where(void **state)
{
    (void)state;
    assert_open_refused(&format_pt, "pt/evil.pt", PLUMB_E_UNSUPPORTED,
                        "byte 2 of data.pkl: the pickle names os.system");
    assert_open_refused(&format_pt, "pt/evil_inside.pt", PLUMB_E_UNSUPPORTED, "builtins.eval");
    assert_open_refused(&format_pt, "pt/opaque.pt", PLUMB_E_UNSUPPORTED,
                        "byte 2 of data.pkl: the global argparse.Namespace");
    assert_open_refused(&format_pt, "pt/legacy.pt", PLUMB_E_UNSUPPORTED,
                        "torch.save(torch.load(OLD), NEW)");
    assert_open_refused(&format_pt, "pt/plain.pkl", PLUMB_E_UNSUPPORTED, "bare pickle");
    assert_open_refused(&format_pt, "pt/script.pt", PLUMB_E_UNSUPPORTED, "TorchScript");
}

static void every_prefix_fails(void **state)
{
    (void)state;
    assert_prefixes_fail(&format_pt, "pt/lone.pt");
    assert_prefixes_fail(&format_pt, "pt/bigendian.pt");
    assert_prefixes_fail(&format_pt, "pt/state.pt");
}

/* Any single damaged byte is either harmless or an error; never more than that. */
static void every_flip_is_survived(void **state)
{
    (void)state;
    struct opened o;
    open_good(&o, "pt/lies.pt");
    uint8_t *copy = malloc(o.file.size);
    assert_non_null(copy);
    struct plumb_file file = in_memory(copy, o.file.size);
    for (uint64_t i = 0; i < o.file.size; i++) {
        memcpy(copy, o.file.data, o.file.size);
        copy[i] ^= (uint8_t)(1u << i % 8);
        struct arena arena = {0};
        struct listing listing = {.arena = &arena, .path = "flip.pt"};
        struct plumb_error err = {0};
        if (format_pt.list(&listing, &file, &err))
            assert_true(err.message[0]);
        arena_free(&arena);
    }
    free(copy);
    close_data(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_dict),
        cmocka_unit_test(optimizer_state),
        cmocka_unit_test(views_share_a_storage),
        cmocka_unit_test(all_dtypes),
        cmocka_unit_test(checkpoint_with_everything),
        cmocka_unit_test(lone_tensor_has_the_name_of_the_file),
        cmocka_unit_test(whole_module_shows_its_parameters),
        cmocka_unit_test(other_sorts_of_tensors_are_named),
        cmocka_unit_test(values_that_are_not_stored_are_refused),
        cmocka_unit_test(untyped_storages),
        cmocka_unit_test(byte_order_and_deflated_storages),
        cmocka_unit_test(lies_cost_their_record),
        cmocka_unit_test(shared_values_end),
        cmocka_unit_test(refusals_say_what_and_where),
        cmocka_unit_test(every_prefix_fails),
        cmocka_unit_test(every_flip_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
