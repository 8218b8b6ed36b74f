/* Calls of functions paired by the module that they were made in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair/parts.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 64 };

/* One side: a call per line, "name parent shape"; each has an input 0 and an output 0. */
struct side {
    struct plumb_record records[MOST];
    struct plumb_recorded recorded[MOST];
    struct plumb_caller callers[MOST];
    const struct plumb_record *pointers[MOST];
    char texts[MOST][2][128];
    int64_t shapes[MOST][1];
    size_t count;
};

static void add(struct side *side, const char *api, const char *parent, int64_t size)
{
    static const char *const places[] = {"input.0", "output.0"};
    const char *call = NULL;
    for (int k = 0; k < 2; k++) {
        const size_t i = side->count++;
        assert_true(i < MOST);
        snprintf(side->texts[i][0], 128, "%s.%s", api, places[k]);
        if (!call)
            call = strcpy(side->texts[i][1], api);
        side->shapes[i][0] = size;
        side->callers[i].parent = *parent ? parent : NULL;
        side->recorded[i] = (struct plumb_recorded){.tensor = true,
                                                    .api = call,
                                                    .shape = size == 4 ? "[4]" : "[8]",
                                                    .caller = &side->callers[i]};
        side->records[i] = (struct plumb_record){.name = side->texts[i][0],
                                                 .step = -1,
                                                 .rank = -1,
                                                 .ndim = 1,
                                                 .shape = side->shapes[i],
                                                 .recorded = &side->recorded[i]};
        side->pointers[i] = &side->records[i];
    }
}

static struct plumb_matching match(const struct side *target, const struct side *golden,
                                   enum plumb_pair_mode mode)
{
    struct plumb_matching matching;
    const struct plumb_pair_options options = {.mode = mode};
    assert_int_equal(match_records(&matching, target->pointers, target->count, golden->pointers,
                                   golden->count, &options, NULL),
                     PLUMB_OK);
    return matching;
}

/* The partner of a record, as its name; how it was paired. */
static const char *partner(const struct plumb_matching *matching, const struct side *target,
                           const struct side *golden, const char *name, enum plumb_pair_how *how)
{
    for (size_t i = 0; i < matching->count; i++) {
        const struct plumb_pair *pair = &matching->pairs[i];
        if (pair->target == PLUMB_NO_RECORD ||
            strcmp(target->records[pair->target].name, name) != 0)
            continue;
        *how = pair->how;
        return pair->golden == PLUMB_NO_RECORD ? (pair->covered ? "covered" : "alone")
                                               : golden->records[pair->golden].name;
    }
    fail_msg("%s is not there", name);
    return "";
}

static void expect(const struct plumb_matching *matching, const struct side *target,
                   const struct side *golden, const char *name, const char *other,
                   enum plumb_pair_how how)
{
    enum plumb_pair_how found = PLUMB_UNMATCHED;
    assert_string_equal(partner(matching, target, golden, name, &found), other);
    assert_int_equal(found, how);
}

static const char first[] = "Module.blocks.0.Block.forward.0",
                  second[] = "Module.blocks.1.Block.forward.0",
                  wrapped[] = "Module.module.blocks.0.Other.forward.0";

/* One more call in the first module shifts the numbers in the second. */
static void test_shifted_numbers(void **state)
{
    (void)state;
    static struct side target, golden;
    target.count = golden.count = 0;
    add(&target, "Torch.mul.0.forward", first, 4);
    add(&target, "Torch.mul.1.forward", first, 8);
    add(&target, "Torch.mul.2.forward", second, 4);
    add(&golden, "Torch.mul.0.forward", first, 4);
    add(&golden, "Torch.mul.1.forward", second, 4);
    struct plumb_matching m = match(&target, &golden, PLUMB_PAIR_AUTO);
    expect(&m, &target, &golden, "Torch.mul.0.forward.output.0", "Torch.mul.0.forward.output.0",
           PLUMB_BY_NAME);
    expect(&m, &target, &golden, "Torch.mul.1.forward.output.0", "alone", PLUMB_UNMATCHED);
    expect(&m, &target, &golden, "Torch.mul.2.forward.output.0", "Torch.mul.1.forward.output.0",
           PLUMB_BY_LIKENESS);
    plumb_matching_free(&m);
    /* --match exact stays with names. */
    m = match(&target, &golden, PLUMB_PAIR_EXACT);
    expect(&m, &target, &golden, "Torch.mul.1.forward.output.0", "Torch.mul.1.forward.output.0",
           PLUMB_BY_NAME);
    plumb_matching_free(&m);
}

