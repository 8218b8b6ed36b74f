/* The parts of the general comparison, between its files. */
#ifndef MSPROBE_COMPARE_H
#define MSPROBE_COMPARE_H

#include "base/arena.h"
#include "base/map.h"
#include "dump/dump.h"
#include "plumb/general.h"

enum { GENERAL_VALUES = 8 }; /* metrics or differences of a row, at most */

/* A cell that was computed. */
struct general_value {
    enum { GENERAL_WORD, GENERAL_NUMBER, GENERAL_PERCENT } kind;
    const char *word; /* lives as long as the program */
    double number;
    bool integer;
};

/* Places of the metrics in a tensor comparison, and of the first of four relative differences. */
enum {
    GENERAL_COSINE,
    GENERAL_EUCLIDEAN,
    GENERAL_MAX_ABS,
    GENERAL_MAX_REL,
    GENERAL_1E3,
    GENERAL_5E3,
    GENERAL_METRICS
};
enum { GENERAL_RELATIVE = DUMP_STATISTICS_COUNT };

#define GENERAL_NONE SIZE_MAX

/* What the rules found, in the order in which tensor and statistics tables tell it. */
enum general_rule {
    RULE_OVERFLOW,
    RULE_RATIO,
    RULE_NORM,
    RULE_GRAD,
    RULE_SCALAR,
    RULE_DTYPE,
    RULE_SHAPE,
    RULE_NORM_GROWS,
    RULE_COSINE,
    RULE_CHECKSUM,
    RULE_NO_CHECKSUM,
    GENERAL_RULES
};

struct general_pair {
    size_t target, golden; /* rows of the two trees; golden may be GENERAL_NONE */
    struct general_value value[GENERAL_VALUES];
    uint16_t found; /* a bit a rule */
};

struct general {
    struct dump_tree target, golden;
    const struct plumb_general_options *options;
    struct arena arena;
    struct general_pair *pairs;
    size_t count, capacity;
    char *mapping; /* what general_layers found, as a file; or NULL */
};

/* Fills pairs, in the order of the table. */
enum plumb_code general_match(struct general *general, struct plumb_error *err);

/* One side's rows that take part, with the names they are matched by. */
struct general_side {
    const struct dump_tree *tree;
    size_t *rows;
    const char **keys;
    size_t count;
};

/* The same, where call numbers do not count. Changes the keys. */
enum plumb_code general_fuzzy(struct general *general, struct general_side *target,
                              struct general_side *golden);

/* Makes the keys of the target those that the layers say, and tells them in general->mapping. */
enum plumb_code general_layers(struct general *general, struct general_side *target,
                               const struct general_side *golden, struct plumb_error *err);

/* Appends a pair of rows; one whose types do not fit loses its golden row. */
enum plumb_code general_add(struct general *general, size_t target, size_t golden);

/* The metrics of all pairs, from their payload files. */
enum plumb_code general_metrics(struct general *general, struct plumb_error *err);

/* The differences of the recorded statistics. */
void general_differences(struct general *general);

/* The checksum that a row shows; text may be used for it. */
enum { GENERAL_CRC_BYTES = 9 };
const char *general_checksum(const struct dump_row *row, char text[GENERAL_CRC_BYTES]);

/* Applies the rules. */
void general_judge(struct general *general);
enum plumb_severity general_severity(const struct general_pair *pair);
const char *general_message(enum general_rule rule);

enum plumb_code general_table(struct plumb_table **table, const struct general *general,
                              struct plumb_error *err);

#endif
