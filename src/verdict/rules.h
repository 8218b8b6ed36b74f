/* What a standard is inside: settings, and rules in the order of its text. */
#ifndef VERDICT_RULES_H
#define VERDICT_RULES_H

#include "plumb/verdict.h"

#include "base/arena.h"
#include "base/nearest.h"

enum standard_relation {
    STANDARD_LT,
    STANDARD_LE,
    STANDARD_GT,
    STANDARD_GE,
    STANDARD_EQ,
    STANDARD_NE,
    STANDARD_RELATIONS
};

extern const char *const standard_sign[STANDARD_RELATIONS];

enum standard_setting {
    STANDARD_RTOL,
    STANDARD_ATOL,
    STANDARD_GT_LIMIT,
    STANDARD_EQUAL_NAN,
    STANDARD_ULP_THRESHOLD,
    STANDARD_SETTINGS
};

struct standard_rule {
    const struct plumb_metric_name *metric; /* NULL: the rule is on `jump` */
    enum plumb_severity severity;           /* of a row that breaks it */
    enum standard_relation relation;
    double limit;
    struct standard_rule *next;
};

struct plumb_standard {
    struct arena arena;
    const char *name;
    struct standard_rule *rules;
    bool is_set[STANDARD_SETTINGS];
    double setting[STANDARD_SETTINGS];
};

/* Appends the rules and settings of a text. PLUMB_E_FORMAT names the line. */
enum plumb_code standard_parse(struct plumb_standard *standard, const char *text, size_t size,
                               struct plumb_error *err);
enum plumb_code standard_parse_file(struct plumb_standard *standard, const char *path,
                                    struct plumb_error *err);

/* The setting of that name, or STANDARD_SETTINGS. */
enum standard_setting standard_find_setting(const char *name);

/* Reads the value of a setting: yes or no for equal_nan, a finite number >= 0 for the others. */
bool standard_read_setting(enum standard_setting setting, const char *text, double *value);

/* Reads a threshold: any number but NaN; a limit of `jump` (metric NULL) is finite and above 0. */
bool standard_read_limit(const struct plumb_metric_name *metric, const char *text, double *limit);

/* The metric or setting whose name is most like this one. */
void standard_nearest(const char *name, struct nearest *nearest);

#endif