/* A norm in one call, and in four. */
static void test_fused(void **state)
{
    (void)state;
    static struct side target, golden;
    target.count = golden.count = 0;
    add(&target, "Functional.linear.0.forward", first, 4);
    add(&target, "Functional.rms_norm.0.forward", first, 4);
    add(&target, "Functional.linear.1.forward", first, 4);
    add(&golden, "Functional.linear.0.forward", wrapped, 4);
    add(&golden, "Torch.pow.0.forward", wrapped, 4);
    add(&golden, "Torch.mean.0.forward", wrapped, 8);
    add(&golden, "Torch.rsqrt.0.forward", wrapped, 8);
    add(&golden, "Torch.mul.0.forward", wrapped, 4);
    add(&golden, "Functional.linear.1.forward", wrapped, 4);
    for (int turn = 0; turn < 2; turn++) {
        const struct side *a = turn ? &golden : &target, *b = turn ? &target : &golden;
        struct plumb_matching m = match(a, b, PLUMB_PAIR_AUTO);
        const char *one = "Functional.rms_norm.0.forward.";
        char in[64], out[64];
        snprintf(in, sizeof in, "%sinput.0", one);
        snprintf(out, sizeof out, "%soutput.0", one);
        expect(&m, a, b, turn ? "Torch.pow.0.forward.input.0" : in,
               turn ? in : "Torch.pow.0.forward.input.0", PLUMB_BY_GROUP);
        expect(&m, a, b, turn ? "Torch.mul.0.forward.output.0" : out,
               turn ? out : "Torch.mul.0.forward.output.0", PLUMB_BY_GROUP);
        expect(&m, a, b, "Functional.linear.1.forward.output.0",
               "Functional.linear.1.forward.output.0", PLUMB_BY_NAME);
        size_t covered = 0, alone = 0;
        for (size_t i = m.matched; i < m.count; i++)
            *(m.pairs[i].covered ? &covered : &alone) += 1;
        assert_int_equal(covered, 6);
        assert_int_equal(alone, 0);
        plumb_matching_free(&m);
    }
}

/* What gives something of another shape is something else. */
static void test_different(void **state)
{
    (void)state;
    static struct side target, golden;
    target.count = golden.count = 0;
    add(&target, "Functional.linear.0.forward", first, 4);
    add(&target, "Torch.all.0.forward", first, 8);
    add(&golden, "Functional.linear.0.forward", first, 4);
    add(&golden, "Torch.where.0.forward", first, 4);
    struct plumb_matching m = match(&target, &golden, PLUMB_PAIR_AUTO);
    expect(&m, &target, &golden, "Torch.all.0.forward.output.0", "alone", PLUMB_UNMATCHED);
    plumb_matching_free(&m);
}

/* Dumps without parents, and with those of other models, pair by name. */
static void test_names_without_parents(void **state)
{
    (void)state;
    const char *const parents[2][2] = {{"", first}, {"Module.x.A.forward.0", first}};
    for (int k = 0; k < 2; k++) {
        static struct side target, golden;
        target.count = golden.count = 0;
        add(&target, "Torch.mul.0.forward", parents[k][0], 4);
        add(&target, "Torch.mul.1.forward", parents[k][0], 4);
        add(&golden, "Torch.mul.0.forward", parents[k][1], 4);
        add(&golden, "Torch.mul.1.forward", parents[k][1], 4);
        struct plumb_matching m = match(&target, &golden, PLUMB_PAIR_AUTO);
        expect(&m, &target, &golden, "Torch.mul.1.forward.output.0", "Torch.mul.1.forward.output.0",
               PLUMB_BY_NAME);
        assert_int_equal(m.matched, 4);
        plumb_matching_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shifted_numbers),
        cmocka_unit_test(test_fused),
        cmocka_unit_test(test_different),
        cmocka_unit_test(test_names_without_parents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
