/* Pickles as plain values, with nothing executed. */
#include "format/pickle.h"

#include "format/pickle_danger.h"
#include "format/pickle_machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One byte of input can become a value; this keeps a hostile file from becoming all of memory. */
enum { MAX_VALUES = 1 << 25 };

/* How many values make one entry of a list and of a dict. */
enum { SINGLES = 1, PAIRS = 2 };

static const char unopened[] = "a sequence ends that never began";

static enum plumb_code push_empty(struct pickle_machine *m, size_t kind)
{
    struct pickle_value *value;
    return pickle_push_new(m, (enum pickle_kind)kind, &value);
}

static enum plumb_code push_bool(struct pickle_machine *m, size_t truth)
{
    struct pickle_value *value;
    enum plumb_code code = pickle_push_new(m, PICKLE_BOOL, &value);
    if (!code)
        value->integer = (int64_t)truth;
    return code;
}

static enum plumb_code push_int(struct pickle_machine *m, size_t width)
{
    uint64_t number;
    if (!pickle_take_number(m, width, &number))
        return pickle_damaged(m, "a number runs over the end of the pickle");
    struct pickle_value *value;
    enum plumb_code code = pickle_push_new(m, PICKLE_INT, &value);
    if (!code) /* only the widest is signed */
        value->integer = width == 4 ? (int32_t)(uint32_t)number : (int64_t)number;
    return code;
}

/* A length of width bytes, and as many bytes. */
static enum plumb_code push_text(struct pickle_machine *m, enum pickle_kind kind, size_t width)
{
    uint64_t size;
    const uint8_t *bytes = pickle_take_number(m, width, &size) ? pickle_take(m, size) : NULL;
    if (!bytes)
        return pickle_damaged(m, "a string or number runs over the end of the pickle");
    struct pickle_value *value;
    enum plumb_code code = pickle_push_new(m, kind, &value);
    if (!code) {
        value->text.bytes = (const char *)bytes;
        value->text.size = (size_t)size;
    }
    return code;
}

static enum plumb_code push_str(struct pickle_machine *m, size_t width)
{
    return push_text(m, PICKLE_STR, width);
}

static enum plumb_code push_bytes(struct pickle_machine *m, size_t width)
{
    return push_text(m, PICKLE_BYTES, width);
}

/* Two's complement, little-endian, of any length. */
static enum plumb_code push_long(struct pickle_machine *m, size_t width)
{
    enum plumb_code code = push_text(m, PICKLE_BIGINT, width);
    if (code)
        return code;
    struct pickle_value *value = pickle_top(m);
    size_t size = value->text.size;
    if (size > 8)
        return PLUMB_OK;
    const uint8_t *bytes = (const uint8_t *)value->text.bytes;
    uint64_t bits = size && bytes[size - 1] & 0x80 ? UINT64_MAX : 0;
    while (size-- > 0)
        bits = bits << 8 | bytes[size];
    value->kind = PICKLE_INT;
    value->integer = (int64_t)bits;
    return PLUMB_OK;
}

/* Big-endian, unlike everything else. */
static enum plumb_code push_float(struct pickle_machine *m, size_t width)
{
    const uint8_t *bytes = pickle_take(m, width);
    if (!bytes)
        return pickle_damaged(m, "a number runs over the end of the pickle");
    uint64_t bits = 0;
    for (size_t i = 0; i < width; i++)
        bits = bits << 8 | bytes[i];
    struct pickle_value *value;
    enum plumb_code code = pickle_push_new(m, PICKLE_FLOAT, &value);
    if (!code)
        memcpy(&value->real, &bits, sizeof bits);
    return code;
}

static enum plumb_code push_mark(struct pickle_machine *m, size_t unused)
{
    (void)unused;
    return pickle_push(m, NULL);
}

/* Pushes a tuple or set of values that were just popped. */
static enum plumb_code push_sequence(struct pickle_machine *m, size_t kind,
                                     struct pickle_value **from, size_t count)
{
    struct pickle_value *value = pickle_new(m, (enum pickle_kind)kind);
    struct pickle_value **at = arena_array(m->arena, count, sizeof(struct pickle_value *));
    if (!value || !at)
        return pickle_no_memory(m);
    if (count)
        memcpy(at, from, count * sizeof(struct pickle_value *));
    value->items = (struct pickle_items){at, (uint32_t)count, (uint32_t)count};
    return pickle_push(m, value);
}

static enum plumb_code close_mark(struct pickle_machine *m, size_t kind)
{
    struct pickle_value **from;
    size_t count;
    if (!pickle_pop_mark(m, &from, &count))
        return pickle_damaged(m, unopened);
    return push_sequence(m, kind, from, count);
}

