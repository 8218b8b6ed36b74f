/* Reading the ranks of a step for overflow_check: of every rank what the search wants to know, by
 * this process or by several. */
#ifndef RANKS_READING_H
#define RANKS_READING_H

#include "run/seen.h"
#include "task/ranks/analyze.h"

/* What one dump.json tells. */
struct rank_reading {
    enum plumb_code code; /* why it cannot be read */
    struct plumb_error error;
    struct buf notes;       /* what is odd about it */
    bool blind, cut;        /* nothing can be seen in it; it ends early */
    struct graph_rank rank; /* in the caller's arena */
};

/* Of plumb's own search, or of a profile's. */
const struct ranks_rules *rank_rules(const struct plumb_profile *profile);

/* A NaN or an infinity that counts. */
bool rank_is_abnormal(const struct dump_row *row, const struct ranks_rules *rules);

/* A NaN in what somebody has written; and whether a node was given it. */
bool rank_has_nan(const struct dump_row *row);
bool rank_is_given(const struct dump_row *row);

/* The name of the rules that others have to go by; NULL: plumb's own. */
const char *rank_profile(const struct plumb_analyze_options *options);

/* Which rank to read, and by which rules. */
void rank_pack_request(struct pack *pack, struct dump_place *place, const char **profile,
                       struct arena *arena);

/* Fills one for every place; the caller frees their notes. seen: on which hosts they are, in the
 * same order; NULL: here. options may be NULL. Fails when memory runs out, or with the crew. */
enum plumb_code rank_read_all(struct rank_reading *list, const struct dump_places *places,
                              const struct seen *seen, const struct plumb_analyze_options *options,
                              struct arena *arena, struct plumb_error *err);

/* Of a process that does not lead; places may be NULL, and is kept. */
struct crew_handler rank_handler(const struct crew_places *places);

#endif
