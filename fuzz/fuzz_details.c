/* Details files of the pre-check, under every profile: whatever is in them, every cell can be
 * asked for, and every row is found again by its name. */
#define _GNU_SOURCE
#include "task/precision/name.h"
#include "task/precision/read.h"
#include "verdict/profile.h"
#include "verdict/profiles.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct details_file *file, const struct details_cells *row)
{
    struct output_name name;
    if (precision_name(row->cell[COLUMN_NAME], &name) && !name.place.length)
        abort();
    for (enum precision_column column = FIRST_METRIC; column <= LAST_METRIC; column++) {
        struct value value = details_value(file, row, column);
        if (value.kind == VALUE_BLANK && value.typed)
            abort();
    }
}

static void read_all(const char *path, const struct precheck_profile *rules)
{
    struct details_file rows, names;
    struct plumb_error err = {0};
    if (details_open(&names, path, precheck_profiles, rules, true, &err)) {
        if (!err.message[0])
            abort();
        return;
    }
    if (details_open(&rows, path, precheck_profiles, rules, false, &err))
        abort();
    for (;;) {
        bool more;
        struct details_cells row, found;
        struct row_mark *mark;
        if (details_next(&rows, &row, &more, &err))
            abort();
        if (!more)
            break;
        look(&rows, &row);
        if (details_find(&names, row.cell[COLUMN_NAME], &found, &mark, &err) || !mark)
            abort();
        look(&names, &found);
    }
    details_close(&rows);
    details_close(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/fuzz_details_XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
    for (const struct precheck_profile *const *p = precheck_profiles; *p; p++)
        read_all(path, *p);
    unlink(path);
    return 0;
}