static enum plumb_code push_tuple(struct pickle_machine *m, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!pickle_pop(m))
            return pickle_damaged(m, "a tuple has fewer values than it claims");
    return push_sequence(m, PICKLE_TUPLE, m->stack.at + m->stack.count, count);
}

/* Adds values to the container on top of the stack; an object takes both kinds of content. */
static enum plumb_code add_to_top(struct pickle_machine *m, size_t width,
                                  struct pickle_value **values, size_t count)
{
    struct pickle_value *target = pickle_top(m);
    struct pickle_items *items = NULL;
    if (target && target->kind == PICKLE_OBJECT)
        items = width == PAIRS ? &target->object->dict : &target->object->list;
    else if (target && (width == PAIRS ? target->kind == PICKLE_DICT
                                       : target->kind == PICKLE_LIST || target->kind == PICKLE_SET))
        items = &target->items;
    if (!items)
        return pickle_damaged(m, "values are added to something that cannot hold them");
    if (count % width)
        return pickle_damaged(m, "a dictionary gets a key without a value");
    return pickle_extend(m, items, values, count) ? PLUMB_OK : pickle_no_memory(m);
}

static enum plumb_code add_many(struct pickle_machine *m, size_t width)
{
    struct pickle_value **values;
    size_t count;
    if (!pickle_pop_mark(m, &values, &count))
        return pickle_damaged(m, unopened);
    return add_to_top(m, width, values, count);
}

static enum plumb_code add_one(struct pickle_machine *m, size_t width)
{
    struct pickle_value *values[PAIRS];
    for (size_t i = width; i-- > 0;) {
        values[i] = pickle_pop(m);
        if (!values[i])
            return pickle_damaged(m, "a value is missing from the stack");
    }
    return add_to_top(m, width, values, width);
}

static enum plumb_code push_global(struct pickle_machine *m, const char *module, size_t module_size,
                                   const char *name, size_t name_size)
{
    if (module_size > 1000 || name_size > 1000 || memchr(module, '\0', module_size) ||
        memchr(name, '\0', name_size))
        return pickle_damaged(m, "a global's name is too long or has a NUL in it");
    struct pickle_value *value = pickle_new(m, PICKLE_GLOBAL);
    char *text = arena_alloc(m->arena, module_size + name_size + 2);
    if (!value || !text)
        return pickle_no_memory(m);
    memcpy(text, module, module_size);
    text[module_size] = '.';
    memcpy(text + module_size + 1, name, name_size);
    value->global = text;
    if (pickle_is_dangerous(text))
        return plumb_fail_at(m->err, PLUMB_E_UNSUPPORTED, m->start,
                             "the pickle names %.200s, by which it could run code; the file is "
                             "refused, and nothing of it was run",
                             text);
    return pickle_push(m, value);
}

/* "module\nname\n" */
static enum plumb_code read_global(struct pickle_machine *m, size_t unused)
{
    (void)unused;
    const char *parts[2];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        parts[i] = (const char *)m->data + m->at;
        const char *end = memchr(parts[i], '\n', m->size - m->at);
        if (!end)
            return pickle_damaged(m, "a global's name runs over the end of the pickle");
        sizes[i] = (size_t)(end - parts[i]);
        m->at += sizes[i] + 1;
    }
    return push_global(m, parts[0], sizes[0], parts[1], sizes[1]);
}

static enum plumb_code stack_global(struct pickle_machine *m, size_t unused)
{
    (void)unused;
    const struct pickle_value *name = pickle_pop(m), *module = pickle_pop(m);
    if (!name || !module || name->kind != PICKLE_STR || module->kind != PICKLE_STR)
        return pickle_damaged(m, "a global's name is not a pair of strings");
    return push_global(m, module->text.bytes, module->text.size, name->text.bytes, name->text.size);
}

static enum plumb_code push_object(struct pickle_machine *m, size_t keywords)
{
    struct pickle_value *kwargs = keywords ? pickle_pop(m) : NULL;
    struct pickle_value *args = pickle_pop(m), *callable = pickle_pop(m);
    if (!args || !callable || args->kind != PICKLE_TUPLE || (keywords && !kwargs))
        return pickle_damaged(m, "a call lacks its function or its arguments");
    struct pickle_object *object = arena_alloc(m->arena, sizeof *object);
    if (!object)
        return pickle_no_memory(m);
    *object = (struct pickle_object){.callable = callable, .args = args, .kwargs = kwargs};
    struct pickle_value *value;
    enum plumb_code code = pickle_push_new(m, PICKLE_OBJECT, &value);
    if (!code)
        value->object = object;
    return code;
}

