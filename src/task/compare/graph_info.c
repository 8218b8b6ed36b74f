/* What a GE dump file, or a folder of them, holds. */
#define _GNU_SOURCE
#include "base/buf.h"
#include "base/mapped.h"
#include "format/ge_debug.h"
#include "format/ge_file.h"
#include "pair/graph_tree.h"
#include "plumb/torchair.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_NAME, PART, DTYPE, SHAPE, ORIGINAL, FORMAT, BYTES, PROBLEM, COLUMNS };

struct lister {
    struct plumb_table *table;
    struct buf debug; /* decoded overflow information */
    const char *root; /* file names are shown relative to it; NULL: there is one file */
    size_t files, tensors, problems;
    bool failed;
};

bool plumb_ge_recognise(const char *path)
{
    struct mapped in;
    if (mapped_open(&in, path, NULL))
        return false;
    bool found = ge_probe_file(&in.file);
    return !mapped_close(&in, PLUMB_OK, NULL) && found;
}

static void put_dims(struct buf *text, const struct ge_dims *dims)
{
    buf_text(text, "[");
    for (unsigned i = 0; i < dims->rank; i++)
        buf_printf(text, "%s%llu", i ? ", " : "", (unsigned long long)dims->dim[i]);
    buf_text(text, "]");
}

static bool set_dims(struct plumb_table *table, size_t column, const struct ge_dims *dims)
{
    struct buf text = {0};
    put_dims(&text, dims);
    bool ok = !text.failed && plumb_table_text(table, column, text.data);
    buf_free(&text);
    return ok;
}

/* Relative to the folder that was asked for, or the last part of a file that was. */
static const char *shown_name(const struct lister *lister, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = lister->root ? strlen(lister->root) : 0;
    if (!lister->root)
        return slash ? slash + 1 : path;
    return strncmp(path, lister->root, length) == 0 && path[length] == '/' ? path + length + 1
                                                                           : path;
}

static void add_problem(struct lister *lister, const char *path, const struct plumb_error *err)
{
    struct plumb_error own = *err;
    char text[900];
    own.file[0] = '\0'; /* said in its own column */
    bool ok = plumb_table_add_row(lister->table, PLUMB_FAILED) &&
              plumb_table_text(lister->table, FILE_NAME, shown_name(lister, path)) &&
              plumb_table_text(lister->table, PROBLEM, plumb_error_text(&own, text, sizeof text));
    lister->failed = lister->failed || !ok;
    lister->problems++;
}

static void add_tensor(struct lister *lister, const struct ge_file *ge,
                       const struct ge_tensor *tensor)
{
    struct ge_reading reading = {0};
    struct plumb_payload payload;
    struct plumb_error err;
    char text[900];
    bool bad = !tensor->recorded && ge_load(ge, tensor, &reading, &payload, &err) != PLUMB_OK;
    struct plumb_table *table = lister->table;
    snprintf(text, sizeof text, "%s,%u", tensor->part == GE_INPUT ? "inputs" : "outputs",
             tensor->index);
    bool ok = plumb_table_add_row(table, bad ? PLUMB_FAILED : PLUMB_NORMAL) &&
              plumb_table_text(table, FILE_NAME, shown_name(lister, ge->path)) &&
              plumb_table_text(table, PART, text) &&
              plumb_table_text(table, DTYPE, ge_dtype_shown(tensor, &reading)) &&
              set_dims(table, SHAPE, &tensor->shape) &&
              set_dims(table, ORIGINAL, &tensor->original) &&
              plumb_table_text(table, FORMAT, ge_format_name(tensor->format));
    plumb_table_int(table, BYTES, (int64_t)tensor->size);
    if (bad) {
        err.file[0] = '\0';
        ok = ok && plumb_table_text(table, PROBLEM, plumb_error_text(&err, text, sizeof text));
        lister->problems++;
    } else if (!tensor->recorded) {
        plumb_payload_release(&payload);
    }
    lister->tensors++;
    lister->failed = lister->failed || !ok;
}

