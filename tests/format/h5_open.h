/* An HDF5 file, listed, for tests. */
#ifndef TESTS_FORMAT_H5_OPEN_H
#define TESTS_FORMAT_H5_OPEN_H

#include "format/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct h5_open {
    struct arena arena;
    struct listing listing;
    struct plumb_file file;
    char path[4096];
};

static inline enum plumb_code h5_open_path(struct h5_open *open, const char *path,
                                           struct plumb_error *err)
{
    memset(open, 0, sizeof *open);
    snprintf(open->path, sizeof open->path, "%s", path);
    enum plumb_code code = plumb_file_map(&open->file, open->path, 0, UINT64_MAX, err);
    if (code)
        return code;
    open->listing.arena = &open->arena;
    open->listing.path = open->path;
    return format_list(&format_hdf5, &open->listing, &open->file, err);
}

static inline void h5_open_close(struct h5_open *open)
{
    plumb_file_unmap(&open->file);
    arena_free(&open->arena);
}

/* The fixture tests/data/hdf5/NAME. */
static inline const char *h5_fixture(const char *name, char *path, size_t size)
{
    const char *data = getenv("PLUMB_TEST_DATA");
    snprintf(path, size, "%s/hdf5/%s", data ? data : "tests/data", name);
    return path;
}

static inline const struct plumb_record *h5_find(const struct h5_open *open, const char *name)
{
    for (size_t i = 0; i < open->listing.count; i++)
        if (strcmp(open->listing.records[i].name, name) == 0)
            return &open->listing.records[i];
    return NULL;
}

static inline enum plumb_code h5_load(const struct h5_open *open, const struct plumb_record *record,
                                      struct plumb_payload *payload, struct plumb_error *err)
{
    return format_load(&format_hdf5, record, open->file.file_size, open->file.mtime_ns, NULL,
                       payload, err);
}

#endif
