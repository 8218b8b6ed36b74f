/* A folder that a test fills and throws away. Include after cmocka.h; needs _GNU_SOURCE. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <dirent.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scratch {
    char folder[256];
    char path[1024]; /* what scratch_path returned last */
};

static inline void scratch_make(struct scratch *scratch)
{
    const char *base = getenv("TMPDIR");
    snprintf(scratch->folder, sizeof scratch->folder, "%s/plumb-test-XXXXXX",
             base ? base : P_tmpdir);
    assert_non_null(mkdtemp(scratch->folder));
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int type,
                                     struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void scratch_remove(struct scratch *scratch)
{
    nftw(scratch->folder, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *scratch_path(struct scratch *scratch, const char *name)
{
    snprintf(scratch->path, sizeof scratch->path, "%s/%s", scratch->folder, name);
    return scratch->path;
}

/* Writes a file, making the folders it lies in. */
static inline const char *scratch_write(struct scratch *scratch, const char *name,
                                        const void *bytes, size_t size)
{
    scratch_path(scratch, name);
    for (char *slash = scratch->path + strlen(scratch->folder) + 1; (slash = strchr(slash, '/'));) {
        *slash = '\0';
        mkdir(scratch->path, 0777);
        *slash++ = '/';
    }
    FILE *stream = fopen(scratch->path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
    return scratch->path;
}

/* Entries of the folder itself, hidden ones too. */
static inline int scratch_count(const struct scratch *scratch)
{
    DIR *dir = opendir(scratch->folder);
    assert_non_null(dir);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

#endif
