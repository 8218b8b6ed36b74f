/* Processes that share work: every piece is taken once, whoever dies, hangs, lies or refuses; and
 * what was finished before is not done again. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "crew/journal.h"
#include "crew/message.h"
#include "scratch.h"
#include "sockets.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { PIECES = 200, MOST = 4096 };

/* What a process does to the pieces it gets. */
enum habit { HONEST, DIES, STOPS, LIES, REFUSES, SLEEPS, BABBLES };

static enum habit habits[SOCKETS_MOST];
static atomic_uint *answered; /* pieces that other processes did, in shared memory */
static unsigned served_lanes = 1;

/* ---- Other processes ---- */

static bool square(void *context, const void *request, size_t size, struct buf *reply)
{
    const unsigned *me = context;
    uint64_t number = 0;
    struct pack in = pack_reader(request, size), out = pack_writer(reply);
    pack_u64(&in, &number);
    if (!pack_good(&in))
        return false;
    const unsigned before = atomic_fetch_add(answered, 1);
    const enum habit habit = habits[*me];
    if (habit == REFUSES)
        return false;
    if (habit == DIES && before > 5)
        raise(SIGKILL);
    if (habit == STOPS && before > 5)
        raise(SIGSTOP);
    if (habit == SLEEPS)
        usleep(2000);
    number *= number;
    if (habit == LIES)
        buf_append(reply, "\xff\xff\xff", before % 4);
    else
        pack_u64(&out, &number);
    return true;
}

static void serve(const struct crew_transport *transport)
{
    unsigned me = transport->me;
    const struct crew_handler handler = {"square", &me, square};
    const struct crew_serving serving = {&handler, 1, served_lanes, 10};
    struct plumb_error err;
    for (unsigned i = 0; i < 50 && habits[me] == BABBLES; i++) {
        char noise[40];
        for (size_t k = 0; k < sizeof noise; k++)
            noise[k] = (char)(i * 7 + k * k * i);
        transport->send(transport->context, 0, noise, 1 + i % sizeof noise);
    }
    crew_serve(transport, &serving, &err);
}

/* ---- Process 0 ---- */

struct squares {
    uint64_t taken[MOST];   /* how often */
    uint64_t results[MOST]; /* the last */
    unsigned worked;        /* here */
    unsigned resumed;
    size_t stop_after, all; /* 0: never */
    uint64_t salt;          /* of the requests */
    pthread_mutex_t lock;
};

static void ask(void *context, size_t piece, struct buf *request)
{
    const struct squares *squares = context;
    uint64_t number = piece + squares->salt;
    struct pack pack = pack_writer(request);
    pack_u64(&pack, &number);
}

static void work(void *context, size_t piece, struct buf *reply)
{
    struct squares *squares = context;
    uint64_t number = (piece + squares->salt) * (piece + squares->salt);
    struct pack pack = pack_writer(reply);
    usleep(300);
    pthread_mutex_lock(&squares->lock);
    squares->worked++;
    pthread_mutex_unlock(&squares->lock);
    pack_u64(&pack, &number);
}

static bool take(void *context, size_t piece, const void *reply, size_t size, bool resumed)
{
    struct squares *squares = context;
    struct pack pack = pack_reader(reply, size);
    uint64_t number = 0;
    pack_u64(&pack, &number);
    if (!pack_good(&pack))
        return false;
    squares->resumed += resumed;
    squares->taken[piece]++;
    squares->results[piece] = number;
    squares->all++;
    return true;
}

static bool over(void *context)
{
    const struct squares *squares = context;
    return squares->stop_after && squares->all >= squares->stop_after;
}

static void run_loop(struct plumb_crew *crew, struct squares *squares, size_t count)
{
    struct plumb_error err;
    const struct crew_job job = {.kind = "square",
                                 .count = count,
                                 .context = squares,
                                 .ask = ask,
                                 .work = work,
                                 .take = take,
                                 .over = over};
    pthread_mutex_init(&squares->lock, NULL);
    assert_int_equal(crew_run(crew, &job, &err), PLUMB_OK);
}

static void check_all(const struct squares *squares, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(squares->taken[i], 1);
        assert_int_equal(squares->results[i], (i + squares->salt) * (i + squares->salt));
    }
}

