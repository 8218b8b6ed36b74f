/* TorchAir dumps: what a graph compiled for a device computed (GE files), against the same graph
 * run operator by operator (FX .npy files), or against a GE dump without fusion; and one FX dump
 * against another. */
#ifndef PLUMB_TORCHAIR_H
#define PLUMB_TORCHAIR_H

#include "plumb/compare.h"
#include "plumb/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_torchair_options {
    /* Whose rules say what is paired, ordered, dropped and measured how. NULL: nothing is dropped,
     * and what has no partner or cannot be read is a row that says so. */
    const struct plumb_profile *rules;
    const struct plumb_profile *columns; /* whose table; NULL: that of PLUMB_COLUMNS_TORCHAIR */

    const char *standard;        /* name or file; NULL: "torchair" */
    const char *const *settings; /* assignments for plumb_standard_override, in order */
    size_t settings_count;
    const char *metrics; /* further columns, as in plumb_compare_options */
    bool wide;
    unsigned threads; /* 0: as many as there are processors */
    plumb_progress_fn *progress;
    void *progress_context;
};

/* The table of one graph of one rank. */
struct plumb_torchair_part {
    int64_t rank;  /* -1: the dump does not know ranks */
    int64_t graph; /* its id; -1: the rank has only one graph */
    struct plumb_comparison comparison;
    /* Rows without a counterpart, which neither pass nor fail: nodes that the compiler folded or
     * put in, arguments that are no tensors. comparison.unmatched counts what should be there. */
    size_t alone;
};

struct plumb_torchair {
    struct plumb_torchair_part *parts; /* by rank, then by graph */
    size_t count;
};

/* True when path is a folder that looks like a GE dump: a graph text lies in it or right below. */
bool plumb_torchair_recognise(const char *path);

/* True when path is a folder that looks like an FX dump, and holds no graph text. */
bool plumb_torchair_recognise_fx(const char *path);

/* Compares two dumps: a GE dump with an FX dump or another GE dump, or two FX dumps by the names
 * of their nodes. An FX dump as the target of a GE dump is refused with the advice to swap them.
 * Damage to single files and lines is rows, or a note in the closing lines; the call fails only
 * when there is nothing to compare. Free the result with plumb_torchair_free. */
enum plumb_code plumb_torchair_compare(struct plumb_torchair *out, const char *target,
                                       const char *golden,
                                       const struct plumb_torchair_options *options,
                                       struct plumb_error *err);
void plumb_torchair_free(struct plumb_torchair *result);

/* True when the content of the file is that of a GE dump file. */
bool plumb_ge_recognise(const char *path);

/* Lists the tensors of a GE dump file, or of all of them in a folder: File, Part, Dtype, Shape,
 * Original Shape, Format, Bytes, Problem. *text is for people: what the path is, and the decoded
 * fields of overflow files; the caller frees it. *problems counts rows that have one. */
enum plumb_code plumb_ge_info(struct plumb_table **table, char **text, size_t *problems,
                              const char *path, struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
