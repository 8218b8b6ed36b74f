#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The text in a block of exactly its size, so that ASan sees a read beyond it. */
static char *exact_copy(const char *text, size_t size)
{
    char *bytes = malloc(size ? size : 1);
    assert_non_null(bytes);
    memcpy(bytes, text, size);
    return bytes;
}

/* Events as one letter each. */
static const char *events_of(const char *text, char *out, size_t size)
{
    static const char letters[] = "!.{}[]ksntfz";
    struct json json;
    size_t n = 0;
    json_init(&json, text, strlen(text));
    for (;;) {
        enum json_event event = json_next(&json);
        assert_true(n + 1 < size);
        out[n++] = letters[event];
        if (event <= JSON_END)
            break;
    }
    out[n] = '\0';
    return out;
}

static void events_follow_the_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *events;
    } cases[] = {
        {"{}", "{}."},
        {" [ ] ", "[]."},
        {"\t\r\n1", "n."},
        {"\"\"", "s."},
        {"[1,-2.5e+3,\"a\",true,false,null]", "[nnstfz]."},
        {"{\"a\":{\"b\":[{}]},\"c\":\"d\"}", "{k{k[{}]}ks}."},
        {"[NaN,Infinity,-Infinity]", "[nnn]."},
        {"[                         1]", "[n]."},
        {"{\"a\" : 1 , \"b\" : 2 }", "{knkn}."},
    };
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(events_of(cases[i].text, out, sizeof out), cases[i].events);
}

static void errors_have_code_and_position(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum json_error error;
        uint64_t at;
    } cases[] = {
        {"", JSON_E_END, 0},
        {"   ", JSON_E_END, 3},
        {"[", JSON_E_END, 1},
        {"[1", JSON_E_END, 2},
        {"[1,", JSON_E_END, 3},
        {"{", JSON_E_END, 1},
        {"{\"a", JSON_E_END, 3},
        {"{\"a\"", JSON_E_END, 4},
        {"{\"a\":", JSON_E_END, 5},
        {"{\"a\":1", JSON_E_END, 6},
        {"{\"a\":1,", JSON_E_END, 7},
        {"\"abcdefghijklm", JSON_E_END, 14},
        {"\"\\", JSON_E_END, 2},
        {"\"\\u12", JSON_E_END, 5},
        {"tru", JSON_E_END, 3},
        {"-", JSON_E_END, 1},
        {"-Inf", JSON_E_END, 4},
        {"1.", JSON_E_END, 2},
        {"1e", JSON_E_END, 2},
        {"1e-", JSON_E_END, 3},
        {"[1,]", JSON_E_VALUE, 3},
        {"[,1]", JSON_E_VALUE, 1},
        {"[tru]", JSON_E_VALUE, 1},
        {"[nil]", JSON_E_VALUE, 1},
        {"[nan]", JSON_E_VALUE, 1},
        {"['a']", JSON_E_VALUE, 1},
        {"{\"a\":}", JSON_E_VALUE, 5},
        {"+1", JSON_E_VALUE, 0},
        {".5", JSON_E_VALUE, 0},
        {"]", JSON_E_VALUE, 0},
        {"\xef\xbb\xbf{}", JSON_E_VALUE, 0},
        {"[\v1]", JSON_E_VALUE, 1},
        {"{a:1}", JSON_E_KEY, 1},
        {"{\"a\":1,}", JSON_E_KEY, 7},
        {"{1:2}", JSON_E_KEY, 1},
        {"{]", JSON_E_KEY, 1},
        {"{\"a\" 1}", JSON_E_COLON, 5},
        {"{\"a\"}", JSON_E_COLON, 4},
        {"[1 2]", JSON_E_COMMA, 3},
        {"[1}", JSON_E_COMMA, 2},
        {"{\"a\":1]", JSON_E_COMMA, 6},
        {"{\"a\":1 \"b\":2}", JSON_E_COMMA, 7},
        {"[truex]", JSON_E_COMMA, 5},
        {"{} {}", JSON_E_TRAILING, 3},
        {"1 x", JSON_E_TRAILING, 2},
        {"[]]", JSON_E_TRAILING, 2},
        {"01", JSON_E_NUMBER, 1},
        {"[-x]", JSON_E_NUMBER, 2},
        {"[1.x]", JSON_E_NUMBER, 3},
        {"[1e+]", JSON_E_NUMBER, 4},
        {"\"a\nb\"", JSON_E_CONTROL, 2},
        {"\"0123456789\x01\"", JSON_E_CONTROL, 11},
        {"{\"a\tb\":1}", JSON_E_CONTROL, 3},
        {"\"a\\x41\"", JSON_E_ESCAPE, 2},
        {"\"\\u12g4\"", JSON_E_ESCAPE, 1},
        {"\"\\u123\"", JSON_E_ESCAPE, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = strlen(cases[i].text);
        char *bytes = exact_copy(cases[i].text, size);
        struct json json;
        json_init(&json, bytes, size);
        while (json_next(&json) > JSON_END)
            ;
        if (json.error != cases[i].error || json.error_at != cases[i].at)
            fail_msg("%s: error %d at %llu", cases[i].text, (int)json.error,
                     (unsigned long long)json.error_at);
        assert_int_equal(json_next(&json), JSON_ERROR);
        struct plumb_error err;
        assert_int_equal(json_fail(&json, 100, &err), PLUMB_E_FORMAT);
        assert_int_equal(err.offset, 100 + cases[i].at);
        free(bytes);
    }
}

