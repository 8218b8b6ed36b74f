/* What the readers of a graph file share. */
#ifndef PASSCHECK_PARSE_H
#define PASSCHECK_PARSE_H

#include "dump/call_parse.h"
#include "task/passcheck/graph.h"

/* An argument or output, whose first event was just read. */
enum plumb_code passcheck_parse_arg(struct case_parser *p, enum json_event event,
                                    struct passcheck_arg *out);

/* A list of them; the value of `what` begins next. */
enum plumb_code passcheck_parse_args(struct case_parser *p, const char *what,
                                     struct passcheck_arg **out, size_t *count);

/* The description of a tensor, whose name was just read. */
enum plumb_code passcheck_parse_leaf(struct case_parser *p, struct passcheck_leaf *leaf);

/* A text that must stand here. */
enum plumb_code passcheck_parse_text(struct case_parser *p, const char *what, const char **out);

#endif
