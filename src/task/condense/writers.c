/* Looking through /proc for writers: descriptors, and shared mappings. */
#define _GNU_SOURCE
#include "task/condense/writers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_number(const char *text)
{
    for (; *text; text++)
        if (*text < '0' || *text > '9')
            return false;
    return true;
}

enum { GONE = -1, UNREADABLE = -2 };

/* How a descriptor was opened, or one of the above. */
static long open_flags(int process, const char *descriptor)
{
    char name[64], line[128];
    long flags = GONE;
    snprintf(name, sizeof name, "fdinfo/%.20s", descriptor);
    int fd = openat(process, name, O_RDONLY | O_CLOEXEC);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");
    if (!stream) {
        if (fd >= 0)
            close(fd);
        return fd < 0 ? GONE : UNREADABLE;
    }
    while (flags < 0 && fgets(line, sizeof line, stream))
        if (strncmp(line, "flags:", 6) == 0)
            flags = (long)strtoul(line + 6, NULL, 8);
    fclose(stream);
    return flags;
}

static enum writers look_at_descriptors(int process, const struct stat *file)
{
    int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        enum writers answer = errno == ENOENT || errno == ESRCH ? WRITERS_NONE : WRITERS_UNKNOWN;
        if (fd >= 0)
            close(fd);
        return answer;
    }
    enum writers answer = WRITERS_NONE;
    for (struct dirent *entry; answer == WRITERS_NONE && (entry = readdir(dir));) {
        struct stat st;
        if (entry->d_name[0] == '.' || fstatat(fd, entry->d_name, &st, 0) != 0 ||
            st.st_dev != file->st_dev || st.st_ino != file->st_ino)
            continue;
        long flags = open_flags(process, entry->d_name);
        if (flags == UNREADABLE)
            answer = WRITERS_UNKNOWN;
        else if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY)
            answer = WRITERS_SOME;
    }
    closedir(dir);
    return answer;
}

/* A shared mapping goes on writing after its descriptor was closed. Devices are shown differently
 * by some file systems, so the inode alone decides: a coincidence costs some waiting. Some
 * processes show their descriptors but not their mappings; those are believed. */
static enum writers look_at_mappings(int process, const struct stat *file)
{
    int fd = openat(process, "maps", O_RDONLY | O_CLOEXEC);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");
    if (!stream) {
        if (fd >= 0)
            close(fd);
        return fd < 0 ? WRITERS_NONE : WRITERS_UNKNOWN;
    }
    bool found = false;
    char *line = NULL, permissions[8], inode[24];
    size_t room = 0;
    while (!found && getline(&line, &room, stream) > 0)
        found = sscanf(line, "%*s %4s %*s %*s %20s", permissions, inode) == 2 &&
                permissions[1] == 'w' && permissions[3] == 's' &&
                strtoull(inode, NULL, 10) == file->st_ino;
    bool unread = !found && !feof(stream) && !ferror(stream); /* getline had no memory */
    free(line);
    fclose(stream);
    return found ? WRITERS_SOME : unread ? WRITERS_UNKNOWN : WRITERS_NONE;
}

static enum writers look_at_process(int processes, const char *id, const struct stat *file)
{
    struct stat st;
    int process = openat(processes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process < 0)
        return WRITERS_NONE; /* ended meanwhile */
    enum writers answer = look_at_descriptors(process, file);
    if (answer == WRITERS_NONE)
        answer = look_at_mappings(process, file);
    /* Who writes a file, owns it: processes of others need not be seen. */
    if (answer == WRITERS_UNKNOWN && fstat(process, &st) == 0 && st.st_uid != file->st_uid)
        answer = WRITERS_NONE;
    close(process);
    return answer;
}

enum writers writers_of(const struct stat *file)
{
    DIR *dir = opendir("/proc");
    if (!dir)
        return WRITERS_UNKNOWN;
    enum writers answer = WRITERS_NONE;
    for (struct dirent *entry; answer != WRITERS_SOME && (entry = readdir(dir));) {
        if (!is_number(entry->d_name))
            continue;
        enum writers one = look_at_process(dirfd(dir), entry->d_name, file);
        if (one != WRITERS_NONE)
            answer = one;
    }
    closedir(dir);
    return answer;
}
