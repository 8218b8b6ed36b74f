/* The online precision check: operators of a running program against a reference, call by call.
 *
 * Somebody who sees the calls of a program opens a guard, asks it of each call whether it is to be
 * checked (plumb_guard_call, plumb_guard_claim), and hands over what the kernel was given and what
 * it produced (plumb_guard_judge). Failures are logged at once, one line each; plumb_guard_table
 * closes the account. The program's results are never touched.
 *
 * All functions are thread-safe, but for opening and closing. Operators belong to their guard. */
#ifndef PLUMB_GUARD_H
#define PLUMB_GUARD_H

#include "plumb/expected.h"
#include "plumb/outputs.h"
#include "plumb/table.h"

#ifdef __cplusplus
extern "C" {
#endif

enum plumb_guard_format { PLUMB_GUARD_TEXT, PLUMB_GUARD_JSONL };

struct plumb_guard_config {
    double rtol, atol;     /* |a-b| <= atol + rtol*|b|, b the reference */
    uint64_t max_checks;   /* calls of an operator that are checked */
    bool log_once;         /* an operator that failed is not checked again */
    uint64_t max_elements; /* calls with a larger input tensor are not checked */
    const char *path;      /* the log, appended to, its folder made when missing; NULL:
                              ~/.plumb/precision.log; "-": stderr */
    enum plumb_guard_format format;
    const char *save; /* folder for the inputs and outputs of failures, or NULL */
    const char *const *include, *const *exclude; /* operators, by base name ("mm"), overload
                                                    ("add.Tensor") or full name
                                                    ("aten::add.Tensor"); no include: all */
    size_t n_include, n_exclude;
    enum plumb_deciding verdict; /* whether tolerances or second opinions say what fails; the latter
                                    are had of calls whose operator plumb has, as are outputs; for
                                    others, tolerances decide */
    const char *arithmetic;      /* cheaper arithmetic that is allowed; NULL: none */
    int64_t (*now)(void);        /* seconds since 1970; NULL: the clock's */
};

/* The defaults: 1e-4, 1e-5, 10 checks, log_once, 1,048,576 elements, text. */
void plumb_guard_config_init(struct plumb_guard_config *config);

struct plumb_guard;
struct plumb_guard_op;

/* Opens a guard; nothing of config is kept. PLUMB_E_IO when the log cannot be written. */
enum plumb_code plumb_guard_open(struct plumb_guard **guard,
                                 const struct plumb_guard_config *config, struct plumb_error *err);
void plumb_guard_close(struct plumb_guard *guard); /* NULL is fine */

/* To be called in a process that was forked while the guard was open: from then on what is counted
 * there is in the account of the process that opened it, in plumb_guard_table and _closing of which
 * it is seen at once. Calls that are not checked are in it up to the last one that was. */
void plumb_guard_forked(struct plumb_guard *guard);

/* ---- Which calls ----------------------------------------------------------------------------- */

/* Why operators of that name are never checked, whatever the config says: layout and memory
 * operators, views, random sampling, ".out" overloads and names ending in "_out". NULL when they
 * may be. The name is written in any of the three ways. */
const char *plumb_guard_skips(const char *name);

/* True when a name as a user writes it, in one of the three ways, means the operator. */
bool plumb_guard_named(const char *full, const char *written);

/* The operator of a full name, the same one every time; NULL when out of memory. unfit: why the
 * caller cannot have it checked, or NULL; counts when the operator is new. */
struct plumb_guard_op *plumb_guard_operator(struct plumb_guard *guard, const char *name,
                                            const char *unfit);

enum plumb_guard_step {
    PLUMB_GUARD_PASS,  /* let the call go */
    PLUMB_GUARD_CHECK, /* it may be checked, if plumb_guard_claim agrees */
    PLUMB_GUARD_QUIET, /* let it go; and since the last operator that could still be checked, more
                          calls went by than before it: whoever watches may go home. Operators whose
                          calls were too large max_checks times in a row do not count */
};

/* The same for a function of the user's own, which no rule about names leaves out. */
struct plumb_guard_op *plumb_guard_function(struct plumb_guard *guard, const char *name);

/* Counts a call. */
enum plumb_guard_step plumb_guard_call(struct plumb_guard_op *op);

/* Takes one of the operator's checks for a call whose largest input tensor has that many elements;
 * false when the call is too large or no check is left. */
bool plumb_guard_claim(struct plumb_guard_op *op, uint64_t elements);

/* The claimed check cannot be made, and none of this operator can: there is no reference. */
void plumb_guard_give_up(struct plumb_guard_op *op, const char *why);

/* The claimed check cannot be made; another call of the operator may be. */
void plumb_guard_pass_over(struct plumb_guard_op *op, const char *why);

/* The claimed check went wrong inside; counted, and told by plumb_guard_closing. */
void plumb_guard_trouble(struct plumb_guard_op *op, const char *what);

/* ---- Checking -------------------------------------------------------------------------------- */

struct plumb_guard_case {
    struct plumb_call call; /* what the kernel was given, as it was before the call */
    const struct plumb_arg *outputs;
    size_t n_outputs;
    const struct plumb_arg *reference; /* NULL: plumb's float64 operator computes it */
    size_t n_reference;
    bool raised; /* the given reference is float64 whatever the type of the outputs */
    /* What the given reference stands for, where that is not the outputs as they are: what was
     * written into arguments, what indices point to, what factors multiply to. No lists in it.
     * NULL: the outputs. labels: what each of them is, "" for an output as it is; or NULL. */
    const struct plumb_arg *judged;
    size_t n_judged;
    const char *const *labels;
    /* The caller's second opinion on the worst of what is judged, and which that is; it decides
     * whatever the guard's setting, unless it is "not judged". NULL: none. */
    const struct plumb_opinion *opinion;
    size_t opinion_on;
    const char *where;   /* the stack that led to the call, one line a frame; or NULL */
    const char *changed; /* what the kernel changed of its inputs without leave: a failure, when
                            its outputs are right; or NULL */
};

struct plumb_guard_verdict {
    struct plumb_outputs_verdict found; /* tolerances: at least 1e-2 each for half types */
    bool judged; /* there is a second opinion, that on the worst of the outputs: */
    struct plumb_opinion opinion;
    char label[64];   /* of what failed, when it is not an output as such; else empty */
    char saved[1024]; /* folder with the failing call; empty when it was not saved */
};

/* Compares the outputs, counts, logs and saves. Fails only when there is no verdict: no operator of
 * plumb's for a missing reference (PLUMB_E_UNSUPPORTED), arguments it does not take. A log or
 * folder that cannot be written does not change the verdict; plumb_guard_closing tells. */
enum plumb_code plumb_guard_judge(struct plumb_guard_op *op, const struct plumb_guard_case *about,
                                  struct plumb_guard_verdict *out, struct plumb_error *err);

/* ---- The account ----------------------------------------------------------------------------- */

struct plumb_guard_counts {
    uint64_t calls, checked, failed, troubles;
    bool open; /* may still be checked */
};

void plumb_guard_op_counts(const struct plumb_guard_op *op, struct plumb_guard_counts *out);
const char *plumb_guard_op_name(const struct plumb_guard_op *op); /* as the log calls it */

/* A row for each operator that was checked or gave trouble, failed ones first. NULL when out of
 * memory. */
struct plumb_table *plumb_guard_table(struct plumb_guard *guard);

/* The lines after the table: totals, where operators failed first, what was not checked and why,
 * internal failures. To be freed; NULL when out of memory. */
char *plumb_guard_closing(struct plumb_guard *guard);

/* ---- Replay ---------------------------------------------------------------------------------- */

struct plumb_replay {
    char op[128];
    struct plumb_guard_verdict recorded; /* the saved output against plumb's reference */
    struct plumb_guard_verdict device;   /* the device's output now against the same */
    const struct plumb_table *worst; /* elements with the largest errors of the failing output */
    const char *device_error;        /* why the device could not run it, or NULL */
    void *memory;
};

/* Runs a saved failure again: path is its folder or the dump.json in it. The reference is
 * plumb's float64 operator or, where it has none or something else than the outputs was judged,
 * what was saved as reference. device names what runs the call now ("cpu"). out is always safe
 * to destroy. */
enum plumb_code plumb_replay_run(const char *path, const char *device, size_t worst,
                                 struct plumb_replay *out, struct plumb_error *err);
void plumb_replay_destroy(struct plumb_replay *replay);

#ifdef __cplusplus
}
#endif
#endif
