/* Command lines that people copy into a shell. */
#include "base/shell.h"

#include <string.h>

void shell_word(struct buf *out, const char *word)
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

void shell_capsule(struct buf *out, const char *dump, const char *call, size_t length)
{
    struct buf name = {0}, folder = {0};
    buf_append(&name, call, length);
    buf_append(&name, "", 1);
    buf_printf(&folder, "./%s", name.data ? name.data : "");
    out->failed |= name.failed || folder.failed;
    if (!out->failed) {
        buf_text(out, "plumb capsule ");
        shell_word(out, dump);
        buf_text(out, " ");
        shell_word(out, name.data);
        buf_text(out, " -o ");
        shell_word(out, folder.data);
        buf_text(out, " && plumb blame ");
        shell_word(out, folder.data);
    }
    buf_free(&name);
    buf_free(&folder);
}
