/* Python's pickles as plain values. Nothing is imported, called or built: a global is a name, a
 * call is a node that says what would be called with what.
 *
 * Understands what the binary protocols 2 to 5 write for data (opcodes outside that list are
 * refused by name and position). Strings are borrowed from the input, which must outlive the
 * values. */
#ifndef FORMAT_PICKLE_H
#define FORMAT_PICKLE_H

#include "base/arena.h"
#include "plumb/error.h"

#include <stdbool.h>

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_BIGINT, /* more than 64 bits; kept as its bytes */
    PICKLE_FLOAT,
    PICKLE_STR,
    PICKLE_BYTES,
    PICKLE_LIST,
    PICKLE_TUPLE,
    PICKLE_SET,
    PICKLE_DICT,
    PICKLE_GLOBAL,
    PICKLE_OBJECT, /* what a call or a constructor would have made */
    PICKLE_PERSISTENT,
};

struct pickle_value;

struct pickle_items {
    struct pickle_value **at;
    uint32_t count, capacity;
};

struct pickle_object {
    struct pickle_value *callable; /* or the class */
    struct pickle_value *args;     /* a tuple */
    struct pickle_value *kwargs;   /* or NULL */
    struct pickle_value *state;    /* what __setstate__ would get, or NULL */
    struct pickle_items list;      /* appended to it */
    struct pickle_items dict;      /* set in it: key, value, key, value ... */
};

/* Values are shared (a memo entry may be used many times) and may contain themselves: bound every
 * walk. on_path is zero, and free for the walker's use. */
struct pickle_value {
    uint8_t kind; /* enum pickle_kind */
    bool on_path;
    uint64_t offset; /* of the opcode that made it */
    union {
        int64_t integer; /* bool, int */
        double real;
        struct {
            const char *bytes; /* str, bytes, big int; not NUL-terminated */
            size_t size;
        } text;
        const char *global;           /* "module.name", NUL-terminated, in the arena */
        struct pickle_items items;    /* list, tuple, set; dict: key, value, key, value ... */
        struct pickle_object *object; /* object */
        struct pickle_value *id;      /* persistent */
    };
};

/* Parses one pickle. Time and memory are linear in size. A global by which a pickle could run code
 * (os.system and its kin) is refused at once. err gets the byte position within data. */
enum plumb_code pickle_parse(const uint8_t *data, size_t size, struct arena *arena,
                             struct pickle_value **root, struct plumb_error *err);

/* Is the value the string text? */
bool pickle_is_str(const struct pickle_value *value, const char *text);

/* Is the value the global name ("module.name")? */
bool pickle_is_global(const struct pickle_value *value, const char *name);

#endif