static enum plumb_code build(struct pickle_machine *m, size_t unused)
{
    (void)unused;
    struct pickle_value *state = pickle_pop(m), *target = pickle_top(m);
    if (!state || !target || target->kind != PICKLE_OBJECT || target->object->state)
        return pickle_damaged(m, "state is given to something that takes none");
    target->object->state = state;
    return PLUMB_OK;
}

static enum plumb_code push_persistent(struct pickle_machine *m, size_t unused)
{
    (void)unused;
    struct pickle_value *id = pickle_pop(m), *value;
    if (!id)
        return pickle_damaged(m, "a persistent id is missing from the stack");
    enum plumb_code code = pickle_push_new(m, PICKLE_PERSISTENT, &value);
    if (!code)
        value->id = id;
    return code;
}

static enum plumb_code memo_set(struct pickle_machine *m, uint64_t index)
{
    struct pickle_value *value = pickle_top(m);
    if (!value)
        return pickle_damaged(m, "nothing is on the stack to be remembered");
    /* Picklers count up from 0, so that an honest index is far below the byte position. */
    if (index > m->start)
        return pickle_damaged(m, "a memo number is larger than the pickle so far");
    if (!pickle_reserve(&m->memo, (size_t)index + 1))
        return pickle_no_memory(m);
    while (m->memo.count <= index)
        m->memo.at[m->memo.count++] = NULL;
    if (!m->memo.at[index])
        m->memoized++;
    m->memo.at[index] = value;
    return PLUMB_OK;
}

static enum plumb_code memo_put(struct pickle_machine *m, size_t width)
{
    uint64_t index;
    if (!pickle_take_number(m, width, &index))
        return pickle_damaged(m, "a memo number runs over the end of the pickle");
    return memo_set(m, index);
}

static enum plumb_code memo_put_next(struct pickle_machine *m, size_t unused)
{
    (void)unused;
    return memo_set(m, m->memoized);
}

static enum plumb_code memo_get(struct pickle_machine *m, size_t width)
{
    uint64_t index;
    if (!pickle_take_number(m, width, &index))
        return pickle_damaged(m, "a memo number runs over the end of the pickle");
    if (index >= m->memo.count || !m->memo.at[index])
        return pickle_damaged(m, "a memo entry is used that was never set");
    return pickle_push(m, m->memo.at[index]);
}

static enum plumb_code pop_any(struct pickle_machine *m, size_t unused)
{
    (void)unused;
    if (!m->stack.count)
        return pickle_damaged(m, "the stack is empty where a value is dropped");
    m->stack.count--;
    return PLUMB_OK;
}

static enum plumb_code drop_mark(struct pickle_machine *m, size_t unused)
{
    (void)unused;
    struct pickle_value **values;
    size_t count;
    return pickle_pop_mark(m, &values, &count) ? PLUMB_OK : pickle_damaged(m, unopened);
}

static enum plumb_code check_protocol(struct pickle_machine *m, size_t width)
{
    uint64_t version;
    if (!pickle_take_number(m, width, &version))
        return pickle_damaged(m, "the pickle ends after its first byte");
    if (version < 2 || version > 5)
        return plumb_fail_at(m->err, PLUMB_E_UNSUPPORTED, m->start,
                             "pickle protocol %" PRIu64 "; plumb reads 2 to 5", version);
    return PLUMB_OK;
}

static enum plumb_code skip_frame(struct pickle_machine *m, size_t width)
{
    uint64_t size;
    if (!pickle_take_number(m, width, &size) || size > m->size - m->at)
        return pickle_damaged(m, "a frame runs over the end of the pickle");
    return PLUMB_OK;
}

/* What each accepted opcode does, and with what: the width in bytes of the number that follows it,
 * a count, or a kind. The others are refused. */