/* Two loops one after the other with so many processes; whether all said goodbye. */
static bool run_crew(unsigned count, unsigned lanes, struct squares *first)
{
    static struct squares second;
    struct sockets sockets;
    struct plumb_crew *crew;
    struct plumb_error err;
    atomic_store(answered, 0);
    const struct crew_transport transport = sockets_start(&sockets, count, serve);
    const struct crew_options options = {.lanes = lanes, .patience = 1};
    *first = (struct squares){0};
    second = (struct squares){.salt = 7};
    assert_int_equal(crew_new(&crew, &transport, &options, &err), PLUMB_OK);
    run_loop(crew, first, PIECES);
    run_loop(crew, &second, PIECES / 2);
    const bool clean = crew_free(crew, true);
    sockets_end(&sockets);
    check_all(first, PIECES);
    check_all(&second, PIECES / 2);
    return clean;
}

static void set_habits(enum habit all)
{
    for (unsigned i = 0; i < SOCKETS_MOST; i++)
        habits[i] = all;
}

static void test_every_piece_once(void **state)
{
    static struct squares squares;
    (void)state;
    set_habits(HONEST);
    for (unsigned count = 1; count <= 8; count *= 2) {
        assert_true(run_crew(count, 1, &squares));
        if (count > 1)
            assert_true(atomic_load(answered) > 0);
    }
    served_lanes = 3;
    assert_true(run_crew(3, 4, &squares));
    served_lanes = 1;
}

static void test_one_that_dies(void **state)
{
    static struct squares squares;
    (void)state;
    set_habits(HONEST);
    habits[2] = DIES;
    assert_false(run_crew(4, 1, &squares));
    set_habits(DIES);
    assert_false(run_crew(4, 2, &squares));
}

static void test_one_that_stops(void **state)
{
    static struct squares squares;
    (void)state;
    set_habits(HONEST);
    habits[1] = STOPS;
    assert_false(run_crew(3, 1, &squares));
}

static void test_replies_that_are_no_good(void **state)
{
    static struct squares squares;
    (void)state;
    set_habits(HONEST);
    habits[1] = LIES;
    run_crew(3, 1, &squares);
    set_habits(LIES);
    run_crew(3, 1, &squares);
}

static void test_one_that_cannot(void **state)
{
    static struct squares squares;
    (void)state;
    set_habits(REFUSES);
    assert_true(run_crew(3, 1, &squares));
    habits[2] = HONEST;
    assert_true(run_crew(3, 1, &squares));
}

static void test_noise(void **state)
{
    static struct squares squares;
    (void)state;
    set_habits(BABBLES);
    run_crew(4, 1, &squares);
}

/* A slow process gets less than quick ones: work goes to whoever is idle. */
static void test_idle_ones_get_more(void **state)
{
    static struct squares squares;
    (void)state;
    set_habits(SLEEPS);
    run_crew(2, 1, &squares);
    assert_true(squares.worked > PIECES / 2);
}

/* ---- The journal ---- */

static void run_journal(struct squares *squares, const char *folder, const char *identity,
                        size_t stop_after, uint64_t salt)
{
    struct sockets sockets;
    struct plumb_crew *crew;
    struct plumb_error err;
    const struct crew_transport transport = sockets_start(&sockets, 2, serve);
    const struct crew_options options = {
        .lanes = 1, .scratch = folder, .identity = identity, .identity_size = strlen(identity)};
    *squares = (struct squares){.stop_after = stop_after, .salt = salt};
    assert_int_equal(crew_new(&crew, &transport, &options, &err), PLUMB_OK);
    run_loop(crew, squares, PIECES);
    crew_free(crew, !stop_after);
    sockets_end(&sockets);
    if (!stop_after)
        check_all(squares, PIECES);
}

