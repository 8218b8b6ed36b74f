/* One question to every host. */
#include "crew/crew.h"

static void ask(void *context, size_t piece, struct buf *request)
{
    const struct crew_question *question = context;
    (void)piece;
    question->ask(question->context, request);
}

static bool has(void *context, size_t piece, unsigned host)
{
    (void)context;
    return piece == host;
}

/* Process 0 is asked for others only when they are lost. */
static void work(void *context, size_t piece, struct buf *reply)
{
    const struct crew_question *question = context;
    if (!piece)
        question->here(question->context, reply);
}

static bool take(void *context, size_t piece, const void *reply, size_t size, bool resumed)
{
    const struct crew_question *question = context;
    return !resumed && question->take(question->context, (unsigned)piece, reply, size);
}

enum plumb_code crew_ask_hosts(struct plumb_crew *crew, const struct crew_question *question,
                               unsigned hosts, struct plumb_error *err)
{
    const struct crew_job job = {.kind = question->kind,
                                 .count = hosts,
                                 .context = (void *)(uintptr_t)question,
                                 .fleeting = true,
                                 .ask = ask,
                                 .work = work,
                                 .take = take,
                                 .has = has};
    return crew_run(crew, &job, err);
}
