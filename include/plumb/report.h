/* The report: one HTML page that shows results to people and needs nothing else
 * (docs/REPORT.md). */
#ifndef PLUMB_REPORT_H
#define PLUMB_REPORT_H

#include "plumb/detail.h"
#include "plumb/expected.h"
#include "plumb/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a thing is to be looked at, the worst first. */
enum plumb_mood {
    PLUMB_MOOD_BAD,    /* a fault, a failed row */
    PLUMB_MOOD_DOUBT,  /* suspicious, cheaper arithmetic */
    PLUMB_MOOD_UNSEEN, /* not judged, without counterpart, unreadable */
    PLUMB_MOOD_GOOD,
    PLUMB_MOODS
};

/* A report in the making. Texts are copied. Running out of memory sticks, and plumb_report_save
 * tells. */
struct plumb_report;

/* command: of plumb, such as "compare". NULL when out of memory. */
struct plumb_report *plumb_report_new(const char *command, const char *title);
void plumb_report_free(struct plumb_report *report);

struct plumb_report_answer {
    enum plumb_mood mood;
    const char *sentence; /* what is wrong: what a person reads first */
    const char *where;    /* the name of a call or tensor; "": nowhere */
    int64_t row;          /* of the first table, that shows it; -1: none */
    const char *sure;     /* how sure that is; "" */
};

void plumb_report_answer(struct plumb_report *report, const struct plumb_report_answer *answer);
void plumb_report_next(struct plumb_report *report, const char *command); /* that leads on */
void plumb_report_count(struct plumb_report *report, const char *word, uint64_t count,
                        enum plumb_mood mood);
void plumb_report_fact(struct plumb_report *report, const char *label, const char *value);
void plumb_report_note(struct plumb_report *report, const char *text);
void plumb_report_reproduce(struct plumb_report *report, const char *command);

/* A table with a mood, and the number of a tensor's page or -1, for each row. NULL: moods by the
 * severity of the rows; no pages. */
void plumb_report_table(struct plumb_report *report, const char *name,
                        const struct plumb_table *table, const unsigned char *moods,
                        const int32_t *tensors);

/* A table whose columns of words tell what became of its rows: "FAIL", "pass", "warning", "SKIP", a
 * verdict. Its worst row is the answer when it is worse than those of the tables before. */
void plumb_report_result(struct plumb_report *report, const char *name,
                         const struct plumb_table *table);

/* What became of each row of such a table, by the columns of the rules, by the column Verdict, or
 * by the worse of both. A row that says nothing is PLUMB_MOOD_UNSEEN. moods has a place for each
 * row. False when out of memory. */
bool plumb_report_moods(const struct plumb_table *table, enum plumb_deciding by,
                        unsigned char *moods);

/* What such a row says of why it is so: the columns Why and Message, as far as they decide; cut to
 * size bytes with their NUL. "" where it says nothing. Returns text. */
const char *plumb_report_reason(const struct plumb_table *table, size_t row, enum plumb_deciding by,
                                char *text, size_t size);

/* A call, in one direction. */
struct plumb_report_call {
    const char *name;
    const char *module; /* "layers.0.attention"; "": in none, or not known */
    bool back;
    int32_t rank, step;         /* -1: not counted */
    double total, local, limit; /* distance from the other run; excess by itself, and its limit;
                                   NaN: not known */
    double band;                /* how far rounding would put it; NaN: not known */
    enum plumb_mood mood;
    const char *word; /* the verdict */
    int32_t row;      /* the first row of the first table that is about it; -1: none */
};

/* The calls in the order of execution. */
void plumb_report_network(struct plumb_report *report, const struct plumb_report_call *calls,
                          size_t count);

/* The calls that the report was told last; they belong to it. A copy of a report has none. */
const struct plumb_report_call *plumb_report_calls(const struct plumb_report *report,
                                                   size_t *count);

/* A tensor that is worth a page. facts, stack and commands: texts, ended by NULL (facts: label,
 * value, label, ...). NULL: none. */
struct plumb_report_tensor {
    const char *name;
    int32_t row;
    enum plumb_mood mood;
    const char *dtypes[2];
    const char *sides[2]; /* what the two are called; NULL: "target", "golden" */
    const char *const *facts, *const *stack, *const *commands;
    const struct plumb_detail *detail;
};

/* Returns the number of its page. */
int32_t plumb_report_tensor(struct plumb_report *report, const struct plumb_report_tensor *tensor);

/* Ranks or steps down, calls across; arrays are down_count x across_count, row by row. */
struct plumb_report_grid {
    const char *title, *unit;
    const char *const *down, *const *across;
    size_t down_count, across_count;
    const unsigned char *moods; /* 255: nothing there */
    const float *values;        /* NaN: not known */
    const int32_t *rows;        /* of the first table; -1: none */
};

void plumb_report_grid(struct plumb_report *report, const struct plumb_report_grid *grid);

/* A grid of calls by their names, with the ranks or the steps down: how far each is from the other
 * run, or off by itself. Nothing where there is one rank, or step. */
enum plumb_grid_lines { PLUMB_GRID_RANKS, PLUMB_GRID_STEPS };
enum plumb_grid_value { PLUMB_GRID_DISTANCE, PLUMB_GRID_EXCESS };
void plumb_report_call_grid(struct plumb_report *report, const struct plumb_report_call *calls,
                            size_t count, enum plumb_grid_lines down, enum plumb_grid_value value);

/* Where a series of a tensor leaves what is usual. */
struct plumb_report_jump {
    int32_t tensor; /* which of the names */
    int64_t step;
    const char *why;
    enum plumb_mood mood;
};

/* Statistics of one run along its steps: n_names x n_steps numbers for each series, tensor by
 * tensor; NaN: not there. */
struct plumb_report_steps {
    const int64_t *steps; /* ascending */
    size_t n_steps;
    const char *const *names;
    size_t n_names;
    const char *const *titles; /* of the series */
    size_t n_series;
    const double *const *now, *const *before; /* before: of an earlier run; NULL: there is none */
    const struct plumb_report_jump *jumps;
    size_t n_jumps;
};

void plumb_report_steps(struct plumb_report *report, const struct plumb_report_steps *steps);

/* Another report that knows the same, to be told more. NULL when out of memory. */
struct plumb_report *plumb_report_copy(struct plumb_report *report);

/* The page as UTF-8 of that size, which ends with a zero, too; the caller frees it. NULL when out
 * of memory. */
char *plumb_report_html(struct plumb_report *report, size_t *size);

/* Writes the page, whole or not at all. */
enum plumb_code plumb_report_save(struct plumb_report *report, const char *path,
                                  struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
