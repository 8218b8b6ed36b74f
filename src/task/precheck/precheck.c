/* The run: calls are handed out in the order of the dump to several threads, and their rows are
 * written in that order, whoever is ready first. */
#define _GNU_SOURCE
#include "plumb/precheck.h"

#include "base/folder.h"
#include "base/memory.h"
#include "base/pool.h"
#include "crew/crew.h"
#include "run/ref.h"
#include "task/precheck/entry_pack.h"
#include "task/precheck/error_data.h"
#include "task/precheck/filter.h"
#include "task/precheck/journal.h"
#include "task/precheck/list_notes.h"
#include "task/precheck/work.h"
#include "verdict/ladder_rules.h"
#include "verdict/profiles.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A call that is finished, or on its way; its texts live until they are written. */
struct slot {
    size_t call; /* in the dump */
    bool killed; /* an earlier run by it, which is not to happen again */
    bool ready;
    struct arena arena;
    struct journal_entry entry;
};

static const char killed_why[] =
    "an earlier run was killed for lack of memory while it ran this call";

/* How far calls may run ahead of one that takes long: their rows wait in memory. */
enum { MAX_AHEAD = 256 };

struct run {
    const struct plumb_precheck_options *options;
    struct plumb_precheck_summary *summary;
    struct case_file *file;
    struct arena arena; /* of the configuration */
    struct check_config config;
    struct selector selector;
    struct work_shared shared;
    struct mt19937 mt;
    struct journal journal;
    struct running running;
    char error_data[4096], judged_by[256];
    uint64_t memory; /* bytes, for all threads together */
    unsigned threads;
    uint64_t stamps[2]; /* of the dump and the configuration */

    struct slot *slots; /* what is to be done, in order */
    size_t n_slots, written;

    pthread_mutex_t lock; /* of all below, and of the journal */
    pthread_cond_t moved; /* something below, or written, is another */
    unsigned busy;        /* threads that run a call */
    bool alone;           /* one call runs, or waits for the others, with all of the memory */
    size_t end;           /* slots from here on are left: the run failed there, or was stopped */
    enum plumb_code code;
    struct plumb_error err;
};

/* The run ends before slot i; what comes before it is still finished. */
static void fail_at(struct run *run, size_t i, const struct plumb_error *err)
{
    if (i >= run->end)
        return;
    run->end = i;
    run->code = err->code;
    run->err = *err;
    pthread_cond_broadcast(&run->moved);
}

static enum plumb_precheck_status worse(enum check_status forward, enum check_status backward)
{
    if (forward == STATUS_SKIP)
        return PLUMB_PRECHECK_SKIP;
    if (forward == STATUS_ERROR || backward == STATUS_ERROR)
        return PLUMB_PRECHECK_ERROR;
    if (forward == STATUS_WARNING || backward == STATUS_WARNING)
        return PLUMB_PRECHECK_WARNING;
    return PLUMB_PRECHECK_PASS;
}

static void count_api(struct plumb_precheck_summary *summary, enum check_status forward,
                      enum check_status backward, uint64_t n)
{
    summary->apis[worse(forward, backward)] += n;
    if (forward != STATUS_SKIP && backward == STATUS_SKIP)
        summary->no_backward += n;
}

static void tell_progress(struct run *run, const struct journal_entry *entry)
{
    if (!run->options->progress)
        return;
    const struct plumb_precheck_progress progress = {
        .done = run->written,
        .total = run->n_slots,
        .name = entry->name,
        .forward = check_status_text(entry->forward),
        .backward = check_status_text(entry->backward),
        .verdict = entry->verdict,
        .why = entry->why,
        .word = entry->word,
    };
    if (!run->options->progress(run->options->context, &progress) && run->written < run->end) {
        run->summary->stopped = true;
        run->end = run->written;
    }
}