static const struct {
    enum plumb_code (*run)(struct pickle_machine *m, size_t argument);
    size_t argument;
} actions[256] = {
    [OP_PROTO] = {check_protocol, 1},
    [OP_FRAME] = {skip_frame, 8},
    [OP_MARK] = {push_mark, 0},
    [OP_POP] = {pop_any, 0},
    [OP_POP_MARK] = {drop_mark, 0},
    [OP_NONE] = {push_empty, PICKLE_NONE},
    [OP_NEWTRUE] = {push_bool, true},
    [OP_NEWFALSE] = {push_bool, false},
    [OP_BININT] = {push_int, 4},
    [OP_BININT1] = {push_int, 1},
    [OP_BININT2] = {push_int, 2},
    [OP_LONG1] = {push_long, 1},
    [OP_LONG4] = {push_long, 4},
    [OP_BINFLOAT] = {push_float, 8},
    [OP_SHORT_BINSTRING] = {push_str, 1},
    [OP_SHORT_BINUNICODE] = {push_str, 1},
    [OP_BINSTRING] = {push_str, 4},
    [OP_BINUNICODE] = {push_str, 4},
    [OP_BINUNICODE8] = {push_str, 8},
    [OP_SHORT_BINBYTES] = {push_bytes, 1},
    [OP_BINBYTES] = {push_bytes, 4},
    [OP_BINBYTES8] = {push_bytes, 8},
    [OP_BYTEARRAY8] = {push_bytes, 8},
    [OP_EMPTY_LIST] = {push_empty, PICKLE_LIST},
    [OP_EMPTY_SET] = {push_empty, PICKLE_SET},
    [OP_EMPTY_DICT] = {push_empty, PICKLE_DICT},
    [OP_EMPTY_TUPLE] = {push_empty, PICKLE_TUPLE},
    [OP_TUPLE] = {close_mark, PICKLE_TUPLE},
    [OP_FROZENSET] = {close_mark, PICKLE_SET},
    [OP_TUPLE1] = {push_tuple, 1},
    [OP_TUPLE2] = {push_tuple, 2},
    [OP_TUPLE3] = {push_tuple, 3},
    [OP_APPEND] = {add_one, SINGLES},
    [OP_APPENDS] = {add_many, SINGLES},
    [OP_ADDITEMS] = {add_many, SINGLES},
    [OP_SETITEM] = {add_one, PAIRS},
    [OP_SETITEMS] = {add_many, PAIRS},
    [OP_GLOBAL] = {read_global, 0},
    [OP_STACK_GLOBAL] = {stack_global, 0},
    [OP_REDUCE] = {push_object, false},
    [OP_NEWOBJ] = {push_object, false},
    [OP_NEWOBJ_EX] = {push_object, true},
    [OP_BUILD] = {build, 0},
    [OP_BINPERSID] = {push_persistent, 0},
    [OP_BINPUT] = {memo_put, 1},
    [OP_LONG_BINPUT] = {memo_put, 4},
    [OP_MEMOIZE] = {memo_put_next, 0},
    [OP_BINGET] = {memo_get, 1},
    [OP_LONG_BINGET] = {memo_get, 4},
};

static enum plumb_code step(struct pickle_machine *m, uint8_t op)
{
    if (actions[op].run)
        return actions[op].run(m, actions[op].argument);
    char shown[8] = "";
    if (op > ' ' && op < 0x7f)
        snprintf(shown, sizeof shown, " ('%c')", op);
    return plumb_fail_at(m->err, PLUMB_E_UNSUPPORTED, m->start,
                         "pickle opcode 0x%02x%s is not one that plumb accepts", op, shown);
}

enum plumb_code pickle_parse(const uint8_t *data, size_t size, struct arena *arena,
                             struct pickle_value **root, struct plumb_error *err)
{
    struct pickle_machine m = {.data = data, .size = size, .arena = arena, .err = err};
    enum plumb_code code = PLUMB_OK;
    *root = NULL;
    if (!size || data[0] != OP_PROTO) {
        code = plumb_fail_at(err, PLUMB_E_FORMAT, 0, "this is no pickle of protocol 2 or later");
        goto out;
    }
    for (;;) {
        m.start = m.at;
        const uint8_t *op = pickle_take(&m, 1);
        if (!op) {
            code = pickle_damaged(&m, "the pickle is cut short");
            goto out;
        }
        if (*op == OP_STOP)
            break;
        if (m.made > MAX_VALUES) {
            code = plumb_fail_at(err, PLUMB_E_UNSUPPORTED, m.start,
                                 "the pickle holds more than %d values: save the tensors alone",
                                 MAX_VALUES);
            goto out;
        }
        code = step(&m, *op);
        if (code)
            goto out;
    }
    if (m.stack.count != 1 || !pickle_top(&m))
        code = pickle_damaged(&m, "the pickle does not end with exactly one value");
    else
        *root = pickle_top(&m);
out:
    free(m.stack.at);
    free(m.memo.at);
    return code;
}

bool pickle_is_str(const struct pickle_value *value, const char *text)
{
    return value->kind == PICKLE_STR && value->text.size == strlen(text) &&
           memcmp(value->text.bytes, text, value->text.size) == 0;
}

bool pickle_is_global(const struct pickle_value *value, const char *name)
{
    return value->kind == PICKLE_GLOBAL && strcmp(value->global, name) == 0;
}
