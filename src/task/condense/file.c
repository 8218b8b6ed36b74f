/* Condensing one file. */
#define _GNU_SOURCE
#include "task/condense/file.h"

#include "base/mapped.h"
#include "base/output.h"
#include "format/condensed.h"
#include "task/condense/hold.h"
#include "task/condense/source.h"
#include "task/condense/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool somebody_wants(const void *hold)
{
    return hold_is_wanted(hold);
}

/* One tensor into text. *busy when a writer asked for the file meanwhile. */
static enum plumb_code add_tensor(struct buf *text, const struct source *source, size_t index,
                                  const struct hold *hold, unsigned keep, bool *busy,
                                  struct plumb_error *err)
{
    struct plumb_payload payload;
    struct plumb_file_guard guard;
    struct measured measured;
    enum plumb_code code = source_load(source, index, &payload, err);
    if (code)
        return code;
    plumb_file_guard_enter(&guard, &payload.file);
    enum measure_outcome outcome = measure(&measured, &payload.tensor, keep, somebody_wants, hold);
    *busy = outcome == MEASURE_STOPPED;
    if (plumb_file_guard_leave(&guard))
        code = mapped_fail_shrank(err);
    else if (outcome == MEASURE_NO_MEMORY)
        code = plumb_no_memory(err);
    else
        text_tensor(text, source_record(source, index), &payload.tensor, &measured, keep, !index);
    plumb_payload_release(&payload);
    return code;
}

static enum plumb_code describe(struct buf *text, const struct source *source,
                                const struct hold *hold, unsigned keep, bool *busy,
                                struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    *busy = false;
    text_begin(text, base_name(hold->path), source->format, (uint64_t)hold->st.st_size);
    for (size_t i = 0; i < source->count && !code && !*busy; i++)
        code = add_tensor(text, source, i, hold, keep, busy, err);
    text_end(text);
    return !code && text->failed ? plumb_no_memory(err) : code;
}

/* After this the condensed form survives anything. */
static enum plumb_code write_durably(const char *path, const struct buf *text,
                                     struct plumb_error *err)
{
    enum plumb_code code = output_whole(path, text->data, text->size, true, err);
    if (!code && !output_sync_folder(path))
        code =
            plumb_fail(err, PLUMB_E_IO, "cannot write its folder to the disk: %s", strerror(errno));
    return code;
}

/* The condensed form is written, then the original is looked at once more, then it is removed. */
static enum file_outcome replace(const struct hold *hold, const struct buf *text,
                                 struct plumb_error *err)
{
    char *path = NULL;
    enum file_outcome outcome = FILE_FAILED;
    if (!hold_is_intact(hold))
        return FILE_BUSY;
    if (asprintf(&path, "%s" CONDENSED_ENDING, hold->path) < 0) {
        plumb_no_memory(err);
        return FILE_FAILED;
    }
    if (write_durably(path, text, err))
        goto out;
    if (!hold_is_intact(hold)) {
        unlink(path); /* it describes what was, not what is being written now */
        outcome = FILE_BUSY;
    } else if (unlink(hold->path) != 0) {
        plumb_fail(err, PLUMB_E_IO, "condensed, but cannot remove it: %s", strerror(errno));
        outcome = FILE_UNREMOVED;
    } else {
        outcome = FILE_DONE;
    }
out:
    free(path);
    return outcome;
}

/* Everything in the file must be understood, since nothing else is kept. */
static enum plumb_code check_whole(const struct source *source, struct plumb_error *err)
{
    for (size_t i = 0; i < source->count; i++) {
        const struct plumb_record *record = source_record(source, i);
        if (record->error) {
            *err = *record->error;
            return err->code;
        }
        if (record->recorded)
            return plumb_fail(err, PLUMB_E_UNSUPPORTED, "it has no values, only statistics");
    }
    if (source->surplus)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "%" PRIu64 " bytes follow the tensor that its header describes",
                          source->surplus);
    return PLUMB_OK;
}

static enum file_outcome work(struct file_result *out, const struct hold *hold,
                              const struct source *source, unsigned keep, bool dry_run)
{
    struct buf text = {0};
    bool busy = false;
    enum file_outcome outcome = FILE_FAILED;
    if (check_whole(source, &out->error) || describe(&text, source, hold, keep, &busy, &out->error))
        outcome = FILE_FAILED;
    else if (busy)
        outcome = FILE_BUSY;
    else if (text.size >= out->before)
        outcome = FILE_SMALL;
    else if (dry_run)
        outcome = FILE_DONE;
    else
        outcome = replace(hold, &text, &out->error);
    out->tensors = source->count;
    out->after = text.size;
    buf_free(&text);
    return outcome;
}

void file_condense(struct file_result *out, const char *path, unsigned keep, bool dry_run)
{
    struct hold hold;
    struct source source;
    *out = (struct file_result){.outcome = FILE_GONE};
    switch (hold_take(&hold, path, &out->error)) {
    case HOLD_BUSY:
        out->outcome = FILE_BUSY;
        return;
    case HOLD_GONE:
        return;
    case HOLD_FAILED:
        out->outcome = FILE_FAILED;
        return;
    case HOLD_FREE:
        break;
    }
    out->before = (uint64_t)hold.st.st_size;
    bool ours = false;
    if (source_open(&source, path, &ours, &out->error))
        out->outcome = FILE_FAILED;
    else if (!ours)
        out->outcome = FILE_OTHER;
    else
        out->outcome = work(out, &hold, &source, keep, dry_run);
    if (ours)
        source_close(&source);
    /* What a writer does to the file under us may look like damage. */
    if (out->outcome == FILE_FAILED && hold_is_wanted(&hold))
        out->outcome = FILE_BUSY;
    plumb_error_in_file(&out->error, path);
    hold_release(&hold);
}
