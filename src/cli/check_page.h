/* The page of acc_check. */
#ifndef CLI_CHECK_PAGE_H
#define CLI_CHECK_PAGE_H

#include "cli/page.h"
#include "plumb/precheck.h"

/* What a page of acc_check is made of. */
struct check_page {
    const struct plumb_precheck_summary *summary;
    enum plumb_deciding verdict; /* what decides */
    bool failed;                 /* what the exit code says */
    const char *dump;
    bool recorded;    /* what the dump holds was judged: nothing was run */
    bool baseline;    /* whether deviations were held against accepted ones, */
    uint64_t changed; /* and how many are new or worse */
};

/* Tells the answer, the counts of the closing line, what was not looked at, and both tables. */
enum plumb_code check_page_tell(struct plumb_report *report, const struct check_page *page,
                                struct plumb_error *err);

#endif