static void add_debug(struct lister *lister, const struct ge_file *ge)
{
    for (size_t i = 0; i < ge->output_count; i++) {
        const struct ge_tensor *tensor = &ge->outputs[i];
        struct plumb_file file;
        struct plumb_error err;
        struct plumb_file_guard guard;
        if (tensor->error || !tensor->size)
            continue;
        if (plumb_file_map(&file, ge->path, tensor->offset, tensor->size, &err)) {
            add_problem(lister, ge->path, &err);
            continue;
        }
        plumb_file_guard_enter(&guard, &file);
        enum plumb_code code = ge_debug_text(&lister->debug, file.data, file.size, &err);
        if (plumb_file_guard_leave(&guard) || code)
            add_problem(lister, ge->path, &err);
        plumb_file_unmap(&file);
    }
}

static void add_file(struct lister *lister, const char *path)
{
    struct arena arena = {0};
    struct ge_file ge;
    struct plumb_error err;
    enum plumb_code code = ge_open(&ge, path, &arena, &err);
    lister->files++;
    if (code) {
        add_problem(lister, path, &err);
    } else {
        for (size_t i = 0; i < ge.input_count; i++)
            add_tensor(lister, &ge, &ge.inputs[i]);
        for (size_t i = 0; i < ge.output_count; i++)
            add_tensor(lister, &ge, &ge.outputs[i]);
        const char *slash = strrchr(path, '/');
        if (ge_debug_is(slash ? slash + 1 : path))
            add_debug(lister, &ge);
    }
    arena_free(&arena);
}

/* Everything that looks like a GE file by its name or its content. */
static void add_folder(struct lister *lister, const struct tree *tree)
{
    for (size_t i = 0; i < tree->file_count && !lister->failed; i++)
        if (!tree->files[i].problem &&
            (plumb_ge_recognise(tree->files[i].path) || ge_is_condensed(tree->files[i].path)))
            add_file(lister, tree->files[i].path);
    for (size_t i = 0; i < tree->folder_count && !lister->failed; i++)
        add_folder(lister, &tree->folders[i]);
}

static enum plumb_code list(struct lister *lister, const char *path, bool folder,
                            struct arena *arena, struct plumb_error *err)
{
    struct tree tree;
    if (!folder) {
        add_file(lister, path);
        return PLUMB_OK;
    }
    enum plumb_code code = tree_read(&tree, path, arena, err);
    if (code)
        return code;
    lister->root = tree.path;
    add_folder(lister, &tree);
    return PLUMB_OK;
}

enum plumb_code plumb_ge_info(struct plumb_table **table, char **text, size_t *problems,
                              const char *path, struct plumb_error *err)
{
    static const struct plumb_column columns[COLUMNS] = {
        [FILE_NAME] = {"File", PLUMB_STYLE_TEXT, true, true},
        [PART] = {"Part", PLUMB_STYLE_TEXT, true, false},
        [DTYPE] = {"Dtype", PLUMB_STYLE_TEXT, true, false},
        [SHAPE] = {"Shape", PLUMB_STYLE_TEXT, true, false},
        [ORIGINAL] = {"Original Shape", PLUMB_STYLE_TEXT, true, false},
        [FORMAT] = {"Format", PLUMB_STYLE_TEXT, true, false},
        [BYTES] = {"Bytes", PLUMB_STYLE_NUMBER, false, false},
        [PROBLEM] = {"Problem", PLUMB_STYLE_TEXT, true, false},
    };
    struct stat st;
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    struct arena arena = {0};
    struct buf line = {0};
    struct lister lister = {.table = plumb_table_new(columns, COLUMNS)};
    enum plumb_code code = PLUMB_OK;
    if (!lister.table)
        lister.failed = true;
    else
        code = list(&lister, path, folder, &arena, err);
    buf_printf(&line, "%s: GE dump %s", path, folder ? "folder" : "file");
    if (folder)
        buf_printf(&line, ", %zu file%s", lister.files, lister.files == 1 ? "" : "s");
    buf_printf(&line, ", %zu tensor%s", lister.tensors, lister.tensors == 1 ? "" : "s");
    if (lister.problems)
        buf_printf(&line, ", %zu unreadable", lister.problems);
    buf_text(&line, "\n");
    buf_text(&line, lister.debug.data ? lister.debug.data : "");
    if (!code && (lister.failed || line.failed || lister.debug.failed))
        code = plumb_no_memory(err);
    if (code) {
        plumb_table_free(lister.table);
        buf_free(&line);
    } else {
        *table = lister.table;
        *text = line.data;
        *problems = lister.problems;
    }
    buf_free(&lister.debug);
    arena_free(&arena);
    return code;
}
