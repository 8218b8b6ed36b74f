/* The search across ranks: who talks with whom, in which order, and who is to blame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "msprobe/profile.h"
#include "ranks/exchange.h"

#include <string.h>

enum { MOST = 16 };

static const struct ranks_rules usual = {0}, differences = {.all_ties = true};
static const struct ranks_rules *const origin = &msprobe_ranks.overflow;

static struct graph_node compute(const char *name, bool bad)
{
    return (struct graph_node){.name = name, .bad = bad};
}

/* An exchange with everybody; bad: it made what it did not get. */
static struct graph_node all(const char *name, bool bad_input, bool bad_output)
{
    return (struct graph_node){.name = name,
                               .communication = true,
                               .bad = bad_output && !bad_input,
                               .tainted = bad_input || bad_output,
                               .bad_input = bad_input};
}

static struct graph_node with(struct graph_node node, enum graph_role role, const int64_t *peers,
                              size_t count)
{
    node.role = role;
    node.peers = peers;
    node.peer_count = count;
    return node;
}

struct world {
    struct graph_node nodes[4][MOST];
    struct graph_rank ranks[4];
    size_t count;
    struct arena arena;
    struct graph_result result;
};

static void add(struct world *w, size_t rank, struct graph_node node)
{
    assert_true(rank < 4 && w->ranks[rank].count < MOST);
    w->ranks[rank].number = (int64_t)rank;
    w->ranks[rank].nodes = w->nodes[rank];
    w->nodes[rank][w->ranks[rank].count++] = node;
    if (rank >= w->count)
        w->count = rank + 1;
}

static void search(struct world *w, const struct ranks_rules *rules)
{
    assert_int_equal(graph_search(&w->result, w->ranks, w->count, rules, &w->arena), PLUMB_OK);
}

static void expect(const struct world *w, size_t number, size_t rank, const char *name)
{
    assert_true(number < w->result.count);
    assert_int_equal(w->result.found[number]->rank, rank);
    assert_string_equal(w->result.found[number]->name, name);
}

static void test_names(void **state)
{
    (void)state;
    assert_true(graph_is_communication("Distributed.all_reduce.0.forward"));
    assert_true(graph_is_communication("Distributed._reduce_scatter_base.0.forward"));
    assert_true(graph_is_communication("Distributed.batch_isend_irecv.3.forward"));
    assert_false(graph_is_communication("Distributed.barrier.0.forward"));
    assert_false(graph_is_communication("Torch.gather.0.forward"));
    assert_int_equal(graph_direction("send", 4), GRAPH_TARGET);
    assert_int_equal(graph_direction("broadcast", 9), GRAPH_SOURCE);
    assert_int_equal(graph_direction("all_reduce", 10), GRAPH_LINK);
    size_t length;
    assert_memory_equal(graph_op("Distributed.send.0.forward", &length), "send", 4);
    assert_int_equal(length, 4);
    graph_op("odd", &length);
    assert_int_equal(length, 3);
}

static void test_nothing(void **state)
{
    (void)state;
    struct world w = {0};
    search(&w, &usual);
    assert_int_equal(w.result.phase, GRAPH_CLEAN);
    add(&w, 0, compute("a", false));
    add(&w, 1, all("Distributed.all_reduce.0.forward", false, false));
    search(&w, &usual);
    assert_int_equal(w.result.phase, GRAPH_CLEAN);
    assert_int_equal(w.result.count, 0);
    arena_free(&w.arena);
}

/* The first of each rank, and nothing from later on; ignored nodes never. */
static void test_before(void **state)
{
    (void)state;
    struct world w = {0};
    for (size_t r = 0; r < 2; r++) {
        struct graph_node ignored = compute("Torch.empty.0.forward", true);
        ignored.ignored = true;
        add(&w, r, ignored);
        add(&w, r, compute("first", r == 1));
        add(&w, r, compute("second", r == 1));
        add(&w, r, all("Distributed.all_reduce.0.forward", false, true));
    }
    search(&w, &usual);
    assert_int_equal(w.result.phase, GRAPH_BEFORE);
    assert_int_equal(w.result.count, 1);
    expect(&w, 0, 1, "first");
    arena_free(&w.arena);
}

static void test_after(void **state)
{
    (void)state;
    struct world w = {0};
    for (size_t r = 0; r < 3; r++) {
        add(&w, r, all("Distributed.all_reduce.0.forward", false, false));
        add(&w, r, compute("fine", false));
        add(&w, r, compute("late", r != 1));
        add(&w, r, compute("later", true));
    }
    search(&w, &usual);
    assert_int_equal(w.result.phase, GRAPH_AFTER);
    assert_int_equal(w.result.count, 3);
    expect(&w, 0, 0, "late");
    expect(&w, 1, 1, "later");
    expect(&w, 2, 2, "late");
    arena_free(&w.arena);
}

/* A compute node poisons what its rank sends; the receiver is not to blame, nor is whoever comes
 * later. */
