/* The stack and the memo of the pickle machine. */
#include "format/pickle_machine.h"

#include <stdlib.h>
#include <string.h>

enum plumb_code pickle_no_memory(struct pickle_machine *m)
{
    return plumb_no_memory(m->err);
}

enum plumb_code pickle_damaged(struct pickle_machine *m, const char *what)
{
    return plumb_fail_at(m->err, PLUMB_E_FORMAT, m->start, "%s", what);
}

const uint8_t *pickle_take(struct pickle_machine *m, uint64_t n)
{
    if (n > m->size - m->at)
        return NULL;
    const uint8_t *bytes = m->data + m->at;
    m->at += (size_t)n;
    return bytes;
}

bool pickle_take_number(struct pickle_machine *m, size_t width, uint64_t *number)
{
    const uint8_t *bytes = pickle_take(m, width);
    *number = 0;
    for (size_t i = 0; bytes && i < width; i++)
        *number |= (uint64_t)bytes[i] << 8 * i;
    return bytes;
}

bool pickle_reserve(struct pickle_stack *values, size_t count)
{
    if (count <= values->capacity)
        return true;
    size_t capacity = values->capacity ? values->capacity : 64;
    while (capacity < count)
        capacity *= 2;
    struct pickle_value **at = realloc(values->at, capacity * sizeof(struct pickle_value *));
    if (!at)
        return false;
    values->at = at;
    values->capacity = capacity;
    return true;
}

enum plumb_code pickle_push(struct pickle_machine *m, struct pickle_value *value)
{
    if (!pickle_reserve(&m->stack, m->stack.count + 1))
        return pickle_no_memory(m);
    m->stack.at[m->stack.count++] = value;
    return PLUMB_OK;
}

struct pickle_value *pickle_top(const struct pickle_machine *m)
{
    return m->stack.count ? m->stack.at[m->stack.count - 1] : NULL;
}

struct pickle_value *pickle_pop(struct pickle_machine *m)
{
    struct pickle_value *value = pickle_top(m);
    if (value)
        m->stack.count--;
    return value;
}

bool pickle_pop_mark(struct pickle_machine *m, struct pickle_value ***values, size_t *count)
{
    size_t i = m->stack.count;
    while (i && m->stack.at[i - 1])
        i--;
    if (!i)
        return false;
    *values = m->stack.at + i;
    *count = m->stack.count - i;
    m->stack.count = i - 1;
    return true;
}

struct pickle_value *pickle_new(struct pickle_machine *m, enum pickle_kind kind)
{
    m->made++;
    struct pickle_value *value = arena_alloc(m->arena, sizeof *value);
    if (value) {
        value->kind = (uint8_t)kind;
        value->offset = m->start;
    }
    return value;
}

enum plumb_code pickle_push_new(struct pickle_machine *m, enum pickle_kind kind,
                                struct pickle_value **out)
{
    *out = pickle_new(m, kind);
    return *out ? pickle_push(m, *out) : pickle_no_memory(m);
}

bool pickle_extend(struct pickle_machine *m, struct pickle_items *items,
                   struct pickle_value **values, size_t count)
{
    if (count > items->capacity - items->count) {
        size_t capacity = (size_t)items->capacity * 2;
        if (capacity < items->count + count)
            capacity = items->count + count;
        if (capacity > UINT32_MAX)
            return false;
        struct pickle_value **at = arena_array(m->arena, capacity, sizeof(struct pickle_value *));
        if (!at)
            return false;
        if (items->count)
            memcpy(at, items->at, items->count * sizeof(struct pickle_value *));
        items->at = at;
        items->capacity = (uint32_t)capacity;
    }
    if (count)
        memcpy(items->at + items->count, values, count * sizeof(struct pickle_value *));
    items->count += (uint32_t)count;
    return true;
}
