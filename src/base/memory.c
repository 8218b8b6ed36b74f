/* How much memory there is for this process. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/plain.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number that a text begins with; `none` when it begins with none that fits. */
static uint64_t leading_number(const char *text, uint64_t none)
{
    errno = 0;
    const unsigned long long number = strtoull(text, NULL, 10);
    return isdigit((unsigned char)*text) && !errno ? number : none;
}

/* The number in a file of one line; UINT64_MAX when there is none ("max", no such file). */
static uint64_t read_number(const char *path)
{
    char line[64] = "";
    FILE *file = fopen(path, "re");
    const bool read = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    return read ? leading_number(line, UINT64_MAX) : UINT64_MAX;
}

/* The least limit of the group and those above it. Inside a container the path may be that of the
 * host, of which only the end, the root, is there. */
static uint64_t least_above(const char *root, const char *group, size_t length, const char *file)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char path[PATH_MAX];
        const int size = snprintf(path, sizeof path, "%s%.*s/%s", root, (int)length, group, file);
        const uint64_t limit = size < (int)sizeof path ? read_number(path) : UINT64_MAX;
        least = limit < least ? limit : least;
        if (!length)
            return least;
        while (length && group[--length] != '/')
            ;
    }
}

static bool has_word(const char *list, size_t length, const char *word)
{
    const size_t size = strlen(word);
    for (size_t at = 0; at + size <= length; at++)
        if (strncmp(list + at, word, size) == 0 && (at == 0 || list[at - 1] == ',') &&
            (at + size == length || list[at + size] == ','))
            return true;
    return false;
}

uint64_t memory_group_limit(const char *groups, const char *root)
{
    uint64_t least = UINT64_MAX;
    while (*groups) {
        /* "4:memory:/path" of the first version, "0::/path" of the second */
        const size_t line = strcspn(groups, "\n");
        const char *kinds = memchr(groups, ':', line);
        const char *path =
            kinds ? memchr(kinds + 1, ':', line - (size_t)(kinds + 1 - groups)) : NULL;
        if (path && ++kinds) {
            const size_t length = line - (size_t)(++path - groups);
            char mount[PATH_MAX];
            snprintf(mount, sizeof mount, "%s/memory", root);
            uint64_t limit = UINT64_MAX;
            if (kinds + 1 == path)
                limit = least_above(root, path, length, "memory.max");
            else if (has_word(kinds, (size_t)(path - 1 - kinds), "memory"))
                limit = least_above(mount, path, length, "memory.limit_in_bytes");
            least = limit < least ? limit : least;
        }
        groups += line + (groups[line] == '\n');
    }
    return least;
}

static uint64_t ask_total(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    const uint64_t machine =
        pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : (uint64_t)4 << 30;
    char groups[16384] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file) {
        groups[fread(groups, 1, sizeof groups - 1, file)] = '\0';
        fclose(file);
    }
    const uint64_t limit = memory_group_limit(groups, "/sys/fs/cgroup");
    return limit < machine ? limit : machine;
}

uint64_t memory_total(void)
{
    static _Atomic uint64_t known; /* operators ask once a call */
    uint64_t total = atomic_load(&known);
    if (!total) {
        total = ask_total();
        atomic_store(&known, total);
    }
    return total;
}

uint64_t memory_default(void)
{
    return memory_total() / 4 * 3;
}

uint64_t memory_kills(void)
{
    static const char key[] = "oom_kill ";
    FILE *file = fopen("/proc/vmstat", "re");
    char line[128];
    uint64_t kills = 0;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, sizeof key - 1) == 0)
            kills = leading_number(line + sizeof key - 1, 0);
    if (file)
        fclose(file);
    return kills;
}

bool memory_parse(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    double size = plain_number(text, &end);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        for (const char *k = units; k <= unit; k++)
            size *= 1024;
        end++;
        if (*end == 'i')
            end++;
    }
    if (*end == 'B' && unit)
        end++;
    if (*end || !(size >= 1 && size < 0x1p63))
        return false;
    *bytes = (uint64_t)size;
    return true;
}
