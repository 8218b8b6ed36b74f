/* Calls written down so that equal ones have equal bytes. */
#include "task/precheck/form.h"

#include "dump/call_parse.h"
#include "dump/python.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Which keys of an object are left out. */
enum leave { LEAVE_NOTHING, LEAVE_LIMITS, LEAVE_VALUES };

static bool is_left_out(const struct json *json, enum leave leave)
{
    static const char *const names[] = {
        "Max", "Min",       "Mean",     "Norm", "Max_except_inf_nan", "Min_except_inf_nan",
        "md5", "data_name", "datapath",
    };
    size_t count = leave == LEAVE_NOTHING  ? 0
                   : leave == LEAVE_LIMITS ? 2
                                           : sizeof names / sizeof names[0];
    for (size_t i = 0; i < count; i++)
        if (json_is(json, names[i]))
            return true;
    return false;
}

/* Length and bytes, so that nothing inside can be taken for the end. */
static void put_text(struct form *f)
{
    size_t start = f->text.size, length = 0;
    buf_append(&f->text, &length, sizeof length);
    python_string(&f->json, &f->text);
    if (f->text.failed)
        return;
    length = f->text.size - start - sizeof length;
    memcpy(f->text.data + start, &length, sizeof length);
}

/* Numbers are equal when their values are, and NaN is equal to NaN. */
static void put_number(struct form *f, double value)
{
    value = isnan(value) ? NAN : value + 0.0; /* -0 becomes 0 */
    buf_append(&f->text, "n", 1);
    buf_append(&f->text, &value, sizeof value);
}

static void put_json_number(struct form *f)
{
    int64_t integer;
    double value = json_double(&f->json);
    bool exact =
        fabs(value) < 0x1p53 || !case_is_integer(&f->json) ||
        (fabs(value) < 0x1p63 && json_int64(&f->json, &integer) && (int64_t)value == integer);
    if (exact) {
        put_number(f, value);
    } else { /* a double would not tell it from its neighbours */
        buf_append(&f->text, "i", 1);
        put_text(f);
    }
}

static int compare_members(const char *text, const struct member *a, const struct member *b)
{
    size_t m = a->value - a->start, n = b->value - b->start;
    int order = memcmp(text + a->start, text + b->start, m < n ? m : n);
    return order ? order : (m > n) - (m < n);
}

/* Objects have few keys; those with many are sorted all the same, by merging. */
static void sort_members(const char *text, struct member *members, struct member *spare,
                         size_t count)
{
    if (count < 2)
        return;
    size_t half = count / 2, i = 0, j = half, n = 0;
    sort_members(text, members, spare, half);
    sort_members(text, members + half, spare, count - half);
    while (i < half || j < count) {
        bool left =
            j == count || (i < half && compare_members(text, &members[i], &members[j]) <= 0);
        spare[n++] = members[left ? i++ : j++];
    }
    memcpy(members, spare, count * sizeof *members);
}

/* Puts the members from number `first` on into order; of those with one key the last counts. */
static void order_members(struct form *f, size_t first, size_t start)
{
    size_t count = f->n_members - first;
    struct member *members = f->members + first;
    struct member *spare = malloc((count ? count : 1) * sizeof *spare);
    if (!spare) {
        f->no_memory = true;
        return;
    }
    sort_members(f->text.data, members, spare, count);
    free(spare);
    f->sorted.size = 0;
    for (size_t i = 0; i < count; i++) {
        const struct member *m = &members[i];
        if (i + 1 == count || compare_members(f->text.data, m, &members[i + 1]) != 0)
            buf_append(&f->sorted, f->text.data + m->start, m->end - m->start);
    }
    if (f->sorted.size)
        memcpy(f->text.data + start, f->sorted.data, f->sorted.size);
    f->text.size = start + f->sorted.size;
    f->n_members = first;
}

static bool add_member(struct form *f, struct member member)
{
    if (f->n_members == f->capacity) {
        size_t capacity = f->capacity ? f->capacity * 2 : 64;
        struct member *members = realloc(f->members, capacity * sizeof *members);
        if (!members) {
            f->no_memory = true;
            return false;
        }
        f->members = members;
        f->capacity = capacity;
    }
    f->members[f->n_members++] = member;
    return true;
}

static bool put_value(struct form *f, enum json_event event, enum leave leave);

