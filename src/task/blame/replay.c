/* Where one call is: its line of the program, and the command that runs it alone. */
#include "task/blame/parts.h"

#include <string.h>

const char *source_line(const char *const *stack)
{
    for (size_t k = 0; stack && stack[k]; k++)
        if (!strstr(stack[k], "/torch/"))
            return stack[k];
    return stack ? stack[0] : NULL;
}

/* As a shell takes it for one word. */
static void put_quoted(struct buf *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        buf_text(out, word);
        return;
    }
    buf_text(out, "'");
    for (const char *c = word; *c; c++)
        if (*c == '\'')
            buf_text(out, "'\\''");
        else
            buf_append(out, c, 1);
    buf_text(out, "'");
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
    struct arena arena = {0};
    const char *call = arena_copy(&arena, is->call, bare_length(is->call));
    const char *folder = call ? arena_printf(&arena, "./%s", call) : NULL;
    if (folder) {
        buf_text(out, "plumb capsule ");
        put_quoted(out, is->dump ? is->dump : target);
        buf_text(out, " ");
        put_quoted(out, call);
        buf_text(out, " -o ");
        put_quoted(out, folder);
        buf_text(out, " && plumb blame ");
        put_quoted(out, folder);
    }
    out->failed |= !folder;
    arena_free(&arena);
}
