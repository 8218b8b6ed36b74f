/* Condensing files by several processes: a piece is a file. */
#define _GNU_SOURCE
#include "task/condense/spread.h"

#include "base/pack.h"
#include "task/condense/hosts.h"

static const char kind[] = "condense";

static void pack_request(struct pack *pack, const char **path, unsigned *keep, bool *dry_run,
                         struct arena *arena)
{
    pack_text(pack, path, arena);
    pack_below(pack, keep, PLUMB_KEEP_ALL + 1);
    pack_bool(pack, dry_run);
    pack_check(pack, *path);
}

static void pack_result(struct pack *pack, struct file_result *result)
{
    unsigned outcome = result->outcome;
    pack_below(pack, &outcome, FILE_UNREMOVED + 1);
    result->outcome = (enum file_outcome)outcome;
    pack_size(pack, &result->tensors);
    pack_u64(pack, &result->before);
    pack_u64(pack, &result->after);
    if (outcome == FILE_FAILED || outcome == FILE_UNREMOVED)
        pack_error(pack, &result->error);
}

static bool answer(void *context, const void *request, size_t size, struct buf *reply)
{
    const struct crew_places *places = context;
    struct arena arena = {0};
    struct pack in = pack_reader(request, size), out = pack_writer(reply);
    const char *path = NULL;
    unsigned keep = 0;
    bool dry_run = false;
    pack_request(&in, &path, &keep, &dry_run, &arena);
    const char *here = pack_good(&in) ? crew_places_here(places, path, &arena) : NULL;
    if (here) {
        struct file_result result = {.outcome = FILE_BUSY};
        file_condense(&result, here, keep, dry_run);
        crew_places_name(places, &result.error);
        pack_result(&out, &result);
    }
    arena_free(&arena);
    return here && pack_good(&out);
}

struct crew_handler condense_handler(const struct crew_places *places)
{
    return (struct crew_handler){kind, (void *)(uintptr_t)places, answer};
}

static void ask(void *context, size_t piece, struct buf *request)
{
    const struct spread_files *files = context;
    struct pack pack = pack_writer(request);
    const char *path = files->paths[piece];
    unsigned keep = files->keep;
    bool dry_run = files->dry_run;
    pack_request(&pack, &path, &keep, &dry_run, NULL);
}

static void work(void *context, size_t piece, struct buf *reply)
{
    const struct spread_files *files = context;
    struct pack pack = pack_writer(reply);
    struct file_result result = {.outcome = FILE_BUSY};
    if (files->files && !hosts_have(files->files[piece], 0)) {
        result.outcome = FILE_FAILED;
        plumb_fail(&result.error, PLUMB_E_IO, "only %s has it, and does not answer",
                   files->hosts->names[files->files[piece]->host]);
        plumb_error_in_file(&result.error, files->paths[piece]);
    } else if (!files->stop(files->context))
        file_condense(&result, files->paths[piece], files->keep, files->dry_run);
    pack_result(&pack, &result);
}

static bool has(void *context, size_t piece, unsigned host)
{
    const struct spread_files *files = context;
    return hosts_have(files->files[piece], host);
}

static bool take(void *context, size_t piece, const void *reply, size_t size, bool resumed)
{
    const struct spread_files *files = context;
    struct file_result result = {0};
    struct pack pack = pack_reader(reply, size);
    pack_result(&pack, &result);
    if (resumed || !pack_good(&pack)) /* what is finished is not listed any more */
        return false;
    files->results[piece] = result;
    files->progress(files->context, files->sizes[piece]);
    return true;
}

enum plumb_code spread_condense(struct plumb_crew *crew, const struct spread_files *files,
                                struct plumb_error *err)
{
    const struct crew_job job = {.kind = kind,
                                 .count = files->count,
                                 .context = (void *)(uintptr_t)files,
                                 .slow = true,
                                 .ask = ask,
                                 .work = work,
                                 .take = take,
                                 .has = files->files ? has : NULL};
    return crew_run(crew, &job, err);
}
