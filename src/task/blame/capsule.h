/* A capsule in the making. */
#ifndef BLAME_CAPSULE_H
#define BLAME_CAPSULE_H

#include "task/blame/parts.h"

#include "dump/dump.h"

struct capsule {
    const char *folder; /* in the making */
    const struct dump_tree *tree;
    const struct case_file *file;
    size_t call;
    bool aten;        /* of a dump of operators */
    const char *data; /* what the folder of data files is called there */
    struct arena arena;
    struct map copied;   /* names of data files */
    struct map expected; /* names of files of what was expected */
    const char *source;  /* the line of the program that led to it, or NULL */
    struct buf said;     /* of the call, a line per direction */
};

/* The folder of references and their noise; the seed that the noise is measured with. */
#define EXPECTED "expected"
enum { CAPSULE_SEED = 1234 };

/* Writes a text into its folder, and frees it. */
enum plumb_code capsule_save(const struct capsule *c, const char *name, struct buf *text,
                             struct plumb_error *err);

/* Writes what was expected, and what is to be said of the call. */
enum plumb_code capsule_facts(struct capsule *c, struct plumb_error *err);

#endif
