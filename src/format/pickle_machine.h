/* The machine that a pickle is a program for: its stack, its memo, and its opcodes. */
#ifndef FORMAT_PICKLE_MACHINE_H
#define FORMAT_PICKLE_MACHINE_H

#include "format/pickle.h"

/* Those of protocols 2 to 5 that plumb accepts. What is not here (text forms, extension registries,
 * out-of-band buffers) is not written by anything that saves tensors. */
enum pickle_opcode {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_POP = '0',
    OP_POP_MARK = '1',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINPERSID = 'Q',
    OP_REDUCE = 'R',
    OP_BINSTRING = 'T',
    OP_SHORT_BINSTRING = 'U',
    OP_BINUNICODE = 'X',
    OP_BINBYTES = 'B',
    OP_SHORT_BINBYTES = 'C',
    OP_EMPTY_LIST = ']',
    OP_APPEND = 'a',
    OP_BUILD = 'b',
    OP_GLOBAL = 'c',
    OP_EMPTY_DICT = '}',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_EMPTY_TUPLE = ')',
    OP_SETITEMS = 'u',
    OP_PROTO = 0x80,
    OP_NEWOBJ = 0x81,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_BINBYTES8 = 0x8e,
    OP_EMPTY_SET = 0x8f,
    OP_ADDITEMS = 0x90,
    OP_FROZENSET = 0x91,
    OP_NEWOBJ_EX = 0x92,
    OP_STACK_GLOBAL = 0x93,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
    OP_BYTEARRAY8 = 0x96,
};

struct pickle_stack {
    struct pickle_value **at; /* malloc */
    size_t count, capacity;
};

struct pickle_machine {
    const uint8_t *data;
    size_t size, at;
    size_t start; /* of the current opcode */
    struct arena *arena;
    struct plumb_error *err;
    size_t made;               /* values so far */
    struct pickle_stack stack; /* NULL is a mark */
    struct pickle_stack memo;  /* NULL is a hole */
    size_t memoized;
};

/* Failures, for `return`. The position given is that of the current opcode. */
enum plumb_code pickle_no_memory(struct pickle_machine *m);
enum plumb_code pickle_damaged(struct pickle_machine *m, const char *what);

/* The next n bytes of the input, or NULL. */
const uint8_t *pickle_take(struct pickle_machine *m, uint64_t n);

/* The little-endian number in the next width bytes; false at the end of the input. */
bool pickle_take_number(struct pickle_machine *m, size_t width, uint64_t *number);

/* Makes room for count pointers; false when out of memory. */
bool pickle_reserve(struct pickle_stack *stack, size_t count);

enum plumb_code pickle_push(struct pickle_machine *m, struct pickle_value *value);

/* The value on top of the stack, or NULL when there is none above the last mark. */
struct pickle_value *pickle_top(const struct pickle_machine *m);
struct pickle_value *pickle_pop(struct pickle_machine *m);

/* The values above the last mark, which is removed with them; they stay readable until the next
 * push. False when there is no mark. */
bool pickle_pop_mark(struct pickle_machine *m, struct pickle_value ***values, size_t *count);

/* A value of a kind, zero otherwise; NULL when out of memory. */
struct pickle_value *pickle_new(struct pickle_machine *m, enum pickle_kind kind);

/* Makes a value, pushes it, and leaves it in *out to be filled. */
enum plumb_code pickle_push_new(struct pickle_machine *m, enum pickle_kind kind,
                                struct pickle_value **out);

/* Appends values to a container; false when out of memory. */
bool pickle_extend(struct pickle_machine *m, struct pickle_items *items,
                   struct pickle_value **values, size_t count);

#endif
