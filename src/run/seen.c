/* What the hosts of a crew see of dumps. */
#define _GNU_SOURCE
#include "run/seen.h"

#include "crew/journal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char kind[] = "look";

/* A host that is lost has nothing to say: its reply is empty. */
static bool answer(void *context, const void *request, size_t size, struct buf *reply)
{
    return look_answer(context, request, size, reply);
}

struct crew_handler seen_handler(const struct crew_places *places)
{
    return (struct crew_handler){kind, (void *)(uintptr_t)places, answer};
}

/* ---- Asking every host ----------------------------------------------------------------------- */

struct told {
    struct buf bytes; /* empty: the host is lost, or has said the same as another */
    uint64_t hash;
    unsigned like; /* itself, or who said the same; SEEN_NOBODY: it is lost */
};

struct session {
    const struct seen *seen;
    const struct crew_places *places;
    struct look_request request;
    struct told *told; /* by every host */
};

static void ask(void *context, struct buf *request)
{
    const struct session *session = context;
    struct pack pack = pack_writer(request);
    struct look_request copy = session->request;
    look_pack_request(&pack, &copy, NULL);
}

static void here(void *context, struct buf *reply)
{
    const struct session *session = context;
    struct buf request = {0};
    ask(context, &request);
    if (request.failed || !look_answer(session->places, request.data, request.size, reply))
        reply->failed = true;
    buf_free(&request);
}

static bool is_sound(const struct session *session, const void *reply, size_t size)
{
    struct pack pack = pack_reader(reply, size);
    struct arena arena = {0};
    uint64_t content;
    for (size_t side = 0; side < session->request.sides && !session->request.wanted; side++) {
        struct looks looks = {0};
        look_pack(&pack, &looks, &arena);
    }
    for (size_t i = 0; i < session->request.count; i++)
        pack_u64(&pack, &content);
    arena_free(&arena);
    return pack_good(&pack);
}

static bool take(void *context, unsigned host, const void *reply, size_t size)
{
    struct session *session = context;
    struct told *told = &session->told[host];
    if (size && !is_sound(session, reply, size))
        return false;
    told->like = size ? host : SEEN_NOBODY;
    told->hash = crew_hash(reply, size);
    for (unsigned h = 0; h < session->seen->hosts.count && size; h++) {
        const struct told *other = &session->told[h];
        if (other->bytes.size == size && other->hash == told->hash &&
            memcmp(other->bytes.data, reply, size) == 0) {
            told->like = h;
            return true;
        }
    }
    buf_append(&told->bytes, reply, size);
    return !told->bytes.failed;
}

static enum plumb_code ask_all(struct session *session, struct plumb_crew *crew,
                               struct plumb_error *err)
{
    const unsigned count = session->seen->hosts.count;
    session->told = calloc(count, sizeof *session->told);
    if (!session->told)
        return plumb_no_memory(err);
    const struct crew_question question = {kind, session, ask, here, take};
    return crew_ask_hosts(crew, &question, count, err);
}

static void forget(struct session *session)
{
    for (unsigned h = 0; session->told && h < session->seen->hosts.count; h++)
        buf_free(&session->told[h].bytes);
    free(session->told);
    session->told = NULL;
}

/* ---- Taking them together -------------------------------------------------------------------- */

static void set_host(struct seen_side *side, unsigned host)
{
    side->hosts[host / 8] |= (uint8_t)(1u << host % 8);
}

static bool has_host(const struct seen_side *side, unsigned host)
{
    return side->json && (side->hosts[host / 8] >> host % 8 & 1);
}

/* Folders without a dump.json count only where nobody has one with it. */
static bool add_look(struct seen *seen, struct seen_side *side, const struct look *look,
                     unsigned host)
{
    const size_t bytes = seen->hosts.count / 8 + 1;
    if (!side->json || (!side->files && look->files)) {
        *side = (struct seen_side){.json = arena_copy(&seen->arena, look->json, strlen(look->json)),
                                   .files = look->files,
                                   .form = look->form,
                                   .stamp = look->stamp,
                                   .hosts = arena_alloc(&seen->arena, bytes),
                                   .first = host,
                                   .other = SEEN_NOBODY};
        if (!side->json || !side->hosts)
            return false;
        set_host(side, host);
    } else if (side->files && !look->files) {
        return true;
    } else if (side->files == look->files && side->form == look->form) {
        side->copies = side->copies || side->stamp != look->stamp;
        side->stamp = side->stamp < look->stamp ? side->stamp : look->stamp;
        set_host(side, host);
    } else if (side->other == SEEN_NOBODY) {
        side->other = host;
    }
    return true;
}

