/* The map file: a line a pair of names, the target's first.
 *
 *     blocks.0.mlp.fc1.weight: visual.blocks.0.mlp.linear_fc1.weight
 *     "name, with comma",other.name
 *     # a comment; a tab separates as well */
#define _GNU_SOURCE
#include "base/map.h"
#include "pair/near.h"
#include "pair/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum plumb_code out_of_memory(struct plumb_error *err)
{
    return plumb_fail(err, PLUMB_E_NOMEM, "out of memory while reading the map file");
}

/* Takes a quoted name, a doubled quote standing for one. Returns where the rest begins, or NULL
 * when the quote does not end. */
static char *take_quoted(char *text, char **name)
{
    char quote = *text, *out = text;
    *name = text;
    for (const char *in = text + 1; *in; in++) {
        if (*in == quote && *++in != quote) {
            *out = '\0';
            return text + (in - text);
        }
        *out++ = *in;
    }
    return NULL;
}

static void trim_end(char *text)
{
    size_t length = strlen(text);
    while (length && strchr(" \t\r\n", text[length - 1]))
        length--;
    text[length] = '\0';
}

/* The separator after an unquoted name. Names may hold colons: one with a space after it goes
 * first. */
static char *find_separator(char *line)
{
    char *at = strchr(line, '\t');
    if (!at)
        at = strstr(line, ": ");
    if (!at)
        at = strchr(line, ',');
    return at ? at : strchr(line, ':');
}

/* Cuts a line into its two names, in place. False when that cannot be done. */
static bool cut_line(char *line, char *names[2])
{
    char *rest;
    if (*line == '"' || *line == '\'') {
        rest = take_quoted(line, &names[TARGET]);
        if (!rest)
            return false;
        rest += strspn(rest, " ");
        if (!*rest || !strchr(":,\t", *rest))
            return false;
    } else {
        rest = find_separator(line);
        if (!rest)
            return false;
        names[TARGET] = line;
        *rest = '\0';
        trim_end(line);
    }
    rest++;
    rest += strspn(rest, " \t");
    if (*rest == '"' || *rest == '\'') {
        rest = take_quoted(rest, &names[GOLDEN]);
        if (!rest)
            return false;
        rest += strspn(rest, " \t");
        if (*rest && *rest != '#')
            return false;
    } else {
        names[GOLDEN] = rest;
        char *comment = strstr(rest, " #");
        if (comment)
            *comment = '\0';
        trim_end(rest);
    }
    return *names[TARGET] && *names[GOLDEN];
}

/* What the lines ask for. */
struct mapping {
    struct map names[2]; /* of each run, to the first record that has it, + 1 */
    struct map lines[2]; /* names that were mapped, to the line that did */
    struct map goldens;  /* names of targets, to the golden record that they are mapped to */
};

static bool list_names(struct mapping *mapping, const struct matcher *matcher, int which)
{
    const struct match_side *side = &matcher->side[which];
    for (size_t i = 0; i < side->count; i++) {
        const char *name = side->records[i]->name;
        uint64_t *first = map_put(&mapping->names[which], name, strlen(name), NULL);
        if (!first)
            return false;
        if (!*first)
            *first = i + 1;
    }
    return true;
}

static enum plumb_code unknown_name(const struct mapping *mapping, const struct matcher *matcher,
                                    int which, const char *name, size_t line,
                                    struct plumb_error *err)
{
    static const char *const run[] = {"target", "golden"};
    if (map_get(&mapping->names[!which], name, strlen(name)))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: '%.150s' is a tensor of the %s run, not of the %s run; the "
                          "target's name comes first",
                          line, name, run[!which], run[which]);
    struct near near;
    if (!near_init(&near, matcher, which))
        return out_of_memory(err);
    size_t nearest = near_find(&near, name);
    if (nearest == PLUMB_NO_RECORD)
        plumb_fail(err, PLUMB_E_FORMAT, "line %zu: the %s run has no tensor '%.150s'", line,
                   run[which], name);
    else
        plumb_fail(err, PLUMB_E_FORMAT,
                   "line %zu: the %s run has no tensor '%.150s'; the nearest is '%.150s'", line,
                   run[which], name, matcher->side[which].records[nearest]->name);
    near_destroy(&near);
    return PLUMB_E_FORMAT;
}

