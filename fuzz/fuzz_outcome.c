/* CSV files of generated tests: whatever is in them, every row is found again by its name. */
#include "task/unittest/outcome.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome_file file;
    struct plumb_error err = {0};
    if (outcome_parse(&file, data, size, &err)) {
        if (!err.message[0])
            abort();
    } else {
        for (size_t i = 0; i < file.count; i++) {
            const char *name = file.rows[i].text[OUTCOME_NAME];
            const uint64_t *place = map_get(&file.names, name, strlen(name));
            if (!place || *place != i || outcome_elements(file.rows[i].text[OUTCOME_SHAPE]) < 0)
                abort();
        }
    }
    outcome_close(&file);
    return 0;
}