static bool put_object(struct form *f, enum leave leave)
{
    size_t first = f->n_members, start = f->text.size;
    /* Only descriptions have statistics; a dictionary may have keys of these names. */
    struct json peek = f->json;
    if (json_next(&peek) != JSON_KEY || !json_is(&peek, "type"))
        leave = leave == LEAVE_LIMITS ? LEAVE_LIMITS : LEAVE_NOTHING;
    enum leave inside = f->by_objects ? LEAVE_NOTHING : LEAVE_VALUES;
    enum json_event event;
    while ((event = json_next(&f->json)) == JSON_KEY) {
        if (is_left_out(&f->json, leave)) {
            if (!json_skip(&f->json, JSON_KEY))
                return false;
            continue;
        }
        struct member member = {.start = f->text.size};
        put_text(f);
        member.value = f->text.size;
        if (!put_value(f, json_next(&f->json), inside))
            return false;
        member.end = f->text.size;
        if (f->text.failed || !add_member(f, member))
            return false;
    }
    order_members(f, first, start);
    return event == JSON_OBJECT_END && !f->no_memory;
}

/* The value that begins with event. False when it is damaged, nested too deeply, or there is no
 * memory. */
static bool put_value(struct form *f, enum json_event event, enum leave leave)
{
    bool good = true;
    switch (event) {
    case JSON_ERROR:
        return false;
    case JSON_STRING:
        buf_append(&f->text, "s", 1);
        put_text(f);
        return true;
    case JSON_NUMBER:
        put_json_number(f);
        return true;
    case JSON_TRUE:
    case JSON_FALSE: /* true is 1, as in Python */
        put_number(f, event == JSON_TRUE);
        return true;
    case JSON_ARRAY:
    case JSON_OBJECT:
        if (f->depth == CASE_MAX_NESTING)
            return false;
        f->depth++;
        buf_append(&f->text, event == JSON_ARRAY ? "[" : "{", 1);
        if (event == JSON_OBJECT)
            good = put_object(f, leave);
        else
            while (good && (event = json_next(&f->json)) != JSON_ARRAY_END)
                good = put_value(f, event, leave);
        buf_append(&f->text, "]", 1);
        f->depth--;
        return good;
    default:
        buf_append(&f->text, "z", 1);
        return true;
    }
}

static bool put_args(struct form *f)
{
    enum json_event event = json_next(&f->json);
    if (!f->by_objects)
        return put_value(f, event, LEAVE_VALUES);
    if (event != JSON_ARRAY)
        return false;
    while ((event = json_next(&f->json)) != JSON_ARRAY_END) {
        if (event == JSON_OBJECT ? !put_value(f, event, LEAVE_LIMITS) : !json_skip(&f->json, event))
            return false;
    }
    return true;
}

bool form_call(struct form *f, const struct case_file *file, size_t i)
{
    const struct case_place *place = &file->places[i];
    const char *number = strrchr(place->name, '.');
    size_t group = number ? (size_t)(number - place->name) : strlen(place->name);
    bool has_args = false, has_kwargs = false;
    f->text.size = f->n_members = f->depth = 0;
    buf_append(&f->text, place->name, group);
    buf_append(&f->text, f->by_objects || !place->backward_size ? "\0f" : "\0b", 2);

    json_init(&f->json, file->bytes + place->forward, (size_t)place->forward_size);
    enum json_event event = json_next(&f->json);
    if (event != JSON_OBJECT)
        return false;
    /* Both come in this order from every writer; elsewhere, or twice, they are only not seen to be
     * equal. */
    while ((event = json_next(&f->json)) == JSON_KEY) {
        bool args = json_is(&f->json, "input_args");
        bool good;
        if (args || json_is(&f->json, "input_kwargs")) {
            has_args |= args;
            has_kwargs |= !args;
            buf_append(&f->text, args ? "a" : "k", 1);
            good = args ? put_args(f)
                        : put_value(f, json_next(&f->json),
                                    f->by_objects ? LEAVE_NOTHING : LEAVE_VALUES);
        } else {
            good = json_skip(&f->json, JSON_KEY);
        }
        if (!good)
            return false;
    }
    return event == JSON_OBJECT_END && !form_failed(f) &&
           (!f->by_objects || (has_args && has_kwargs));
}

bool form_failed(const struct form *form)
{
    return form->no_memory || form->text.failed || form->sorted.failed;
}

void form_free(struct form *form)
{
    buf_free(&form->text);
    buf_free(&form->sorted);
    free(form->members);
}