/* What its rows say, for the caller's baseline. */
static enum plumb_code gather(struct run *run, const struct journal_entry *entry,
                              struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; run->options->found && k < entry->n_rows && !code; k++) {
        const struct details_row *row = &entry->rows[k];
        if (!row->verdict || *row->verdict == ' ')
            continue;
        const struct plumb_deviation is = {.call = row->name,
                                           .step = -1,
                                           .rank = -1,
                                           .word = row->allowed ? PLUMB_WORD_ROUNDING : row->word,
                                           .worst = row->worst,
                                           .arithmetic = row->arithmetic,
                                           .pattern = row->pattern};
        code = plumb_baseline_add(run->options->found, &is, err);
    }
    return code;
}

/* Writes whatever is ready and next in order. Called with the lock held. */
static void write_ready(struct run *run)
{
    while (run->written < run->end && run->slots[run->written].ready) {
        struct slot *slot = &run->slots[run->written];
        struct plumb_error err = {0};
        if (journal_add(&run->journal, &slot->entry, &err) || gather(run, &slot->entry, &err)) {
            fail_at(run, run->written, &err);
            return;
        }
        count_api(run->summary, slot->entry.forward, slot->entry.backward, 1);
        if (slot->entry.verdict)
            run->summary->words[slot->entry.word]++;
        run->written++;
        tell_progress(run, &slot->entry);
        arena_free(&slot->arena);
        pthread_cond_broadcast(&run->moved);
    }
}

/* Runs a call within the thread's part of the memory. */
static enum plumb_code try_shared(struct run *run, struct slot *slot, struct plumb_device *device,
                                  unsigned thread, struct plumb_error *err)
{
    const struct work_room room = {run->memory / run->threads, run->threads == 1, thread};
    return work_case(&run->shared, slot->call, device, &room, &slot->arena, &slot->entry, err);
}

/* Runs a call with all of the memory, when no other runs. Whether it fits then does not depend on
 * the number of threads. */
static enum plumb_code try_alone(struct run *run, struct slot *slot, struct plumb_device *device,
                                 unsigned thread, struct plumb_error *err)
{
    const struct work_room room = {run->memory, true, thread};
    arena_free(&slot->arena);
    *err = (struct plumb_error){0};
    pthread_mutex_lock(&run->lock);
    run->busy--;
    pthread_cond_broadcast(&run->moved);
    while (run->alone)
        pthread_cond_wait(&run->moved, &run->lock);
    run->alone = true;
    while (run->busy)
        pthread_cond_wait(&run->moved, &run->lock);
    run->busy++;
    pthread_mutex_unlock(&run->lock);
    const enum plumb_code code =
        work_case(&run->shared, slot->call, device, &room, &slot->arena, &slot->entry, err);
    pthread_mutex_lock(&run->lock);
    run->alone = false;
    pthread_mutex_unlock(&run->lock);
    return code;
}

static enum plumb_code run_slot(struct run *run, struct slot *slot, unsigned thread,
                                struct plumb_error *err)
{
    if (slot->killed)
        return work_refuse(&run->shared, slot->call, killed_why, &slot->arena, &slot->entry, err);
    struct plumb_device *device = run->options->devices[thread % run->options->n_devices];
    const enum plumb_code code = try_shared(run, slot, device, thread, err);
    return code == PLUMB_E_NOMEM && run->threads > 1 ? try_alone(run, slot, device, thread, err)
                                                     : code;
}

static void do_slot(void *context, size_t i, unsigned thread)
{
    struct run *run = context;
    struct slot *slot = &run->slots[i];
    pthread_mutex_lock(&run->lock);
    /* Slots are handed out in order, so whoever has the next one to be written does not wait. */
    while (i < run->end && (i >= run->written + MAX_AHEAD || run->alone))
        pthread_cond_wait(&run->moved, &run->lock);
    const bool left = i >= run->end;
    run->busy += !left;
    pthread_mutex_unlock(&run->lock);
    if (left)
        return;
    struct plumb_error err = {0};
    const enum plumb_code code = run_slot(run, slot, thread, &err);
    pthread_mutex_lock(&run->lock);
    run->busy--;
    pthread_cond_broadcast(&run->moved);
    if (code)
        fail_at(run, i, &err);
    slot->ready = !code;
    write_ready(run);
    pthread_mutex_unlock(&run->lock);
}