static void test_send_and_receive(void **state)
{
    (void)state;
    static const int64_t zero = 0, one = 1;
    const struct ranks_rules *rules[] = {&usual, origin};
    for (size_t i = 0; i < 2; i++) {
        struct world w = {0};
        add(&w, 0, all("Distributed.all_reduce.0.forward", false, false));
        add(&w, 0, compute("fine", false));
        add(&w, 0, compute("culprit", true));
        add(&w, 0, with(all("Distributed.send.0.forward", true, true), GRAPH_SOURCE, &one, 1));
        add(&w, 1, all("Distributed.all_reduce.0.forward", false, false));
        add(&w, 1, with(all("Distributed.recv.0.forward", false, true), GRAPH_TARGET, &zero, 1));
        add(&w, 1, compute("victim", true));
        add(&w, 1, all("Distributed.all_reduce.1.forward", true, true));
        search(&w, rules[i]);
        assert_int_equal(w.result.phase, GRAPH_DURING);
        assert_int_equal(w.result.count, 1);
        /* By position alone recv comes first, and the origin blames it. */
        if (i)
            expect(&w, 0, 1, "Distributed.recv.0.forward");
        else
            expect(&w, 0, 0, "culprit");
        assert_int_equal(w.nodes[0][3].layer, w.nodes[1][1].layer);
        arena_free(&w.arena);
    }
}

/* Of a broadcast the source's input counts, the input of the others does not: their buffers may
 * hold anything before. */
static void test_broadcast(void **state)
{
    (void)state;
    static const int64_t everybody[] = {0, 1, 2};
    const struct ranks_rules *rules[] = {&usual, origin};
    for (size_t i = 0; i < 2; i++) {
        struct world w = {0};
        for (size_t r = 0; r < 3; r++) {
            add(&w, r, all("Distributed.all_reduce.0.forward", false, false));
            add(&w, r, compute("op", r != 0));
            add(&w, r,
                with(all("Distributed.broadcast.0.forward", true, true),
                     r == 1 ? GRAPH_SOURCE : GRAPH_TARGET, everybody, 3));
        }
        search(&w, rules[i]);
        assert_int_equal(w.result.phase, GRAPH_DURING);
        assert_int_equal(w.result.count, 1);
        expect(&w, 0, 1, "op");
        arena_free(&w.arena);
    }
}

/* Pairs of members that belong together. */
static size_t edges_of(struct world *w, const struct ranks_rules *rules)
{
    struct exchange x;
    assert_int_equal(exchange_build(&x, w->ranks, w->count, rules, &w->arena), PLUMB_OK);
    size_t pairs = x.edge_count;
    for (size_t t = 0; t < x.tie_count; t++) {
        const size_t n = x.tie_first[t + 1] - x.tie_first[t];
        pairs += n * (n - 1) / 2;
    }
    return pairs;
}

static void test_groups(void **state)
{
    (void)state;
    static const int64_t low[] = {0, 1}, high[] = {2, 3}, outer[] = {0, 3};
    struct world w = {0};
    for (size_t r = 0; r < 4; r++) {
        add(&w, r,
            with(all("Distributed.all_reduce.0.forward", false, false), GRAPH_LINK,
                 r < 2 ? low : high, 2));
        if (r == 0 || r == 3)
            add(&w, r,
                with(all("Distributed.all_reduce.1.forward", false, false), GRAPH_LINK, outer, 2));
    }
    assert_int_equal(edges_of(&w, &usual), 3);
    assert_int_equal(w.nodes[0][1].layer, 1);
    assert_int_equal(w.nodes[3][1].layer, 1);
    assert_int_equal(edges_of(&w, origin), 3);
    arena_free(&w.arena);
}

/* Nodes that name no ranks meet all ranks; a send that names none meets nobody. */
static void test_unnamed_peers(void **state)
{
    (void)state;
    struct world w = {0};
    for (size_t r = 0; r < 3; r++)
        add(&w, r, all("Distributed.all_gather.0.forward", false, false));
    assert_int_equal(edges_of(&w, &usual), 3);
    arena_free(&w.arena);

    struct world p2p = {0};
    add(&p2p, 0, with(all("Distributed.send.0.forward", false, false), GRAPH_SOURCE, NULL, 0));
    add(&p2p, 1, with(all("Distributed.recv.0.forward", false, false), GRAPH_TARGET, NULL, 0));
    assert_int_equal(edges_of(&p2p, &usual), 0);
    arena_free(&p2p.arena);
}

/* What irecv gets, send may have sent; the origin does not know that. */
static void test_mixed_receive(void **state)
{
    (void)state;
    static const int64_t zero = 0, one = 1;
    struct world w = {0};
    add(&w, 0, with(all("Distributed.send.0.forward", false, false), GRAPH_SOURCE, &one, 1));
    add(&w, 1, with(all("Distributed.irecv.0.forward", false, false), GRAPH_TARGET, &zero, 1));
    assert_int_equal(edges_of(&w, &usual), 1);
    assert_int_equal(edges_of(&w, origin), 0);
    arena_free(&w.arena);
}

