/* Following something from rank to rank, in the order in which exchanges happened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ranks/travel.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 4, MOST = 8 };

struct world {
    struct graph_node nodes[RANKS][MOST];
    struct graph_rank ranks[RANKS];
    struct arena arena;
    struct travels travels;
};

static void setup(struct world *w)
{
    *w = (struct world){0};
    for (size_t r = 0; r < RANKS; r++)
        w->ranks[r] = (struct graph_rank){.number = (int64_t)(10 * r), .nodes = w->nodes[r]};
}

static struct graph_node *add(struct world *w, size_t rank, const char *name)
{
    struct graph_node *node = &w->nodes[rank][w->ranks[rank].count++];
    *node = (struct graph_node){.name = name, .order = -1};
    node->communication = graph_is_communication(name);
    return node;
}

static void add_exchange(struct world *w, const char *name, const int64_t *group, size_t count)
{
    for (size_t r = 0; r < RANKS; r++)
        for (size_t k = 0; k < count; k++)
            if (group[k] == w->ranks[r].number) {
                struct graph_node *node = add(w, r, name);
                node->group = group;
                node->group_count = count;
            }
}

static void find(struct world *w, bool seen)
{
    assert_int_equal(travel_find(&w->travels, w->ranks, RANKS, seen, &w->arena), PLUMB_OK);
}

/* "name: exchange > ranks; ..." of one journey. */
static const char *text_of(const struct world *w, size_t number, char *text, size_t size)
{
    const struct travel *travel = &w->travels.list[number];
    size_t at = (size_t)snprintf(text, size, "%zu %s:", travel->from->rank, travel->from->name);
    for (size_t h = 0; h < travel->count; h++) {
        at += (size_t)snprintf(text + at, size - at, " %s >", travel->hops[h].by->name);
        for (size_t k = 0; k < travel->hops[h].count; k++)
            at += (size_t)snprintf(text + at, size - at, " %zu", travel->hops[h].to[k]);
    }
    return text;
}

static const int64_t all[] = {0, 10, 20, 30}, low[] = {0, 10}, high[] = {20, 30};

/* In pairs first, then to all; what happens later at a rank that has it is no origin. */
static void test_hops(void **state)
{
    (void)state;
    struct world w;
    char text[256];
    setup(&w);
    add(&w, 1, "op.0")->bad = true;
    add_exchange(&w, "Distributed.all_reduce.0.forward", low, 2);
    add_exchange(&w, "Distributed.all_reduce.0.forward", high, 2);
    add(&w, 0, "op.1")->bad = true;
    add_exchange(&w, "Distributed.all_gather.0.forward", all, 4);
    add(&w, 3, "op.2")->bad = true;
    find(&w, false);
    assert_int_equal(w.travels.count, 1);
    assert_string_equal(text_of(&w, 0, text, sizeof text),
                        "1 op.0: Distributed.all_reduce.0.forward > 0 "
                        "Distributed.all_gather.0.forward > 2 3");
    arena_free(&w.arena);
}

/* Ranks that have not heard of each other are two origins. */
static void test_two_origins(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    add_exchange(&w, "Distributed.all_reduce.0.forward", low, 2);
    add(&w, 0, "op.0")->bad = true;
    add(&w, 2, "op.1")->bad = true;
    add_exchange(&w, "Distributed.all_reduce.1.forward", all, 4);
    find(&w, false);
    assert_int_equal(w.travels.count, 2);
    assert_int_equal(w.travels.list[0].count + w.travels.list[1].count, 1);
    arena_free(&w.arena);
}

/* What can be seen goes only where it was seen; an exchange may be the origin itself. */
static void test_seen(void **state)
{
    (void)state;
    struct world w;
    char text[256];
    setup(&w);
    struct graph_node *made = add(&w, 2, "op.0");
    made->bad = made->tainted = true;
    add_exchange(&w, "Distributed.all_reduce.0.forward", all, 4); /* of something else */
    add_exchange(&w, "Distributed.all_reduce.1.forward", all, 4);
    for (size_t r = 0; r < RANKS; r++)
        w.nodes[r][w.ranks[r].count - 1].tainted = r != 0;
    w.nodes[2][2].bad_input = true;
    find(&w, true);
    assert_int_equal(w.travels.count, 1);
    assert_string_equal(text_of(&w, 0, text, sizeof text),
                        "2 op.0: Distributed.all_reduce.1.forward > 1 3");
    arena_free(&w.arena);

    setup(&w);
    add_exchange(&w, "Distributed.all_reduce.0.forward", all, 4);
    w.nodes[3][0].bad = w.nodes[3][0].tainted = true;
    find(&w, true);
    assert_string_equal(text_of(&w, 0, text, sizeof text), "3 Distributed.all_reduce.0.forward:");
    arena_free(&w.arena);
}

/* A source gives, and gets nothing. */
static void test_directions(void **state)
{
    (void)state;
    struct world w;
    char text[256];
    setup(&w);
    add(&w, 1, "op.0")->bad = true;
    add_exchange(&w, "Distributed.broadcast.0.forward", all, 4);
    add_exchange(&w, "Distributed.broadcast.1.forward", all, 4);
    for (size_t r = 0; r < RANKS; r++) {
        w.nodes[r][w.ranks[r].count - 2].role = r == 0 ? GRAPH_SOURCE : GRAPH_TARGET;
        w.nodes[r][w.ranks[r].count - 1].role = r == 1 ? GRAPH_SOURCE : GRAPH_TARGET;
    }
    find(&w, false);
    assert_string_equal(text_of(&w, 0, text, sizeof text),
                        "1 op.0: Distributed.broadcast.1.forward > 0 2 3");
    arena_free(&w.arena);
}

/* Asynchronous exchanges are tied by the order in which they began, whenever they were over. */
static void test_order(void **state)
{
    (void)state;
    struct world w;
    struct exchange x;
    static const struct ranks_rules own = {0};
    setup(&w);
    for (size_t r = 0; r < 2; r++)
        for (size_t k = 0; k < 2; k++) {
            struct graph_node *node = add(&w, r, "Distributed.all_reduce.0.forward");
            node->order = (int64_t)(r ? 1 - k : k);
            node->group = low;
            node->group_count = 2;
        }
    assert_int_equal(exchange_build(&x, w.ranks, 2, &own, &w.arena), PLUMB_OK);
    assert_int_equal(x.tie_count, 2);
    assert_int_equal(x.members[0].tie, x.members[3].tie);
    assert_int_equal(x.members[1].tie, x.members[2].tie);
    /* The two orders make a circle; each exchange still stands together in the sequence. */
    assert_int_equal(x.exchanges[0], x.exchanges[1]);
    assert_int_equal(x.exchanges[2], x.exchanges[3]);
    arena_free(&w.arena);
}

static void test_ranks_as_text(void **state)
{
    (void)state;
    static const int64_t some[] = {0, 1, 2, 5, 7, 8};
    struct buf text = {0};
    travel_put_ranks(&text, some, 6);
    assert_string_equal(text.data, "0-2, 5, 7, 8");
    buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hops),  cmocka_unit_test(test_two_origins),
        cmocka_unit_test(test_seen),  cmocka_unit_test(test_directions),
        cmocka_unit_test(test_order), cmocka_unit_test(test_ranks_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
