/* Names of GE files, FX files, rank folders and graph texts, taken apart. */
#define _GNU_SOURCE
#include "pair/graph_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MIN_TIMESTAMP = 13 };

int64_t number_of(const char *text, size_t length)
{
    int64_t value = 0;
    if (!length || length > 18)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

struct field {
    const char *text;
    size_t length;
};

/* The last `most` fields of a name, last first. Returns how many fields the whole name has. */
static size_t split_tail(const char *name, struct field *tail, size_t most)
{
    size_t count = 0;
    const char *end = name + strlen(name);
    for (;;) {
        const char *dot = memrchr(name, '.', (size_t)(end - name));
        const char *begin = dot ? dot + 1 : name;
        if (count < most)
            tail[count] = (struct field){begin, (size_t)(end - begin)};
        count++;
        if (!dot)
            return count;
        end = dot;
    }
}

static bool is_number(const struct field *field)
{
    return number_of(field->text, field->length) >= 0;
}

static bool is_timestamp(const struct field *field)
{
    return field->length >= MIN_TIMESTAMP && is_number(field);
}

bool ge_name_parse(const char *name, struct ge_name *parts)
{
    struct field tail[8]; /* the last field first */
    size_t count = split_tail(name, tail, 8);
    const char *dot = strchr(name, '.');
    if (count < 4)
        return false;
    bool ffts = count >= 8 && !is_timestamp(&tail[0]) && is_timestamp(&tail[4]);
    for (size_t i = 0; i < 4; i++)
        ffts = ffts && is_number(&tail[i]);
    size_t skip = ffts ? 4 : 0; /* fields behind the timestamp */
    if (!is_timestamp(&tail[skip]) || !is_number(&tail[skip + 1]))
        return false;
    /* Older files have no stream id. */
    bool stream = count - skip >= 5 && is_number(&tail[skip + 2]);
    size_t numbers = skip + (stream ? 3 : 2); /* fields behind the name */
    if (count < numbers + 2)
        return false;
    const struct field *behind = &tail[numbers - 1];
    parts->type_length = (size_t)(dot - name);
    parts->op = dot + 1;
    parts->op_length = (size_t)(behind->text - 1 - parts->op);
    parts->timestamp = tail[skip].text;
    parts->timestamp_length = tail[skip].length;
    return true;
}

/* A number and the dot behind it. */
static bool take_number(const char **text, uint64_t *value)
{
    size_t length = strcspn(*text, ".");
    int64_t number = number_of(*text, length);
    if (number < 0 || !(*text)[length])
        return false;
    *value = (uint64_t)number;
    *text += length + 1;
    return true;
}

bool fx_name_parse(const char *name, struct fx_name *parts)
{
    static const char input[] = ".INPUT.", output[] = ".OUTPUT.";
    static const char condensed[] = ".condensed.json";
    size_t length = strlen(name);
    if (length > sizeof condensed && strcmp(name + length - sizeof condensed + 1, condensed) == 0)
        length -= sizeof condensed - 1;
    if (length < 4 || memcmp(name + length - 4, ".npy", 4) != 0)
        return false;
    const char *at = strstr(name, input);
    parts->input = at != NULL;
    if (!at)
        at = strstr(name, output);
    if (!at)
        return false;
    parts->stamp = memrchr(name, '.', length - 4);
    parts->stamp = parts->stamp ? parts->stamp + 1 : name;
    size_t digits = strspn(parts->stamp, "0123456789");
    parts->timed = digits >= MIN_TIMESTAMP && parts->stamp + digits == name + length - 4;
    parts->key_length = (size_t)(at - name);
    parts->index = parts->inner = 0;
    const char *rest = at + (parts->input ? sizeof input : sizeof output) - 1;
    uint64_t inner;
    if (take_number(&rest, &parts->index)) {
        /* What follows is the index inside a list when something numeric still comes behind it. */
        const char *after = rest;
        if (take_number(&after, &inner) && after != name + length - 3)
            parts->inner = inner;
    }
    return true;
}

int64_t rank_of_folder(const char *name)
{
    if (strncmp(name, "worldsize", 9) != 0)
        return -1;
    const char *last = NULL;
    for (const char *at = name; (at = strstr(at, "rank")); at += 4)
        last = at;
    return last ? number_of(last + 4, strlen(last + 4)) : -1;
}

bool graph_name_parse(const char *name, int64_t rank, uint64_t *id)
{
    static const char prefix[] = "dynamo_original_graph_";
    size_t length = strlen(name);
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || length < 4 ||
        strcmp(name + length - 4, ".txt") != 0)
        return false;
    char wanted[40];
    snprintf(wanted, sizeof wanted, "rank_%" PRId64 "_", rank);
    if (rank >= 0 && !strstr(name, wanted))
        return false;
    const char *digits = name + strcspn(name, "0123456789");
    size_t count = strspn(digits, "0123456789");
    int64_t number = number_of(digits, count < 18 ? count : 18);
    *id = number < 0 ? 0 : (uint64_t)number;
    return count > 0;
}

int64_t rank_of_graph(const char *name)
{
    const char *at = strstr(name, "_rank_");
    at = at ? at + 6 : "";
    return number_of(at, strspn(at, "0123456789"));
}

static char spell_char(char c)
{
    return c == '.' || c == '/' || c == '\\' || c == ' ' ? '_' : c;
}

void ge_name_spell(char *name)
{
    for (; *name; name++)
        *name = spell_char(*name);
}

bool ge_name_same(const char *a, const char *b)
{
    while (*a && spell_char(*a) == spell_char(*b))
        a++, b++;
    return !*a && !*b;
}