/* ---- Several processes ----------------------------------------------------------------------- */

static const char kind[] = "check";

/* A call as other processes are asked for it. */
struct request {
    size_t call;
    bool killed;
    uint64_t memory;
    uint64_t stamps[2]; /* of the dump and the configuration: a journal is about these */
};

static void pack_request(struct pack *pack, struct request *request)
{
    pack_size(pack, &request->call);
    pack_bool(pack, &request->killed);
    pack_u64(pack, &request->memory);
    pack_u64(pack, &request->stamps[0]);
    pack_u64(pack, &request->stamps[1]);
}

static void ask(void *context, size_t piece, struct buf *out)
{
    const struct run *run = context;
    struct pack pack = pack_writer(out);
    struct request request = {.call = run->slots[piece].call,
                              .killed = run->slots[piece].killed,
                              .memory = run->memory / crew_lanes_of_all(run->options->crew),
                              .stamps = {run->stamps[0], run->stamps[1]}};
    pack_request(&pack, &request);
}

/* What became of a call: its rows, or what ends the run there. */
static void pack_end(struct pack *pack, enum plumb_code code, struct slot *slot,
                     struct plumb_error *err)
{
    bool failed = code;
    pack_bool(pack, &failed);
    if (failed)
        pack_error(pack, err);
    else
        entry_pack(pack, &slot->entry, &slot->arena);
}

static void work_here(void *context, size_t piece, struct buf *reply)
{
    struct run *run = context;
    struct slot slot = {.call = run->slots[piece].call, .killed = run->slots[piece].killed};
    struct pack pack = pack_writer(reply);
    struct plumb_error err = {0};
    pthread_mutex_lock(&run->lock);
    while (run->alone)
        pthread_cond_wait(&run->moved, &run->lock);
    run->busy++;
    pthread_mutex_unlock(&run->lock);
    const enum plumb_code code = run_slot(run, &slot, (unsigned)(piece % run->threads), &err);
    pthread_mutex_lock(&run->lock);
    run->busy--;
    pthread_cond_broadcast(&run->moved);
    pthread_mutex_unlock(&run->lock);
    pack_end(&pack, code, &slot, &err);
    arena_free(&slot.arena);
}

static bool take(void *context, size_t piece, const void *reply, size_t size, bool resumed)
{
    struct run *run = context;
    struct slot *slot = &run->slots[piece];
    struct pack pack = pack_reader(reply, size);
    struct plumb_error err = {0};
    bool failed = false;
    pack_bool(&pack, &failed);
    if (failed)
        pack_error(&pack, &err);
    else
        entry_pack(&pack, &slot->entry, &slot->arena);
    if (!pack_good(&pack) || (failed && (resumed || !err.code))) {
        arena_free(&slot->arena);
        return false;
    }
    pthread_mutex_lock(&run->lock);
    if (failed)
        fail_at(run, piece, &err);
    slot->ready = !failed;
    write_ready(run);
    pthread_mutex_unlock(&run->lock);
    return true;
}

static bool is_over(void *context)
{
    struct run *run = context;
    pthread_mutex_lock(&run->lock);
    const bool over = run->written >= run->end;
    pthread_mutex_unlock(&run->lock);
    return over;
}

static enum plumb_code run_spread(struct run *run, struct plumb_error *err)
{
    const struct run_ref files[2] = {{.path = run->options->dump}, {.path = run->options->config}};
    for (int i = 0; i < 2; i++)
        run->stamps[i] = files[i].path ? run_ref_stamp(&files[i], NULL) : 0;
    const struct crew_job job = {.kind = kind,
                                 .count = run->n_slots,
                                 .context = run,
                                 .slow = true,
                                 .ask = ask,
                                 .work = work_here,
                                 .take = take,
                                 .over = is_over};
    return crew_run(run->options->crew, &job, err);
}

