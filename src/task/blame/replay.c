/* Where one call is: its line of the program, and the command that runs it alone. */
#include "base/shell.h"
#include "task/blame/parts.h"

#include <string.h>

const char *source_line(const char *const *stack)
{
    for (size_t k = 0; stack && stack[k]; k++)
        if (!strstr(stack[k], "/torch/"))
            return stack[k];
    return stack ? stack[0] : NULL;
}

/* The call without its direction: what a capsule is made of. */
static size_t bare_length(const char *call)
{
    static const char *const endings[] = {".forward", ".backward"};
    const size_t length = strlen(call);
    for (int k = 0; k < 2; k++) {
        const size_t tail = strlen(endings[k]);
        if (length > tail && strcmp(call + length - tail, endings[k]) == 0)
            return length - tail;
    }
    return length;
}

void replay_put(struct buf *out, const char *target, const struct plumb_suspect *is)
{
    shell_capsule(out, is->dump ? is->dump : target, is->call, bare_length(is->call));
}