static enum plumb_code add_line(struct mapping *mapping, struct matcher *matcher, char *text,
                                size_t line, struct plumb_error *err)
{
    char *names[2];
    trim_end(text);
    text += strspn(text, " \t");
    if (!*text || *text == '#')
        return PLUMB_OK;
    if (!cut_line(text, names))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: expected 'target name: golden name', or both separated by a "
                          "comma or a tab",
                          line);
    const char *kept[2] = {NULL,
                           NULL}; /* the same as the records spell them, to outlive the line */
    uint64_t first[2] = {0, 0};
    for (int which = TARGET; which <= GOLDEN; which++) {
        const uint64_t *known = map_get(&mapping->names[which], names[which], strlen(names[which]));
        if (!known)
            return unknown_name(mapping, matcher, which, names[which], line, err);
        first[which] = *known - 1;
        kept[which] = matcher->side[which].records[first[which]]->name;
        uint64_t *mapped_by =
            map_put(&mapping->lines[which], kept[which], strlen(kept[which]), NULL);
        if (!mapped_by)
            return out_of_memory(err);
        if (*mapped_by)
            return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: line %zu already maps '%.150s'", line,
                              (size_t)*mapped_by, kept[which]);
        *mapped_by = line;
    }
    uint64_t *golden = map_put(&mapping->goldens, kept[TARGET], strlen(kept[TARGET]), NULL);
    if (!golden)
        return out_of_memory(err);
    *golden = first[GOLDEN];
    return PLUMB_OK;
}

static enum plumb_code read_lines(struct mapping *mapping, struct matcher *matcher,
                                  const char *path, struct plumb_error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return plumb_fail(err, PLUMB_E_IO, "cannot open it: %s", strerror(errno));
    enum plumb_code code = PLUMB_OK;
    char *text = NULL;
    size_t capacity = 0, line = 0;
    ssize_t length;
    errno = 0;
    while (code == PLUMB_OK && (length = getline(&text, &capacity, file)) >= 0) {
        line++;
        size_t start = line == 1 && strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* a BOM */
        if (strlen(text) != (size_t)length)
            code =
                plumb_fail(err, PLUMB_E_FORMAT, "line %zu: not a text: there is a NUL in it", line);
        else
            code = add_line(mapping, matcher, text + start, line, err);
    }
    if (code == PLUMB_OK && !feof(file))
        code = errno == ENOMEM ? out_of_memory(err)
                               : plumb_fail(err, PLUMB_E_IO, "cannot read it: %s", strerror(errno));
    free(text);
    fclose(file);
    return code;
}

/* Of the target's, that of the golden record that a line gives it. */
static const char *mapped_name(const struct matcher *matcher, int which, size_t i,
                               const void *context)
{
    const struct mapping *mapping = context;
    const char *name = matcher->side[which].records[i]->name;
    if (!map_get(&mapping->lines[which], name, strlen(name)))
        return NULL;
    if (which == GOLDEN)
        return name;
    const uint64_t *golden = map_get(&mapping->goldens, name, strlen(name));
    return matcher->side[GOLDEN].records[*golden]->name;
}

enum plumb_code match_map_file(struct matcher *matcher, const char *path, struct plumb_error *err)
{
    enum plumb_code code;
    struct mapping mapping = {0};
    if (!list_names(&mapping, matcher, TARGET) || !list_names(&mapping, matcher, GOLDEN)) {
        code = out_of_memory(err);
        goto out;
    }
    code = read_lines(&mapping, matcher, path, err);
    if (code == PLUMB_OK && !match_by_names(matcher, mapped_name, &mapping, PLUMB_BY_MAP))
        code = out_of_memory(err);
out:
    if (code != PLUMB_OK)
        plumb_error_in_file(err, path);
    for (int which = TARGET; which <= GOLDEN; which++) {
        map_free(&mapping.names[which]);
        map_free(&mapping.lines[which]);
    }
    map_free(&mapping.goldens);
    return code;
}