/* A call for process 0. What needs more memory goes back to it. */
static bool answer(void *context, const void *bytes, size_t size, struct buf *reply)
{
    struct run *run = context;
    struct pack in = pack_reader(bytes, size), out = pack_writer(reply);
    struct request request = {0};
    struct slot slot = {0};
    struct plumb_error err = {0};
    pack_request(&in, &request);
    if (!pack_good(&in) || request.call >= case_count(run->file))
        return false;
    slot.call = request.call;
    struct plumb_device *device = run->options->devices[slot.call % run->options->n_devices];
    const struct work_room room = {request.memory, false, 0};
    const enum plumb_code code =
        request.killed
            ? work_refuse(&run->shared, slot.call, killed_why, &slot.arena, &slot.entry, &err)
            : work_case(&run->shared, slot.call, device, &room, &slot.arena, &slot.entry, &err);
    if (code != PLUMB_E_NOMEM)
        pack_end(&out, code, &slot, &err);
    arena_free(&slot.arena);
    return code != PLUMB_E_NOMEM;
}

static enum plumb_code help(struct run *run, struct plumb_error *err)
{
    const struct crew_handler handler = {kind, run, answer};
    return crew_help(run->options->helping, &handler, err);
}

/* ---- Setting up ------------------------------------------------------------------------------ */

static bool has_one_generator(const struct plumb_precheck_options *options)
{
    return options->rng && strcmp(options->rng, "counter") != 0;
}

static enum plumb_code set_up_rng(struct run *run, struct plumb_error *err)
{
    const char *name = run->options->rng;
    if (!has_one_generator(run->options))
        return PLUMB_OK;
    const struct precheck_profile *profile = profile_named(precheck_profiles, name);
    if (!profile || !profile->values->recipe)
        return plumb_fail(err, PLUMB_E_ARG, "there is no generator of random values '%s'", name);
    mt19937_init(&run->mt, profile->values->seed);
    run->shared.inputs.mt = &run->mt;
    run->shared.inputs.rng = profile->values;
    return PLUMB_OK;
}

static enum plumb_code set_up_rules(struct run *run, struct plumb_error *err)
{
    const struct plumb_precheck_options *options = run->options;
    check_config_init(&run->config);
    const struct standard_set *rules;
    enum plumb_code code = rules_load(precheck_profiles, options->rules, &run->arena, &rules, err);
    if (code)
        return code;
    if (options->config)
        code = check_config_read(&run->config, options->config, &run->arena, err);
    if (!code)
        code = selector_init(&run->selector, &run->config, rules->profile->select, err);
    if (code)
        return code;
    const char **quantized =
        arena_array(&run->arena, run->config.quantization_api_list.count + 1, sizeof *quantized);
    if (!quantized)
        return plumb_no_memory(err);
    for (size_t k = 0; k < run->config.quantization_api_list.count; k++)
        quantized[k] = run->config.quantization_api_list.names[k];
    run->shared = (struct work_shared){
        .file = run->file,
        .selector = &run->selector,
        .fallback = options->fallback && options->fallback->run_raised ? options->fallback : NULL,
        .stand_in = options->stand_in,
        .running = &run->running,
        .inputs = {.inputs = (enum input_kind)options->inputs,
                   .seed = options->seed,
                   .profile = rules->profile->values,
                   .data_dir = case_data_dir(run->file)},
        .judge = {.rules = rules,
                  .precision = run->config.precision,
                  .quantized =
                      run->config.quantization_api_list.count ? quantized : standard_quantized},
    };
    return set_up_rng(run, err);
}

/* Second opinions, where they are asked for. */
static enum plumb_code set_up_opinions(struct run *run, struct plumb_error *err)
{
    const struct plumb_precheck_options *options = run->options;
    enum plumb_code code = plumb_arithmetic_check(options->arithmetic, err);
    if (code || options->verdict == PLUMB_BY_RULES)
        return code;
    if (run->shared.judge.rules->profile->compare->outputs_only)
        return plumb_fail(err, PLUMB_E_ARG,
                          "tables under the rules of %s have no columns for other verdicts",
                          run->shared.judge.rules->profile->name);
    snprintf(run->judged_by, sizeof run->judged_by, "expected %d; seed %llu%s%s",
             PLUMB_EXPECTED_VERSION, (unsigned long long)options->seed,
             options->arithmetic ? "; allowed " : "",
             options->arithmetic ? options->arithmetic : "");
    run->shared.judged_by = run->judged_by;
    run->shared.arithmetic = options->arithmetic;
    return PLUMB_OK;
}

