/* How dumps of graphs are read and paired, where that can be done in more than one way. All zero is
 * plumb's own: everything has a row, and what is what follows from names. Whoever wants it
 * otherwise fills this in; nobody asks who that was. All members are data or pure functions. */
#ifndef PAIR_AIR_RULES_H
#define PAIR_AIR_RULES_H

#include "format/ge_file.h"

struct air_op;
struct ge_name;
struct pair_parts;
struct pairing;

struct air_rules {
    /* -- Reading folders -- */

    const struct ge_reading *reading; /* of tensors; NULL: the usual one */
    /* Takes the name of a GE file apart, false: it is none. NULL: ge_name_parse. */
    bool (*parse_name)(const char *name, struct ge_name *parts);
    bool literal;  /* names are what they look like: mapping.csv does not give others, and nobody
                       minds that files spell the names of operators in their own way */
    bool leaves;   /* only folders without folders in them hold dump files */
    bool in_place; /* graphs are put together by their place: GE folders by the number of the model,
                       or of the device where there are several, FX folders by their order in a
                       token, texts by their number; else by their names. Tokens stay in the order
                       of their names, and a graph without files is one */
    bool all_files; /* of a node, in the order of paths; else those of the latest run, by number */
    bool by_target; /* the target is a GE dump, and says alone whether there are ranks; the golden
                       side is an FX dump unless it has a graph text */

    /* -- Pairing -- */

    bool pairs_only;  /* no rows for what has no partner, and a report of overflow is an operator;
                         files that cannot be read have rows all the same */
    bool graph_order; /* operators in the order of the text, strangers first; else by time */
    /* Of a file that cannot be read: is it an operator without tensors? NULL: no. */
    bool (*is_nothing)(const char *path);
    /* Finds the operators that a fused name is made of. NULL: all of the name must be. */
    void (*split)(struct pairing *pairing, const char *key, struct pair_parts *parts);
    /* Adds the rows of an operator: against the FX nodes of its parts, of which there are some, and
     * against a GE dump. NULL: as pair_with_fx and pair_with_ge do. */
    void (*pair_fx)(struct pairing *pairing, struct air_op *op, const struct pair_parts *parts);
    void (*pair_ge)(struct pairing *pairing, struct air_op *op);
};

#endif