static void depth_is_limited(void **state)
{
    (void)state;
    char text[2 * JSON_MAX_DEPTH + 2];
    struct json json;
    memset(text, '[', JSON_MAX_DEPTH);
    memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
    json_init(&json, text, (size_t)2 * JSON_MAX_DEPTH);
    enum json_event event;
    while ((event = json_next(&json)) > JSON_END)
        ;
    assert_int_equal(event, JSON_END);

    text[JSON_MAX_DEPTH] = '[';
    json_init(&json, text, sizeof text);
    while ((event = json_next(&json)) > JSON_END)
        ;
    assert_int_equal(json.error, JSON_E_DEPTH);
    assert_int_equal(json.error_at, JSON_MAX_DEPTH);
}

static void every_cut_is_an_error(void **state)
{
    (void)state;
    static const char text[] =
        "{\"name\":[1.5e-3,\"x\\u00e9\\ud83d\\ude00y\",true,false,null,-Infinity,NaN],\"z\":{}}";
    for (size_t size = 0; size < sizeof text - 1; size++) {
        char *bytes = exact_copy(text, size);
        struct json json;
        json_init(&json, bytes, size);
        while (json_next(&json) > JSON_END)
            ;
        assert_int_equal(json.error, JSON_E_END);
        assert_int_equal(json.error_at, size);
        free(bytes);
    }
}

static void strings_are_slices(void **state)
{
    (void)state;
    static const char text[] = "[\"plain text here\", \"a\\n\"]";
    struct json json;
    json_init(&json, text, sizeof text - 1);
    json_next(&json);
    assert_int_equal(json_next(&json), JSON_STRING);
    assert_ptr_equal(json.text, text + 2);
    assert_int_equal(json.length, 15);
    assert_int_equal(json.start, 1);
    assert_false(json.escaped);
    assert_int_equal(json_next(&json), JSON_STRING);
    assert_int_equal(json.length, 3);
    assert_int_equal(json.start, 20);
    assert_true(json.escaped);
}

static void escapes_become_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text, *plain;
    } cases[] = {
        {"\"\"", ""},
        {"\"abc\"", "abc"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac"},
        {"\"<\\ud83d\\ude00>\"", "<\xf0\x9f\x98\x80>"},
        {"\"\\uDBFF\\uDFFF\"", "\xf4\x8f\xbf\xbf"},
        {"\"\xc3\xa9\\t\"", "\xc3\xa9\t"},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json json;
        size_t length;
        json_init(&json, cases[i].text, strlen(cases[i].text));
        assert_int_equal(json_next(&json), JSON_STRING);
        const char *copy = json_copy(&json, &arena, &length);
        assert_non_null(copy);
        assert_string_equal(copy, cases[i].plain);
        assert_int_equal(length, strlen(cases[i].plain));
        assert_true(length > JSON_MAX_IS || json_is(&json, cases[i].plain));
        assert_false(json_is(&json, "other"));
    }
    arena_free(&arena);
}