/* A slot for every call that is to be checked. */
static enum plumb_code set_up_slots(struct run *run, struct plumb_error *err)
{
    const size_t n = case_count(run->file);
    bool *keep = calloc(n + 1, sizeof *keep);
    run->slots = calloc(n + 1, sizeof *run->slots);
    enum plumb_code code = PLUMB_OK;
    if (!keep || !run->slots)
        code = plumb_no_memory(err);
    else if (run->options->filter)
        code = filter_repeats(run->file, run->selector.how->repeats_by_objects, keep, err);
    for (size_t k = 0; k < n && !code; k++) {
        if (run->options->filter && !keep[k])
            run->summary->repeated++;
        else
            run->slots[run->n_slots++].call = k;
    }
    free(keep);
    return code;
}

/* A call that an earlier run was killed by would kill this one too. */
static void note_killer(struct run *run)
{
    size_t call;
    if (!running_killer(run->journal.result_path, &call))
        return;
    for (size_t k = 0; k < run->n_slots; k++)
        if (run->slots[k].call == call) {
            char text[512];
            run->slots[k].killed = true;
            snprintf(text, sizeof text, "%.200s is skipped: %s", case_place(run->file, call)->name,
                     killed_why);
            if (run->options->note)
                run->options->note(run->options->context, text);
        }
}

/* Takes up the files of an earlier run, and drops the slots that it finished. */
static enum plumb_code resume_journal(struct run *run, struct plumb_error *err)
{
    const char **names = calloc(run->n_slots + 1, sizeof *names);
    if (!names)
        return plumb_no_memory(err);
    for (size_t k = 0; k < run->n_slots; k++)
        names[k] = case_place(run->file, run->slots[k].call)->name;
    const struct journal_calls calls = {names, run->n_slots};
    enum plumb_code code =
        journal_resume(&run->journal, run->options->resume, precheck_profiles,
                       run->shared.judge.rules->profile->files, run->shared.judged_by, &calls, err);
    free(names);
    if (code)
        return code;
    const size_t finished = run->journal.finished;
    run->summary->resumed = finished;
    run->n_slots -= finished;
    memmove(run->slots, run->slots + finished, run->n_slots * sizeof *run->slots);
    note_killer(run);
    return PLUMB_OK;
}

/* Entries of the lists that fit nothing here are told: they may be misspelt. */
static void note_lists(const struct run *run)
{
    const struct plumb_precheck_options *options = run->options;
    if (!options->note)
        return;
    key_notes(&run->config, options->note, options->context);
    list_notes(run->file, "white_list", &run->config.white_list, options->note, options->context);
    list_notes(run->file, "black_list", &run->config.black_list, options->note, options->context);
}

static enum plumb_code check_error_folder(const struct run *run, struct plumb_error *err)
{
    const char *base = run->config.error_data_path;
    struct stat info;
    if (!run->options->save_error_data || (stat(base, &info) == 0 && S_ISDIR(info.st_mode)))
        return PLUMB_OK;
    plumb_fail(err, PLUMB_E_ARG, "error_data_path is no folder");
    plumb_error_in_file(err, base);
    return PLUMB_E_ARG;
}

static enum plumb_code set_up_error_data(struct run *run, struct plumb_error *err)
{
    if (!run->options->save_error_data)
        return PLUMB_OK;
    const char *base = run->config.error_data_path;
    const bool slash = *base && base[strlen(base) - 1] == '/';
    if (snprintf(run->error_data, sizeof run->error_data, "%s%sut_error_data%s", base,
                 slash ? "" : "/", run->journal.stamp) >= (int)sizeof run->error_data)
        return plumb_fail(err, PLUMB_E_ARG, "error_data_path is too long");
    run->shared.error_data = run->error_data;
    if (run->options->resume)
        error_data_clean(run->error_data);
    return PLUMB_OK;
}

