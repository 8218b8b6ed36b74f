/* The page of api_precision_compare. */
#ifndef CLI_PRECISION_PAGE_H
#define CLI_PRECISION_PAGE_H

#include "cli/page.h"
#include "plumb/precision.h"

/* Tells the answer, the counts of the closing line, what was left out, both tables that were
 * written, and the numbers of both devices beside each other. status: the exit code. */
enum plumb_code precision_page_tell(struct plumb_report *report,
                                    const struct plumb_precision_options *options,
                                    const struct plumb_precision_result *result, int status,
                                    struct plumb_error *err);

#endif
