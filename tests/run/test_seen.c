/* What hosts see of dumps: all that one of them has, what two of them have differently, and hosts
 * that do not answer. Hosts are forked processes that say a name of their own. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../crew/sockets.h"
#include "crew/message.h"
#include "run/seen.h"
#include "scratch.h"

#include <fcntl.h>

enum habit { HONEST, DIES, STOPS, SILENT, LIES };

static struct scratch scratch;
static enum habit habits[SOCKETS_MOST];

/* ---- Other hosts ---- */

static const struct crew_transport *real;

/* Process N is on hostN. */
static bool send_named(void *context, unsigned to, const void *bytes, size_t size)
{
    struct message message = {0};
    struct pack in = pack_reader(bytes, size);
    struct buf changed = {0};
    char host[32];
    (void)context;
    message_pack(&in, &message);
    if (message.kind == MESSAGE_HELLO) {
        message.host_size = (size_t)snprintf(host, sizeof host, "host%u", real->me);
        message.host = host;
    }
    struct pack out = pack_writer(&changed);
    message_pack(&out, &message);
    const bool sent = real->send(real->context, to, changed.data, changed.size);
    buf_free(&changed);
    return sent;
}

static struct crew_places places_of(unsigned host)
{
    struct crew_places places = {0};
    char rule[512];
    struct plumb_error err;
    snprintf(rule, sizeof rule, "*:/dump=%s/host%u", scratch.folder, host);
    assert_int_equal(crew_places_add(&places, rule, "", &err), PLUMB_OK);
    places.given = 0; /* disks, not copies that a user told of */
    return places;
}

static bool look(void *context, const void *request, size_t size, struct buf *reply)
{
    const struct crew_handler *handler = context;
    if (habits[real->me] == DIES)
        raise(SIGKILL);
    if (habits[real->me] == STOPS)
        raise(SIGSTOP);
    if (habits[real->me] == LIES) {
        buf_append(reply, "\x03\x7f\xff", 3);
        return true;
    }
    return handler->answer(handler->context, request, size, reply);
}

static void serve(const struct crew_transport *transport)
{
    struct crew_transport named = *transport;
    const struct crew_places places = places_of(transport->me);
    struct crew_handler handler = seen_handler(&places);
    const struct crew_handler own = {handler.kind, &handler, look};
    const struct crew_serving serving = {&own, 1, 1, 10};
    struct plumb_error err;
    real = transport;
    named.send = send_named;
    if (habits[transport->me] == SILENT)
        pause();
    crew_serve(&named, &serving, &err);
}

/* ---- Process 0 ---- */

static enum plumb_code look_all(struct seen *seen, unsigned hosts, struct plumb_error *err)
{
    static const char *const paths[] = {"/dump/npu", "/dump/gpu"};
    struct sockets sockets;
    struct plumb_crew *crew;
    struct crew_places places = places_of(0);
    const struct crew_transport transport = sockets_start(&sockets, hosts, serve);
    const struct crew_options options = {.lanes = 1, .patience = 1, .places = &places};
    assert_int_equal(crew_new(&crew, &transport, &options, err), PLUMB_OK);
    const enum plumb_code code = seen_look(seen, crew, paths, 2, err);
    crew_free(crew, true);
    sockets_end(&sockets);
    crew_places_free(&places);
    return code;
}

/* A file of a host; times are those of the writing. */
static void put(unsigned host, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "host%u/%s", host, name);
    scratch_write(&scratch, path, text, strlen(text));
}

static int set_up(void **state)
{
    (void)state;
    scratch_make(&scratch);
    memset(habits, 0, sizeof habits);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

static void test_union(void **state)
{
    struct seen seen;
    struct plumb_error err;
    struct arena arena = {0};
    (void)state;
    put(0, "npu/step0/rank0/dump.json", "{}");
    put(0, "gpu/step0/rank0/dump.json", "{}");
    put(1, "npu/step0/rank10/dump.json", "{}");
    put(1, "npu/step1/rank10/dump.json", "{}");
    put(2, "gpu/step0/rank9/dump.json", "{}");
    put(2, "gpu/step0/rank10/other", ""); /* a folder of it, and no dump.json */
    put(1, "gpu/step0/rank10/dump.json", "{}");
    assert_int_equal(look_all(&seen, 4, &err), PLUMB_OK);
    assert_int_equal(seen.hosts.count, 4);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen_ranks(&seen, 0), 2);
    assert_int_equal(seen_ranks(&seen, 1), 3);
    static const struct {
        int64_t rank;
        unsigned host;
    } expected[] = {{0, 0}, {9, 2}, {10, 1}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(seen.ranks[i].rank, expected[i].rank);
        for (unsigned h = 0; h < 4; h++)
            assert_int_equal(seen_has(&seen, i, h), h == expected[i].host);
        assert_null(seen_trouble(&seen, i, &arena));
    }
    assert_null(seen.ranks[1].side[0].json);
    assert_int_equal(seen.ranks[2].side[0].files, 2);
    assert_string_equal(seen.ranks[2].side[0].json, "/dump/npu/step0/rank10/dump.json");
    assert_int_equal(seen_here(&seen, &err), PLUMB_E_IO);
    assert_string_equal(err.file, "/dump/gpu");
    assert_non_null(strstr(err.message, "rank 9 is on host2 only, and process 0"));
    arena_free(&arena);
    seen_free(&seen);
}