/* The summary says what is there to be read, and resumed, from now on. */
static void note_files(struct run *run)
{
    struct plumb_precheck_summary *summary = run->summary;
    snprintf(summary->result, sizeof summary->result, "%s", run->journal.result_path);
    snprintf(summary->details, sizeof summary->details, "%s", run->journal.details_path);
    for (int f = 0; f <= STATUS_BLANK; f++)
        for (int b = 0; b <= STATUS_BLANK; b++)
            count_api(summary, (enum check_status)f, (enum check_status)b,
                      run->journal.earlier[f][b]);
    for (int k = 0; k < PLUMB_WORDS; k++)
        summary->words[k] += run->journal.earlier_words[k];
}

static void note_error_data(struct run *run)
{
    struct stat info;
    if (*run->error_data && stat(run->error_data, &info) == 0)
        snprintf(run->summary->error_data, sizeof run->summary->error_data, "%s", run->error_data);
}

static enum plumb_code open_journal(struct run *run, struct plumb_error *err)
{
    const struct plumb_precheck_options *options = run->options;
    const char *folder = options->folder && *options->folder ? options->folder : ".";
    if (options->resume)
        return resume_journal(run, err);
    enum plumb_code code = folder_make(folder, err);
    return code ? code
                : journal_create(&run->journal, folder, run->shared.judge.rules->profile->files,
                                 run->shared.judged_by, err);
}

static enum plumb_code set_up(struct run *run, struct plumb_error *err)
{
    enum plumb_code code = case_file_open(run->options->dump, &run->file, err);
    if (!code)
        code = set_up_rules(run, err);
    if (!code)
        code = set_up_opinions(run, err);
    if (!code)
        code = check_error_folder(run, err);
    if (run->options->helping)
        return code;
    if (!code)
        code = set_up_slots(run, err);
    if (!code)
        code = open_journal(run, err);
    if (code)
        return code;
    running_create(&run->running, run->journal.result_path);
    note_files(run);
    note_lists(run);
    return set_up_error_data(run, err);
}

enum plumb_code plumb_precheck_run(const struct plumb_precheck_options *options,
                                   struct plumb_precheck_summary *summary, struct plumb_error *err)
{
    *summary = (struct plumb_precheck_summary){0};
    if (options->n_devices == 0)
        return plumb_fail(err, PLUMB_E_ARG, "no device to check on");
    enum plumb_code code = plumb_op_ready(err);
    if (code)
        return code;
    struct run run = {.options = options,
                      .summary = summary,
                      .journal = {.result = -1, .details = -1},
                      .running = {.fd = -1},
                      .memory = options->memory ? options->memory : memory_default(),
                      .threads = options->threads ? options->threads : pool_default_threads()};
    if (has_one_generator(options))
        run.threads = 1; /* one generator, consumed in the order of the dump */
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.moved, NULL);
    const bool spread = options->crew && !has_one_generator(options) && !options->save_error_data;
    if (spread)
        run.threads = crew_lanes(options->crew);
    code = set_up(&run, err);
    if (!code && options->helping) {
        code = help(&run, err);
    } else if (!code) {
        run.end = run.n_slots;
        if (spread)
            code = run_spread(&run, err);
        else
            pool_run(run.threads, run.n_slots, do_slot, &run);
        if (run.code && err)
            *err = run.err;
        code = run.code ? run.code : code;
    }
    struct plumb_error closing = {0};
    note_error_data(&run);
    running_remove(&run.running);
    const enum plumb_code closed = journal_close(&run.journal, &closing);
    if (!code && closed) {
        code = closed;
        if (err)
            *err = closing;
    }
    for (size_t k = 0; k < run.n_slots; k++)
        arena_free(&run.slots[k].arena);
    free(run.slots);
    selector_destroy(&run.selector);
    arena_free(&run.arena);
    case_file_close(run.file);
    pthread_cond_destroy(&run.moved);
    pthread_mutex_destroy(&run.lock);
    return code;
}
