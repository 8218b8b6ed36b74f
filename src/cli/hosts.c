/* Commands whose process 0 has to see all of the dumps. */
#include "cli/cli.h"
#include "run/seen.h"

enum plumb_code cli_check_hosts(const char *const *paths, size_t count, struct plumb_error *err)
{
    struct seen seen = {0};
    if (!cli_crew)
        return PLUMB_OK;
    enum plumb_code code = seen_look(&seen, cli_crew, paths, count, err);
    if (!code)
        code = seen_here(&seen, err);
    seen_free(&seen);
    return code;
}
