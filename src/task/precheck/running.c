/* Which calls a check has under way. */
#define _GNU_SOURCE
#include "task/precheck/running.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 48, BOOT = 37 }; /* bytes; every line has the same number of them */

/* Counts of kills of another boot say nothing. */
static void read_boot(char boot[BOOT])
{
    boot[0] = '\0';
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file || fscanf(file, "%36s", boot) != 1)
        boot[0] = '\0';
    if (file)
        fclose(file);
}

static bool set_path(char *path, size_t size, const char *result_path)
{
    const int length = snprintf(path, size, "%s.running", result_path);
    return length > 0 && (size_t)length < size;
}

static void write_line(int fd, unsigned line, const char *text)
{
    char padded[LINE + 1];
    snprintf(padded, sizeof padded, "%-*.*s\n", LINE - 1, LINE - 1, text);
    if (fd >= 0 && pwrite(fd, padded, LINE, (off_t)line * LINE) != LINE)
        return; /* on a full disk, which journals tell */
}

void running_create(struct running *running, const char *result_path)
{
    running->fd = -1;
    if (!set_path(running->path, sizeof running->path, result_path))
        return;
    char boot[BOOT], kills[LINE];
    read_boot(boot);
    unlink(running->path);
    running->fd = open(running->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    snprintf(kills, sizeof kills, "%llu", (unsigned long long)memory_kills());
    write_line(running->fd, 0, boot);
    write_line(running->fd, 1, kills);
}

void running_note(const struct running *running, unsigned thread, size_t call, uint64_t bytes)
{
    char text[LINE];
    snprintf(text, sizeof text, "%llu %llu", (unsigned long long)call, (unsigned long long)bytes);
    write_line(running->fd, thread + 2, text);
}

void running_remove(struct running *running)
{
    if (running->fd < 0)
        return;
    close(running->fd);
    unlink(running->path);
    running->fd = -1;
}

/* Takes a number from the text, which moves behind it. */
static bool take_number(char **text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(*text, &end, 10);
    const bool taken = end != *text && !errno;
    *text = end;
    return taken;
}

bool running_killer(const char *result_path, size_t *call)
{
    char path[4096], boot[BOOT], line[LINE + 2], was[BOOT] = "", *at;
    uint64_t kills, number, bytes, most = 0;
    bool found = false;
    FILE *file = set_path(path, sizeof path, result_path) ? fopen(path, "re") : NULL;
    if (!file)
        return false;
    read_boot(boot);
    const bool known = fgets(line, sizeof line, file) && sscanf(line, "%36s", was) == 1 &&
                       strcmp(was, boot) == 0 && (at = fgets(line, sizeof line, file)) &&
                       take_number(&at, &kills) && kills != memory_kills();
    while (known && (at = fgets(line, sizeof line, file)))
        if (take_number(&at, &number) && take_number(&at, &bytes) && (!found || bytes > most)) {
            found = true;
            most = bytes;
            *call = (size_t)number;
        }
    fclose(file);
    return found;
}