static void test_next_start_goes_on(void **state)
{
    static struct squares squares;
    struct scratch scratch;
    (void)state;
    set_habits(HONEST);
    scratch_make(&scratch);
    run_journal(&squares, scratch.folder, "one", 60, 0);
    run_journal(&squares, scratch.folder, "another", 0, 0);
    assert_int_equal(squares.resumed, 0);
    run_journal(&squares, scratch.folder, "one", 0, 0);
    assert_true(squares.resumed >= 60);
    run_journal(&squares, scratch.folder, "one", 0, 0); /* which had finished */
    assert_int_equal(squares.resumed, 0);
    run_journal(&squares, scratch.folder, "one", 60, 0);
    run_journal(&squares, scratch.folder, "one", 0, 5); /* other requests */
    assert_int_equal(squares.resumed, 0);
    scratch_remove(&scratch);
}

static void test_torn_journal(void **state)
{
    static struct squares squares;
    struct scratch scratch;
    (void)state;
    set_habits(HONEST);
    for (int damage = 0; damage < 3; damage++) {
        struct crew_journal journal;
        struct plumb_error err;
        scratch_make(&scratch);
        run_journal(&squares, scratch.folder, "one", 60, 0);
        assert_int_equal(crew_journal_open(&journal, scratch.folder, "one", 3, &err), PLUMB_OK);
        assert_true(journal.count >= 60);
        const uint64_t end = journal.end, tenth = journal.entries[10].at;
        char *path = strdup(journal.path);
        /* nobody else may have it now */
        struct crew_journal other;
        assert_int_equal(crew_journal_open(&other, scratch.folder, "one", 3, &err), PLUMB_E_ARG);
        crew_journal_close(&journal, false);
        const int fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        if (damage == 0)
            assert_int_equal(ftruncate(fd, (off_t)end - 1), 0);
        if (damage == 1)
            assert_int_equal(pwrite(fd, "\x7e", 1, (off_t)tenth), 1);
        if (damage == 2)
            assert_int_equal(pwrite(fd, "?", 1, 2), 1);
        close(fd);
        free(path);
        run_journal(&squares, scratch.folder, "one", 0, 0);
        assert_true(damage == 0 ? squares.resumed >= 59
                                : squares.resumed == (damage == 1 ? 10 : 0));
        scratch_remove(&scratch);
    }
}

/* ---- Where files are ---- */

static void test_places(void **state)
{
    struct crew_places places = {0};
    struct plumb_error err = {0};
    struct arena arena = {0};
    (void)state;
    assert_int_equal(crew_places_add(&places, "here:/dump=/disk0/dump/", "here", &err), PLUMB_OK);
    assert_int_equal(crew_places_add(&places, "there:/dump=/wrong", "here", &err), PLUMB_OK);
    assert_int_equal(crew_places_add(&places, "*:/dump/step1=/disk1", "here", &err), PLUMB_OK);
    assert_int_equal(crew_places_add(&places, "no rule=", "here", &err), PLUMB_E_ARG);
    assert_int_equal(crew_places_add(&places, "/no/such/file", "here", &err), PLUMB_E_IO);
    assert_string_equal(crew_places_here(&places, "/dump/step0/x", &arena), "/disk0/dump/step0/x");
    assert_string_equal(crew_places_here(&places, "/dump/step1/x", &arena), "/disk1/x");
    assert_string_equal(crew_places_here(&places, "/dump/step11/x", &arena),
                        "/disk0/dump/step11/x");
    assert_string_equal(crew_places_here(&places, "/dumps/x", &arena), "/dumps/x");
    assert_string_equal(crew_places_here(NULL, "/dump/x", &arena), "/dump/x");
    plumb_fail(&err, PLUMB_E_IO, "gone");
    snprintf(err.file, sizeof err.file, "/disk1/x.npy");
    crew_places_name(&places, &err);
    assert_string_equal(err.file, "/dump/step1/x.npy");
    arena_free(&arena);
    crew_places_free(&places);
}

int main(void)
{
    answered =
        mmap(NULL, sizeof *answered, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_piece_once),   cmocka_unit_test(test_one_that_dies),
        cmocka_unit_test(test_one_that_stops),     cmocka_unit_test(test_replies_that_are_no_good),
        cmocka_unit_test(test_one_that_cannot),    cmocka_unit_test(test_noise),
        cmocka_unit_test(test_idle_ones_get_more), cmocka_unit_test(test_next_start_goes_on),
        cmocka_unit_test(test_torn_journal),       cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
