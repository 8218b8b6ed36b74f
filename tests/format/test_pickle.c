#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/pickle.h"
#include "format/pickle_danger.h"

#include <stdlib.h>
#include <string.h>

static struct arena arena;
static struct plumb_error error;

static int release(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

/* Parses from memory that ends where the pickle does. The bytes stay: strings are borrowed. */
static enum plumb_code parse(const char *bytes, size_t size, struct pickle_value **root)
{
    char *copy = arena_copy(&arena, bytes, size);
    assert_non_null(copy);
    return pickle_parse((const uint8_t *)copy, size, &arena, root, &error);
}

#define PARSE(text, root) parse(text, sizeof(text) - 1, root)

static struct pickle_value *good(const char *bytes, size_t size)
{
    struct pickle_value *root;
    if (parse(bytes, size, &root))
        fail_msg("%s", error.message);
    return root;
}

#define GOOD(text) good(text, sizeof(text) - 1)

static void bad(const char *bytes, size_t size, enum plumb_code code, uint64_t offset,
                const char *text)
{
    struct pickle_value *root;
    assert_int_equal(parse(bytes, size, &root), code);
    assert_null(root);
    assert_int_equal(error.offset, offset);
    if (!strstr(error.message, text))
        fail_msg("'%s' does not say '%s'", error.message, text);
}

#define BAD(bytes, code, offset, text) bad(bytes, sizeof(bytes) - 1, code, offset, text)

static void numbers(void **state)
{
    (void)state;
    assert_int_equal(GOOD("\x80\x02N.")->kind, PICKLE_NONE);
    assert_int_equal(GOOD("\x80\x02\x88.")->integer, 1);
    assert_int_equal(GOOD("\x80\x02K\xff.")->integer, 255);
    assert_int_equal(GOOD("\x80\x02M\x01\x02.")->integer, 0x201);
    assert_int_equal(GOOD("\x80\x02J\xfe\xff\xff\xff.")->integer, -2);
    assert_int_equal(GOOD("\x80\x02\x8a\x00.")->integer, 0);
    assert_int_equal(GOOD("\x80\x02\x8a\x02\x00\x80.")->integer, -32768);
    assert_int_equal(GOOD("\x80\x02\x8a\x05\x00\x00\x00\x00\x01.")->integer, (int64_t)1 << 32);
    assert_int_equal(GOOD("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.")->integer, INT64_MAX);
    assert_int_equal(GOOD("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.")->kind,
                     PICKLE_BIGINT);
    struct pickle_value *value = GOOD("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00.");
    assert_int_equal(value->kind, PICKLE_FLOAT);
    assert_true(value->real == 1.5);
}

static void containers(void **state)
{
    (void)state;
    struct pickle_value *list = GOOD("\x80\x04](K\x01\x8c\x02hiC\x01\x00"
                                     "e.");
    assert_int_equal(list->kind, PICKLE_LIST);
    assert_int_equal(list->offset, 2);
    assert_int_equal(list->items.count, 3);
    assert_true(pickle_is_str(list->items.at[1], "hi"));
    assert_false(pickle_is_str(list->items.at[1], "h"));
    assert_int_equal(list->items.at[2]->kind, PICKLE_BYTES);

    struct pickle_value *dict = GOOD("\x80\x02}K\x01K\x02s(K\x03K\x04K\x05N\x85u.");
    assert_int_equal(dict->kind, PICKLE_DICT);
    assert_int_equal(dict->items.count, 6);
    assert_int_equal(dict->items.at[2]->integer, 3);
    assert_int_equal(dict->items.at[5]->kind, PICKLE_TUPLE);

    struct pickle_value *tuple = GOOD("\x80\x02K\x01K\x02K\x03\x87.");
    assert_int_equal(tuple->items.count, 3);
    assert_int_equal(tuple->items.at[0]->integer, 1);
    assert_int_equal(GOOD("\x80\x02(K\x01K\x02t.")->items.count, 2);
    assert_int_equal(GOOD("\x80\x04\x8f(K\x01K\x02\x90.")->kind, PICKLE_SET);
    assert_int_equal(GOOD("\x80\x04(K\x01\x91.")->items.count, 1);
}

static void calls_stay_calls(void **state)
{
    (void)state;
    struct pickle_value *value =
        GOOD("\x80\x02"
             "cm.n\nC\nK\x07\x85R}X\x01\x00\x00\x00kK\x08sb(K\x01K\x02uK\x09"
             "a.");
    assert_int_equal(value->kind, PICKLE_OBJECT);
    assert_true(pickle_is_global(value->object->callable, "m.n.C"));
    assert_int_equal(value->object->callable->offset, 2);
    assert_int_equal(value->object->args->items.at[0]->integer, 7);
    assert_int_equal(value->object->state->items.count, 2);
    assert_int_equal(value->object->dict.count, 2);
    assert_int_equal(value->object->list.at[0]->integer, 9);

    value = GOOD("\x80\x04\x8c\x01m\x94\x8c\x01"
                 "C\x94\x93\x94)\x81\x94.");
    assert_true(pickle_is_global(value->object->callable, "m.C"));
    value = GOOD("\x80\x04\x8c\x01m\x8c\x01"
                 "C\x93)}\x92.");
    assert_int_equal(value->object->kwargs->kind, PICKLE_DICT);
    assert_int_equal(GOOD("\x80\x02K\x05Q.")->id->integer, 5);
}

static void memo(void **state)
{
    (void)state;
    struct pickle_value *value = GOOD("\x80\x02]q\x00h\x00"
                                      "a.");
    assert_ptr_equal(value->items.at[0], value); /* a list in itself */
    value = GOOD("\x80\x04K\x01\x94K\x02\x94h\x00h\x01\x86\x94"
                 "0j\x02\x00\x00\x00\x87.");
    assert_int_equal(value->items.at[2]->items.at[0]->integer, 1);
    BAD("\x80\x02h\x00.", PLUMB_E_FORMAT, 2, "never set");
    BAD("\x80\x02Nq\x02h\x01.", PLUMB_E_FORMAT, 5, "never set");
    /* A promise of four thousand million entries. */
    BAD("\x80\x02Nr\xff\xff\xff\xff.", PLUMB_E_FORMAT, 3, "larger than the pickle");
}

static void damage_has_a_position(void **state)
{
    (void)state;
    BAD("", PLUMB_E_FORMAT, 0, "no pickle");
    BAD("(lp0\n.", PLUMB_E_FORMAT, 0, "no pickle");
    BAD("\x80\x06N.", PLUMB_E_UNSUPPORTED, 0, "protocol 6");
    BAD("\x80\x02.", PLUMB_E_FORMAT, 2, "exactly one value");
    BAD("\x80\x02NN.", PLUMB_E_FORMAT, 4, "exactly one value");
    BAD("\x80\x02(.", PLUMB_E_FORMAT, 3, "exactly one value");
    BAD("\x80\x02N", PLUMB_E_FORMAT, 3, "cut short");
    BAD("\x80\x02I1\n.", PLUMB_E_UNSUPPORTED, 2, "opcode 0x49 ('I')");
    BAD("\x80\x02\x82\x01.", PLUMB_E_UNSUPPORTED, 2, "opcode 0x82");
    BAD("\x80\x02X\xff\xff\xff\xff.", PLUMB_E_FORMAT, 2, "runs over the end");
    BAD("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", PLUMB_E_FORMAT, 2, "runs over the end");
    BAD("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN.", PLUMB_E_FORMAT, 2, "frame");
    BAD("\x80\x02"
        "cos\n.",
        PLUMB_E_FORMAT, 2, "global");
    BAD("\x80\x02Nt.", PLUMB_E_FORMAT, 3, "never began");
    BAD("\x80\x02N(\x85.", PLUMB_E_FORMAT, 4, "fewer values");
    BAD("\x80\x02K\x01N"
        "a.",
        PLUMB_E_FORMAT, 5, "cannot hold");
    BAD("\x80\x02}(K\x01u.", PLUMB_E_FORMAT, 6, "without a value");
    BAD("\x80\x02NNR.", PLUMB_E_FORMAT, 4, "lacks its function");
    BAD("\x80\x02NNb.", PLUMB_E_FORMAT, 4, "takes none");
    BAD("\x80\x04K\x01K\x02\x93.", PLUMB_E_FORMAT, 6, "pair of strings");
    BAD("\x80\x02"
        "0.",
        PLUMB_E_FORMAT, 2, "empty");
}

static void danger_is_refused(void **state)
{
    (void)state;
    BAD("\x80\x02"
        "cos\nsystem\nX\x02\x00\x00\x00id\x85R.",
        PLUMB_E_UNSUPPORTED, 2, "os.system");
    BAD("\x80\x04\x8c\x05posix\x8c\x06system\x93.", PLUMB_E_UNSUPPORTED, 17, "posix.system");
    const char *const dangerous[] = {
        "nt.system",        "subprocess.Popen",
        "sys.modules",      "builtins.eval",
        "__builtin__.exec", "builtins.getattr",
        "runpy.run_path",   "shutil.rmtree",
        "socket.socket",    "importlib.import_module",
        "pty.spawn",        "ctypes.CDLL",
        "os.path.join",     "torch.load",
    };
    for (size_t i = 0; i < sizeof dangerous / sizeof *dangerous; i++)
        assert_true(pickle_is_dangerous(dangerous[i]));
    const char *const harmless[] = {"collections.OrderedDict", "torch._utils._rebuild_tensor_v2",
                                    "builtins.set", "osmosis.Net", "builtins.evaluate"};
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        assert_false(pickle_is_dangerous(harmless[i]));
}

static void every_prefix_fails(void **state)
{
    (void)state;
    static const char whole[] = "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00}(\x8c\x01k\x94"
                                "cm\nC\n)"
                                "\x81\x94J\x01\x02\x03\x04X\x01\x00\x00\x00vG01234567\x8a\x03"
                                "abch\x00N\x86Nu.";
    assert_int_equal(GOOD(whole)->items.count, 8);
    struct pickle_value *root;
    for (size_t size = 0; size < sizeof whole - 1; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        assert_non_null(copy);
        memcpy(copy, whole, size);
        assert_int_not_equal(pickle_parse(copy, size, &arena, &root, &error), PLUMB_OK);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(numbers, release),
        cmocka_unit_test_teardown(containers, release),
        cmocka_unit_test_teardown(calls_stay_calls, release),
        cmocka_unit_test_teardown(memo, release),
        cmocka_unit_test_teardown(damage_has_a_position, release),
        cmocka_unit_test_teardown(danger_is_refused, release),
        cmocka_unit_test_teardown(every_prefix_fails, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