static bool add_host(struct seen *seen, const struct buf *reply, unsigned host)
{
    struct arena arena = {0};
    struct pack pack = pack_reader(reply->data, reply->size);
    bool fine = true;
    for (size_t k = 0; k < seen->sides && fine; k++) {
        struct looks looks = {0};
        look_pack(&pack, &looks, &arena);
        for (size_t i = 0; i < looks.count && fine && !pack.bad; i++) {
            const int64_t rank = looks.list[i].rank;
            const size_t at = look_place(seen->ranks, seen->count, sizeof *seen->ranks, rank);
            if (at == seen->count || seen->ranks[at].rank != rank) {
                struct seen_rank *grown = look_make_room(&seen->arena, seen->ranks, &seen->count,
                                                         &seen->capacity, at, sizeof *grown);
                seen->ranks = grown ? grown : seen->ranks;
                fine = grown;
                if (grown)
                    grown[at].rank = rank;
            }
            fine = fine && add_look(seen, &seen->ranks[at].side[k], &looks.list[i], host);
        }
    }
    arena_free(&arena);
    return fine;
}

/* A path with rank folders, none of which has a dump.json, is no dump. */
static void drop_empty(struct seen *seen)
{
    size_t files[LOOK_SIDES] = {0}, kept = 0;
    for (size_t i = 0; i < seen->count; i++)
        for (size_t k = 0; k < seen->sides; k++)
            files[k] += seen->ranks[i].side[k].files;
    for (size_t i = 0; i < seen->count; i++) {
        struct seen_rank rank = seen->ranks[i];
        bool any = false;
        for (size_t k = 0; k < seen->sides; k++) {
            if (!files[k])
                rank.side[k] = (struct seen_side){0};
            any = any || rank.side[k].json;
        }
        if (any)
            seen->ranks[kept++] = rank;
    }
    seen->count = kept;
}

static enum plumb_code check_heard(const struct seen *seen, const struct session *session,
                                   struct plumb_error *err)
{
    unsigned answers = 0, lost = SEEN_NOBODY;
    bool same = true;
    for (unsigned h = seen->hosts.count; h--;) {
        answers += session->told[h].like != SEEN_NOBODY;
        lost = session->told[h].like == SEEN_NOBODY ? h : lost;
        same = same && (session->told[h].like == SEEN_NOBODY ||
                        session->told[h].like == session->told[0].like);
    }
    if ((lost == SEEN_NOBODY && !seen->hosts.unheard) || (same && answers > 1))
        return PLUMB_OK;
    if (lost == SEEN_NOBODY)
        return plumb_fail(err, PLUMB_E_IO,
                          "%u process%s been heard, so nobody knows what the dumps on %s; start "
                          "again",
                          seen->hosts.unheard,
                          seen->hosts.unheard == 1 ? " has not" : "es have not",
                          seen->hosts.unheard == 1 ? "its host are" : "their hosts are");
    return plumb_fail(err, PLUMB_E_IO,
                      "%s has not said what it has of the dumps; start again with it, or without",
                      seen->hosts.names[lost]);
}

/* Hosts that have a copy of the same rank: what lies beside dump.json has to be the same, too. */
static enum plumb_code check_copies(struct seen *seen, struct plumb_crew *crew,
                                    struct plumb_error *err)
{
    struct arena arena = {0};
    struct session session = {
        .seen = seen, .places = crew_places_of(crew), .request = {.sides = seen->sides}};
    struct look_wanted *list = arena_array(&arena, seen->count * LOOK_SIDES, sizeof *list);
    enum plumb_code code = list ? PLUMB_OK : plumb_no_memory(err);
    memcpy(session.request.paths, seen->paths, sizeof seen->paths);
    session.request.wanted = list;
    for (size_t i = 0; i < seen->count && list; i++)
        for (size_t k = 0; k < seen->sides; k++)
            if (seen->ranks[i].side[k].copies && seen->ranks[i].side[k].other == SEEN_NOBODY)
                list[session.request.count++] = (struct look_wanted){k, seen->ranks[i].rank};
    if (!code && session.request.count) {
        code = ask_all(&session, crew, err);
        for (unsigned h = 0; h < seen->hosts.count && !code; h++) {
            if (session.told[h].like == SEEN_NOBODY)
                continue;
            const struct buf *reply = &session.told[session.told[h].like].bytes;
            struct pack pack = pack_reader(reply->data, reply->size);
            for (size_t i = 0; i < session.request.count; i++) {
                const struct look_wanted *wanted = &list[i];
                const size_t at =
                    look_place(seen->ranks, seen->count, sizeof *seen->ranks, wanted->rank);
                struct seen_side *side = &seen->ranks[at].side[wanted->side];
                uint64_t content = 0;
                pack_u64(&pack, &content);
                if (!has_host(side, h))
                    continue;
                if (h == side->first)
                    side->form = content;
                else if (side->form != content && side->other == SEEN_NOBODY)
                    side->other = h;
            }
        }
    }
    if (session.told)
        forget(&session);
    arena_free(&arena);
    return code;
}

