/* What the files of the online check share. */
#ifndef GUARD_GUARD_H
#define GUARD_GUARD_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/guard.h"
#include "verdict/spell.h"

#include <pthread.h>
#include <stdatomic.h>

/* Fewer quiet calls than this never make a pass. */
enum { GUARD_SHORTEST_PASS = 256 };

struct plumb_guard {
    double rtol, atol;
    uint64_t max_checks, max_elements;
    bool log_once;
    enum plumb_deciding verdict;
    const char *arithmetic; /* may be NULL */
    enum plumb_guard_format format;
    int64_t (*now)(void);
    const char *path, *save; /* save may be NULL */
    const char *const *include, *const *exclude;
    size_t n_include, n_exclude;

    int log;         /* descriptor */
    bool log_is_own; /* to be closed */
    atomic_uint_fast64_t calls;
    atomic_uint_fast64_t last_open; /* number of the last call that could have been checked */

    pthread_mutex_t lock; /* of everything below, and of what is not atomic in operators */
    struct arena arena;
    struct map names; /* to operators */
    struct plumb_guard_op **ops;
    size_t n_ops, max_ops;
    uint64_t saved; /* failures saved so far */
    uint64_t troubles;
    const char *first_trouble; /* "mm: ..." */

    int family;     /* file that forked processes write into what they count, or -1 */
    bool is_child;  /* this is one of them */
    uint64_t heard; /* so much of that file is in the account */
};

struct plumb_guard_op {
    struct plumb_guard *guard;
    const char *name;    /* as the log calls it: "add.Tensor", "mm", "my_ops::f" */
    const char *full;    /* "aten::add.Tensor" */
    const char *skipped; /* why it, or a call of it, was not checked, or NULL */
    bool is_function;    /* of the user's own: no rule about names is for it */
    atomic_bool open;
    atomic_uint_fast64_t calls, claimed;
    atomic_uint_fast64_t too_large; /* calls in a row */

    /* Under the guard's lock. */
    uint64_t checked, failed, troubles;
    double max_abs, max_rel, max_ulp; /* worst of all checks */
    bool judged;                      /* by a second opinion; word is the worst */
    enum plumb_word word;
    char why[400]; /* of that word, with its numbers */
    const char *first_failure, *where, *saved;
    uint64_t told; /* in a forked process: calls that the account of the first one has */
};

/* The operator of a full name, made when it is new; NULL when out of memory. Under the lock. */
struct plumb_guard_op *guard_find(struct plumb_guard *guard, const char *full);

/* Takes a second opinion into the account of an operator. Under the lock. */
void guard_take_word(struct plumb_guard_op *op, enum plumb_word word, const char *why);

/* ---- Forked processes (family.c) ------------------------------------------------------------- */

/* What a check adds to the account of its operator. Texts may be NULL. */
struct guard_family_news {
    uint64_t checked, failed;
    double max_abs, max_rel, max_ulp;
    const char *verdict;                 /* of the second opinion */
    const char *failure, *where, *saved; /* when it failed */
    const char *trouble, *skipped;
};

void guard_family_open(struct plumb_guard *guard);
void guard_family_close(struct plumb_guard *guard);
/* Both under the lock: writes it in a child, and does nothing elsewhere; and takes what children
 * wrote into the account. */
void guard_family_tell(struct plumb_guard_op *op, const struct guard_family_news *news);
void guard_family_hear(struct plumb_guard *guard);

/* ---- Names (skip.c) -------------------------------------------------------------------------- */

/* "aten::add.Tensor" -> "add.Tensor", "aten::mm" and "aten::mm.default" -> "mm"; other namespaces
 * stay. Returns the start within name, and the length. */
const char *guard_short_name(const char *name, size_t *length);

/* Whether the account names operators that are not checked for this reason: those of the skip list
 * that compute nothing need no words. */
bool guard_skip_is_told(const char *why);

/* ---- The log (log.c) ------------------------------------------------------------------------- */

/* Opens it; makes the folders that the file lies in. */
enum plumb_code guard_log_open(struct plumb_guard *guard, struct plumb_error *err);

/* One line, one write(). */
enum plumb_code guard_log_failure(const struct plumb_guard_op *op,
                                  const struct plumb_guard_case *about,
                                  const struct plumb_guard_verdict *verdict,
                                  struct plumb_error *err);

/* ---- Saving (save.c) ------------------------------------------------------------------------- */

/* Writes a folder of its own for the failure under guard->save and puts its path into
 * verdict->saved. */
enum plumb_code guard_save_failure(struct plumb_guard *guard, const struct plumb_guard_op *op,
                                   const struct plumb_guard_case *about,
                                   const struct plumb_arg *reference, size_t n_reference,
                                   bool raised, struct plumb_guard_verdict *verdict,
                                   struct plumb_error *err);

#endif