/* Two calls of one operator: the first meets the first, the second the second. */
static void test_order_of_calls(void **state)
{
    (void)state;
    struct world w = {0};
    for (size_t r = 0; r < 2; r++) {
        add(&w, r, all("Distributed.all_reduce.0.forward", false, false));
        add(&w, r, all("Distributed.all_gather.0.forward", false, false));
        add(&w, r, all("Distributed.all_reduce.1.forward", false, false));
    }
    struct exchange x;
    assert_int_equal(exchange_build(&x, w.ranks, w.count, &usual, &w.arena), PLUMB_OK);
    assert_int_equal(x.tie_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(x.tie_first[i + 1] - x.tie_first[i], 2);
        assert_int_equal(x.tied[x.tie_first[i]], i);
        assert_int_equal(x.tied[x.tie_first[i] + 1], 3 + i);
        assert_int_equal(x.members[i].node->layer, i);
    }
    arena_free(&w.arena);
}

/* A rank that joins late: its first exchange is not the first of all. The layers of the origin stay
 * at positions where nothing is tied. */
static void test_layers(void **state)
{
    (void)state;
    static const int64_t low[] = {0, 1}, high[] = {1, 2};
    struct world w = {0};
    add(&w, 0, with(all("Distributed.all_reduce.0.forward", false, false), GRAPH_LINK, low, 2));
    add(&w, 0, with(all("Distributed.all_reduce.1.forward", false, false), GRAPH_LINK, low, 2));
    add(&w, 1, with(all("Distributed.all_reduce.0.forward", false, false), GRAPH_LINK, low, 2));
    add(&w, 1, with(all("Distributed.all_reduce.1.forward", false, false), GRAPH_LINK, low, 2));
    add(&w, 1, with(all("Distributed.all_gather.0.forward", false, false), GRAPH_LINK, high, 2));
    add(&w, 2, with(all("Distributed.all_gather.0.forward", false, false), GRAPH_LINK, high, 2));
    add(&w, 2, with(all("Distributed.all_gather.1.forward", false, true), GRAPH_LINK, high, 2));
    search(&w, &usual);
    assert_int_equal(w.nodes[1][2].layer, 2);
    assert_int_equal(w.nodes[2][0].layer, 2);
    assert_int_equal(w.nodes[2][1].layer, 3);
    search(&w, origin);
    assert_int_equal(w.nodes[2][0].layer, 2);
    assert_int_equal(w.nodes[2][1].layer, 1);
    arena_free(&w.arena);
}

/* Calls in the opposite order cannot have happened, but a capture may say so: no endless loop. */
static void test_circle(void **state)
{
    (void)state;
    struct world w = {0};
    add(&w, 0, all("Distributed.all_reduce.0.forward", false, false));
    add(&w, 0, all("Distributed.all_gather.0.forward", false, true));
    add(&w, 1, all("Distributed.all_gather.0.forward", false, false));
    add(&w, 1, all("Distributed.all_reduce.0.forward", false, false));
    add(&w, 1, all("Distributed.all_gather.1.forward", false, false));
    search(&w, &usual);
    assert_int_equal(w.result.count, 1);
    expect(&w, 0, 0, "Distributed.all_gather.0.forward");
    arena_free(&w.arena);
}

/* Differences: all that are equally early; everything that is held counts. */
static void test_ties(void **state)
{
    (void)state;
    struct world w = {0};
    for (size_t r = 0; r < 3; r++) {
        add(&w, r, all("Distributed.all_reduce.0.forward", false, false));
        add(&w, r, compute("op", r != 0));
        struct graph_node last = all("Distributed.all_reduce.1.forward", false, r == 0);
        add(&w, r, last);
    }
    search(&w, &differences);
    assert_int_equal(w.result.phase, GRAPH_DURING);
    assert_int_equal(w.result.count, 2);
    expect(&w, 0, 1, "op");
    expect(&w, 1, 2, "op");
    arena_free(&w.arena);
}

/* The origin looks at the first rank's group only and forgets the other ranks' nodes of that round;
 * plumb does not. */
static void test_forgotten(void **state)
{
    (void)state;
    static const int64_t alone[] = {0, 1};
    for (size_t i = 0; i < 2; i++) {
        struct world w = {0};
        for (size_t r = 0; r < 2; r++)
            add(&w, r,
                with(all("Distributed.all_reduce.0.forward", true, true), GRAPH_LINK, alone, 2));
        add(&w, 2, with(all("Distributed.all_gather.0.forward", false, true), GRAPH_LINK, NULL, 0));
        search(&w, i ? origin : &usual);
        assert_int_equal(w.result.count, i ? 0 : 1);
        if (!i)
            expect(&w, 0, 2, "Distributed.all_gather.0.forward");
        arena_free(&w.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_before),
        cmocka_unit_test(test_after),
        cmocka_unit_test(test_send_and_receive),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_unnamed_peers),
        cmocka_unit_test(test_mixed_receive),
        cmocka_unit_test(test_order_of_calls),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_circle),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