static void check_trouble(const char *text)
{
    struct seen seen;
    struct plumb_error err;
    struct arena arena = {0};
    assert_int_equal(look_all(&seen, 3, &err), PLUMB_OK);
    assert_int_equal(seen.count, 1);
    const char *said = seen_trouble(&seen, 0, &arena);
    if (text)
        assert_string_equal(said, text);
    else
        assert_null(said);
    for (unsigned h = 0; h < 3; h++)
        assert_int_equal(seen_has(&seen, 0, h), !text && h);
    arena_free(&arena);
    seen_free(&seen);
}

static void test_two_that_have_it(void **state)
{
    (void)state;
    for (unsigned host = 1; host < 3; host++) {
        put(host, "npu/step0/rank3/dump.json", "{\"data\": 1}");
        put(host, "npu/step0/rank3/dump_tensor_data/a.npy", "abc");
        put(host, "gpu/step0/rank3/dump.json", "{}");
    }
    check_trouble(NULL);
    static const char differs[] = "rank 3 of /dump/npu is not the same on host1 and on host2";
    put(2, "npu/step0/rank3/dump_tensor_data/a.npy", "abcd");
    check_trouble(differs);
    put(2, "npu/step0/rank3/dump_tensor_data/a.npy", "abc");
    put(2, "npu/step0/rank3/dump_tensor_data/b.npy", "");
    check_trouble(differs);
    put(1, "npu/step0/rank3/dump_tensor_data/b.npy", "");
    check_trouble(NULL);
    put(2, "npu/step0/rank3/dump.json", "{\"data\": 2}");
    check_trouble(differs);
    put(2, "npu/step0/rank3/dump.json", "{\"data\": 12}");
    check_trouble(differs);
}

static void test_sides_apart(void **state)
{
    (void)state;
    put(1, "npu/rank3/dump.json", "{}");
    put(2, "gpu/rank3/dump.json", "{}");
    check_trouble("rank 3 of /dump/npu is on host1, of /dump/gpu on host2: no host has both");
}

static void test_no_dump(void **state)
{
    struct seen seen;
    struct plumb_error err;
    (void)state;
    put(1, "npu/rank3/other", "");
    put(2, "gpu/a.npy", "");
    assert_int_equal(look_all(&seen, 3, &err), PLUMB_OK);
    assert_int_equal(seen.count, 0);
    assert_int_equal(seen_here(&seen, &err), PLUMB_OK);
    seen_free(&seen);
}

/* A host that is lost may have had what nobody else has. */
static void test_one_is_lost(void **state)
{
    struct seen seen;
    struct plumb_error err;
    (void)state;
    put(0, "npu/rank0/dump.json", "{}");
    put(1, "npu/rank1/dump.json", "{}");
    put(2, "npu/rank2/dump.json", "{}");
    for (enum habit habit = DIES; habit <= LIES; habit++) {
        habits[2] = habit;
        assert_int_equal(look_all(&seen, 3, &err), PLUMB_E_IO);
        assert_non_null(strstr(err.message, habit == SILENT ? "1 process has not been heard"
                                                            : "host2 has not said what it has"));
        seen_free(&seen);
    }
}

/* Several that see the same have a file system in common. */
static void test_one_is_lost_and_not_missed(void **state)
{
    struct seen seen;
    struct plumb_error err;
    (void)state;
    put(0, "npu/rank0/dump.json", "{}");
    assert_int_equal(symlink("host0", scratch_path(&scratch, "host1")), 0);
    assert_int_equal(symlink("host0", scratch_path(&scratch, "host2")), 0);
    habits[2] = STOPS;
    assert_int_equal(look_all(&seen, 3, &err), PLUMB_OK);
    assert_int_equal(seen.count, 1);
    assert_true(seen_has(&seen, 0, 1));
    seen_free(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_union, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_that_have_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sides_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_dump, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_is_lost_and_not_missed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