static void half_a_pair_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t at;
    } cases[] = {
        {"\"\\ud83d\"", 1},
        {"\"ab\\ude00\"", 3},
        {"\"\\ud83dx\"", 1},
        {"\"\\ud83d\\u0041\"", 1},
        {"\"\\ud83d\\ud83d\"", 1},
        {"\"\\ud83d\\n12345\"", 1},
        {"\"\\ud83d\\ude00\\ud83d\"", 13},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json json;
        char out[64];
        size_t length;
        json_init(&json, cases[i].text, strlen(cases[i].text));
        assert_int_equal(json_next(&json), JSON_STRING);
        assert_false(json_unescape(&json, out, &length));
        assert_int_equal(json.error, JSON_E_SURROGATE);
        assert_int_equal(json.error_at, cases[i].at);
        assert_int_equal(json_next(&json), JSON_ERROR);
    }
}

static void number(const char *text, struct json *json)
{
    json_init(json, text, strlen(text));
    assert_int_equal(json_next(json), JSON_NUMBER);
}

static void integers_are_strict(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"42", true, 42},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"18446744073709551616", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"NaN", false, 0},
        {"-Infinity", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json json;
        int64_t value = 7;
        number(cases[i].text, &json);
        assert_int_equal(json_int64(&json, &value), cases[i].good);
        assert_true(value == (cases[i].good ? cases[i].value : 7));
    }
}

static void doubles_round_correctly(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "0",
        "-0.0",
        "0.1",
        "1.5e3",
        "1E-5",
        "123456789012345678901234567890",
        "9007199254740993",
        "2.2250738585072014e-308",
        "4.9406564584124654e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "0.000000000000000000000000000000000000001234",
        "1e-400",
        "8.5070591730234616e37",
        "0.30000000000000004",
        "100000000000000000000000",
    };
    struct json json;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        number(cases[i], &json);
        double value = json_double(&json), truth = strtod(cases[i], NULL);
        assert_memory_equal(&value, &truth, sizeof value);
    }
    number("1e400", &json);
    assert_true(json_double(&json) == (double)INFINITY);
    number("-1e99999999999999999999999999", &json);
    assert_true(json_double(&json) == -(double)INFINITY);
    number("Infinity", &json);
    assert_true(json_double(&json) == (double)INFINITY);
    number("-Infinity", &json);
    assert_true(json_double(&json) == -(double)INFINITY);
    number("NaN", &json);
    assert_true(isnan(json_double(&json)));
}

/* 1 + 2^-53 is a tie and goes down to 1; a digit anywhere behind it must push it up. */
static void digits_beyond_the_buffer_count(void **state)
{
    (void)state;
    char text[2000];
    struct json json;
    static const char tie[] = "1.00000000000000011102230246251565404236316680908203125";
    memcpy(text, tie, sizeof tie - 1);
    memset(text + sizeof tie - 1, '0', 1000);
    text[sizeof tie - 1 + 1000] = '1';
    text[sizeof tie + 1000] = '\0';
    number(text, &json);
    assert_true(json_double(&json) == 1 + 0x1p-52);
    text[sizeof tie - 1 + 1000] = '0';
    number(text, &json);
    assert_true(json_double(&json) == 1);
}

