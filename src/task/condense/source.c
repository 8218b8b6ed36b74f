/* The tensors of one file, whatever it is. */
#define _GNU_SOURCE
#include "task/condense/source.h"

#include "base/mapped.h"
#include "format/format.h"
#include "format/ge_debug.h"

#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

enum content { CONTENT_OTHER, CONTENT_RUN, CONTENT_GE };

static enum plumb_code recognise(const char *path, enum content *content, struct plumb_error *err)
{
    struct mapped in;
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    /* What is in overflow files are no tensors but fields of their own. */
    *content = CONTENT_OTHER;
    if (format_probe(&in.file))
        *content = CONTENT_RUN;
    else if (ge_probe_file(&in.file) && !ge_debug_is(base_name(path)))
        *content = CONTENT_GE;
    mapped_close(&in, PLUMB_OK, NULL);
    return PLUMB_OK;
}

static enum plumb_code open_run(struct source *source, const char *path, struct plumb_error *err)
{
    enum plumb_code code = plumb_run_open(&source->run, path, err);
    if (code)
        return code;
    source->format = plumb_run_kind(source->run);
    source->count = plumb_run_count(source->run);
    const struct format *format = format_named(source->format);
    if (format && format->unnamed && source->count == 1) {
        struct plumb_file file;
        const struct plumb_record *record = plumb_run_record(source->run, 0);
        code = record->error ? PLUMB_OK : plumb_file_map(&file, path, 0, 0, err);
        if (!record->error && !code) {
            source->surplus = file.file_size - record->offset - record->bytes;
            plumb_file_unmap(&file);
        }
    }
    return code;
}

/* The records that a GE file would have if it were a run: inputs, then outputs. */
static bool make_records(struct source *source)
{
    const struct ge_file *ge = &source->ge;
    source->count = ge->input_count + ge->output_count;
    source->records = arena_array(&source->arena, source->count, sizeof *source->records);
    for (size_t i = 0; source->records && i < source->count; i++) {
        bool output = i >= ge->input_count;
        size_t index = output ? i - ge->input_count : i;
        const struct ge_tensor *tensor = output ? &ge->outputs[index] : &ge->inputs[index];
        source->records[i] = (struct plumb_record){
            .name = arena_printf(&source->arena, "%s.%zu", output ? "output" : "input", index),
            .path = ge->path,
            .step = -1,
            .rank = -1,
            .requires_grad = -1,
            .error = tensor->error,
        };
        if (!source->records[i].name)
            return false;
    }
    return source->records;
}

static enum plumb_code open_ge(struct source *source, const char *path, struct plumb_error *err)
{
    source->format = "ge";
    enum plumb_code code = ge_open(&source->ge, path, &source->arena, err);
    if (!code && !make_records(source))
        code = plumb_no_memory(err);
    return code;
}

enum plumb_code source_open(struct source *source, const char *path, bool *ours,
                            struct plumb_error *err)
{
    enum content content;
    *ours = false;
    *source = (struct source){0};
    enum plumb_code code = recognise(path, &content, err);
    if (code)
        return code;
    if (content == CONTENT_OTHER && !format_is_promised(path))
        return PLUMB_OK;
    code = content == CONTENT_GE ? open_ge(source, path, err) : open_run(source, path, err);
    *ours = !code && source->count;
    if (!*ours)
        source_close(source);
    return code;
}

void source_close(struct source *source)
{
    plumb_run_free(source->run);
    arena_free(&source->arena);
    *source = (struct source){0};
}

const struct plumb_record *source_record(const struct source *source, size_t index)
{
    return source->run ? plumb_run_record(source->run, index) : &source->records[index];
}

enum plumb_code source_load(const struct source *source, size_t index,
                            struct plumb_payload *payload, struct plumb_error *err)
{
    static const struct ge_reading reading = {0};
    if (source->run)
        return plumb_run_load(source->run, index, payload, err);
    const struct ge_file *ge = &source->ge;
    return ge_load(
        ge, index < ge->input_count ? &ge->inputs[index] : &ge->outputs[index - ge->input_count],
        &reading, payload, err);
}
