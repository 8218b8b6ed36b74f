/* What the parts of the reader of one call share. */
#ifndef DUMP_CALL_PARSE_H
#define DUMP_CALL_PARSE_H

#include "base/json.h"
#include "dump/call_file.h"

/* Far more than any call has; they bound memory and time for a hostile file. */
enum { CASE_MAX_ITEMS = 1 << 18, CASE_MAX_KWARGS = 1024, CASE_MAX_OUTPUTS = 1024 };

struct case_parser {
    struct json json;
    uint64_t base; /* of the entry in the file */
    struct arena *arena;
    struct plumb_error *err;
    size_t items;
    unsigned depth;
};

enum case_type {
    TYPE_NONE,
    TYPE_PLAIN, /* whatever its value is */
    TYPE_FLOAT,
    TYPE_TENSOR,
    TYPE_SLICE,
    TYPE_COMPLEX,
    TYPE_ELLIPSIS,
    TYPE_SIZE,
    TYPE_DTYPE,
    TYPE_DEVICE,
    TYPE_MEMORY_FORMAT,
    TYPE_NDARRAY,
};

/* What an object with a type says, as far as it was there. */
struct case_fields {
    enum case_type type;
    bool numpy, has_value, has_shape;
    bool spread;  /* a part of a tensor that several processes have together */
    bool batched; /* by vmap: the call saw one of these at a time */
    const char *type_text, *dtype, *data_name, *datapath;
    struct case_arg value;
    struct case_limit min, max, min_finite, max_finite;
    bool requires_grad, uninitialised;
    struct json shape; /* before its value */
};

/* What is wrong with the value that was just read, where the JSON is damaged, and so on. All return
 * the code. */
enum plumb_code case_fail(const struct case_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum plumb_code case_damaged(const struct case_parser *p);
enum plumb_code case_no_memory(const struct case_parser *p);

/* Skips the value that event belongs to. */
enum plumb_code case_skip(struct case_parser *p, enum json_event event);

/* The last key or string; as written when what it means cannot be a C string. */
enum plumb_code case_text(struct case_parser *p, const char **out);

/* Room for one more element behind count, for arrays that are grown by nothing else. NULL when out
 * of memory. */
void *case_grow(struct case_parser *p, void *items, size_t count, size_t size);

/* One more list, or one list less, around what follows. Fails when there are too many. */
enum plumb_code case_enter(struct case_parser *p);
void case_leave(struct case_parser *p);

/* One more argument. Fails when there are too many. */
enum plumb_code case_count_item(struct case_parser *p);

/* Reads the value that begins with event into an element of a list. */
typedef enum plumb_code case_reader(struct case_parser *p, enum json_event event, void *out);

/* Elements of whatever a reader makes, so many bytes each. */
struct case_list {
    void *items;
    size_t count, size;
};

/* The rest of an array, element by element; list->size is set. */
enum plumb_code case_items(struct case_parser *p, case_reader *read, struct case_list *list);

/* A value as JSON has it, a struct case_arg: descriptions of tensors are not understood. */
case_reader case_plain;

/* True when the last number is written without point and exponent. */
bool case_is_integer(const struct json *json);

/* The rest of an object with a type, and the argument that it stands for. */
enum plumb_code case_fields(struct case_parser *p, struct case_fields *out);
enum plumb_code case_object(struct case_parser *p, const struct case_fields *fields,
                            struct case_arg *out);

/* Both: the rest of an object with a type as an argument. */
enum plumb_code case_typed(struct case_parser *p, struct case_arg *out);

#endif