enum plumb_code seen_look(struct seen *seen, struct plumb_crew *crew, const char *const *paths,
                          size_t sides, struct plumb_error *err)
{
    *seen = (struct seen){.sides = sides};
    struct session session = {
        .seen = seen, .places = crew_places_of(crew), .request = {.sides = sides}};
    for (size_t k = 0; k < sides; k++)
        seen->paths[k] = session.request.paths[k] = paths[k];
    enum plumb_code code = crew_hosts(crew, &seen->hosts, &seen->arena, err);
    if (!code)
        code = ask_all(&session, crew, err);
    if (!code)
        code = check_heard(seen, &session, err);
    for (unsigned h = 0; h < seen->hosts.count && !code; h++)
        if (session.told[h].like != SEEN_NOBODY &&
            !add_host(seen, &session.told[session.told[h].like].bytes, h))
            code = plumb_no_memory(err);
    if (session.told)
        forget(&session);
    if (!code)
        drop_empty(seen);
    /* What a map leads to need not be all of a rank; sizes of tensors are compared as they come. */
    return code || crew_places_of(crew)->given ? code : check_copies(seen, crew, err);
}

void seen_free(struct seen *seen)
{
    arena_free(&seen->arena);
    *seen = (struct seen){0};
}

/* ---- Questions ------------------------------------------------------------------------------- */

size_t seen_ranks(const struct seen *seen, size_t side)
{
    size_t count = 0;
    for (size_t i = 0; i < seen->count; i++)
        count += seen->ranks[i].side[side].json != NULL;
    return count;
}

bool seen_has(const struct seen *seen, size_t i, unsigned host)
{
    for (size_t k = 0; k < seen->sides; k++) {
        const struct seen_side *side = &seen->ranks[i].side[k];
        if (side->json && (side->other != SEEN_NOBODY || !has_host(side, host)))
            return false;
    }
    return true;
}

static const char *rank_text(const struct seen_rank *rank, struct arena *arena)
{
    const char *text = rank->rank < 0 ? "the rank without a number"
                                      : arena_printf(arena, "rank %" PRId64, rank->rank);
    return text ? text : "a rank";
}

/* "host1", "host1 and 3 more". */
static const char *hosts_text(const struct seen *seen, const struct seen_side *side,
                              struct arena *arena)
{
    const char *first = seen->hosts.names[side->first];
    unsigned count = 0;
    for (unsigned h = 0; h < seen->hosts.count; h++)
        count += has_host(side, h);
    const char *text = count > 1 ? arena_printf(arena, "%s and %u more", first, count - 1) : first;
    return text ? text : first;
}

const char *seen_trouble(const struct seen *seen, size_t i, struct arena *arena)
{
    const struct seen_rank *rank = &seen->ranks[i];
    for (size_t k = 0; k < seen->sides; k++)
        if (rank->side[k].json && rank->side[k].other != SEEN_NOBODY)
            return arena_printf(arena, "%s of %s is not the same on %s and on %s",
                                rank_text(rank, arena), seen->paths[k],
                                seen->hosts.names[rank->side[k].first],
                                seen->hosts.names[rank->side[k].other]);
    for (unsigned h = 0; h < seen->hosts.count; h++)
        if (seen_has(seen, i, h))
            return NULL;
    return arena_printf(arena, "%s of %s is on %s, of %s on %s: no host has both",
                        rank_text(rank, arena), seen->paths[0],
                        hosts_text(seen, &rank->side[0], arena), seen->paths[1],
                        hosts_text(seen, &rank->side[1], arena));
}

const char *seen_lost(const struct seen *seen, size_t i, struct arena *arena)
{
    const struct seen_rank *rank = &seen->ranks[i];
    const size_t k = !rank->side[0].json;
    return arena_printf(arena, "%s of %s is on %s, which did not answer; start again",
                        rank_text(rank, arena), seen->paths[k],
                        hosts_text(seen, &rank->side[k], arena));
}

enum plumb_code seen_here(const struct seen *seen, struct plumb_error *err)
{
    struct arena arena = {0};
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < seen->count && !code; i++)
        for (size_t k = 0; k < seen->sides && !code; k++) {
            const struct seen_side *side = &seen->ranks[i].side[k];
            if (side->json && side->other != SEEN_NOBODY)
                code = plumb_fail(err, PLUMB_E_IO, "%s is not the same on %s and on %s",
                                  rank_text(&seen->ranks[i], &arena),
                                  seen->hosts.names[side->first], seen->hosts.names[side->other]);
            else if (side->json && !has_host(side, 0))
                code = plumb_fail(err, PLUMB_E_IO,
                                  "%s is on %s only, and process 0, on %s, has to see all of them",
                                  rank_text(&seen->ranks[i], &arena),
                                  hosts_text(seen, side, &arena), seen->hosts.names[0]);
            if (code)
                plumb_error_in_file(err, seen->paths[k]);
        }
    arena_free(&arena);
    return code;
}
