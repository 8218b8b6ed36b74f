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

/* What rules can be on besides metrics. The last two only in the standards of single jobs, which
 * judge what is no pair of tensors. */
#define RULE_JUMP "jump"
#define RULE_STATISTICS "statistic_difference"
#define RULE_ARGUMENT "argument_difference"

struct standard_rule {
    const char *name;                       /* of the metric, or one of the above */
    const struct plumb_metric_name *metric; /* or NULL */
    enum plumb_severity severity;           /* of a row that breaks it */
    enum standard_relation relation;
    double limit;
    struct standard_rule *next;
};

struct plumb_standard {
    struct arena arena;
    const char *name;
    bool of_task; /* of a single job */
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

/* Reads a threshold: any number but NaN; where there is no metric it is finite and above 0. */
bool standard_read_limit(const struct plumb_metric_name *metric, const char *text, double *limit);

/* The metric or setting whose name is most like this one. */
void standard_nearest(const char *name, struct nearest *nearest);

/* Loads a built-in standard of a single job: statistics, checkpoint. Free it with
 * plumb_standard_free. */
enum plumb_code standard_load_task(struct plumb_standard **standard, const char *name,
                                   struct plumb_error *err);

/* The first rule of that severity on a metric or one of the names above, or NULL. */
const struct standard_rule *standard_find_rule(const struct plumb_standard *standard,
                                               const char *name, enum plumb_severity severity);

/* Changes the number of every rule on that name; false when there is none. */
bool standard_set_limit(struct plumb_standard *standard, const char *name, double limit);

/* NaN meets no rule. */
bool standard_is_met(const struct standard_rule *rule, double value);

/* What passes is suspicious when its largest relative error (output) is many times that of the
 * operator's worst input. */
void standard_judge_jump(const struct plumb_standard *standard, double output, double input,
                         struct plumb_verdict *verdict);

#endif
