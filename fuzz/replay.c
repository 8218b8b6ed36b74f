/* Runs a fuzz target over the files it is given (folders: over the files in them), in the sanitizer
 * build of `make test`. Prints how many there were. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, size_t size)
{
    /* Exactly as large as the file, so that one byte too far is seen. */
    uint8_t *data = malloc(size ? size : 1);
    FILE *stream = fopen(path, "rb");
    int status = -1;
    if (data && stream && fread(data, 1, size, stream) == size) {
        LLVMFuzzerTestOneInput(data, size);
        status = 0;
    }
    if (status)
        fprintf(stderr, "replay: cannot read %s\n", path);
    if (stream)
        fclose(stream);
    free(data);
    return status;
}

static int replay_folder(const char *path, size_t *count)
{
    struct dirent **entries;
    int found = scandir(path, &entries, NULL, alphasort), status = 0;
    if (found < 0) {
        fprintf(stderr, "replay: cannot list %s\n", path);
        return -1;
    }
    for (int i = 0; i < found; i++) {
        char name[4096];
        struct stat info;
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (!stat(name, &info) && S_ISREG(info.st_mode)) {
            status |= replay_file(name, (size_t)info.st_size);
            ++*count;
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    int status = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info)) {
            fprintf(stderr, "replay: no such file or folder: %s\n", argv[i]);
            status = -1;
        } else if (S_ISDIR(info.st_mode)) {
            status |= replay_folder(argv[i], &count);
        } else {
            status |= replay_file(argv[i], (size_t)info.st_size);
            count++;
        }
    }
    printf("%zu inputs\n", count);
    return status || !count ? 1 : 0;
}