static void values_can_be_skipped(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":{\"x\":[1,{}]},\"b\":2,\"c\":[[],[3]],\"d\":4}";
    struct json json;
    json_init(&json, text, sizeof text - 1);
    assert_int_equal(json_next(&json), JSON_OBJECT);
    assert_int_equal(json_next(&json), JSON_KEY);
    assert_true(json_skip(&json, JSON_KEY));
    assert_int_equal(json_next(&json), JSON_KEY);
    assert_true(json_is(&json, "b"));
    assert_true(json_skip(&json, JSON_KEY));
    assert_int_equal(json_next(&json), JSON_KEY);
    assert_true(json_is(&json, "c"));
    enum json_event event = json_next(&json);
    assert_int_equal(event, JSON_ARRAY);
    assert_true(json_skip(&json, event));
    assert_int_equal(json_next(&json), JSON_KEY);
    assert_true(json_is(&json, "d"));
    event = json_next(&json);
    assert_true(json_skip(&json, event));
    assert_int_equal(json_next(&json), JSON_OBJECT_END);
    assert_int_equal(json_next(&json), JSON_END);

    json_init(&json, "[[1,2", 5);
    json_next(&json);
    assert_false(json_skip(&json, JSON_ARRAY));
    assert_int_equal(json.error, JSON_E_END);
}

/* Objects that repeat each other, some of them nearly: the same keys, values and errors as without
 * the spans. */
static void repeated_keys_are_the_same_keys(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[{\"a\": 1, \"b\": [1, 2]}, {\"a\": 2, \"b\": [1, 2]}, {\"a\": 3, \"b\": [1, 3]}]",
        "[{\"a\": 1, \"b\": [1]}, {\"b\": [1], \"a\": 2}, {}, {\"a\": 1}, {\"a\" : 1}]",
        "[{\"a\": 1, \"b\": [1]}, {\"a\": 1, \"b\": [1}]",
        "[{\"a\": 1, \"b\": [1]}, {\"a\": 1, \"b\": ]}]",
        "[{\"a\": 1, \"b\": [1]}, {\"a\": 1, \"c\": [1]}, {\"a\": 1, \"b\": [1]}",
        "[{\"a\": 1, \"b\": [[1]]}, {\"a\": 1, \"b\": [[1]]}, {\"a\": 1, \"b\": [[1",
        "[{\"a\": 1, \"a\": 2}, {\"a\": 1, \"a\": 2}, {\"a\": 1,, \"a\": 2}]",
    };
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
        for (size_t cut = strlen(texts[t]); cut > 1; cut--) {
            char *bytes = exact_copy(texts[t], cut);
            struct json plain, quick;
            json_init(&plain, bytes, cut);
            json_init(&quick, bytes, cut);
            struct json_span keys[4] = {0}, list = {0};
            size_t place = 0;
            for (enum json_event event = JSON_ARRAY; event > JSON_END;) {
                bool same = false;
                const bool inside = quick.depth == 2;
                place = inside ? place : 0;
                event = inside && place < 4 ? json_next_key(&quick, &keys[place], &same)
                                            : json_next(&quick);
                assert_int_equal(json_next(&plain), event);
                assert_ptr_equal(quick.next, plain.next);
                assert_int_equal(quick.depth, plain.depth);
                assert_int_equal(quick.error, plain.error);
                assert_int_equal(quick.error_at, plain.error_at);
                if (event != JSON_KEY)
                    continue;
                place++;
                event = json_next(&quick);
                assert_int_equal(json_next(&plain), event);
                if (event != JSON_ARRAY)
                    continue;
                const uint64_t start = quick.start;
                const bool known = json_skip_same(&quick, &list);
                if (json_skip(&plain, event) && !known && json_skip(&quick, event))
                    list = json_span_from(&quick, start);
                else if (!known)
                    json_skip(&quick, event);
                assert_ptr_equal(quick.next, plain.next);
                assert_int_equal(quick.error_at, plain.error_at);
            }
            assert_int_equal(quick.error, plain.error);
            free(bytes);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_follow_the_text),
        cmocka_unit_test(errors_have_code_and_position),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(every_cut_is_an_error),
        cmocka_unit_test(strings_are_slices),
        cmocka_unit_test(escapes_become_utf8),
        cmocka_unit_test(half_a_pair_is_an_error),
        cmocka_unit_test(integers_are_strict),
        cmocka_unit_test(doubles_round_correctly),
        cmocka_unit_test(digits_beyond_the_buffer_count),
        cmocka_unit_test(values_can_be_skipped),
        cmocka_unit_test(repeated_keys_are_the_same_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
