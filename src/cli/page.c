/* --report FILE: a page for people, beside what a command prints. */
#define _GNU_SOURCE
#include "cli/page.h"

#include "base/buf.h"
#include "plumb/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

char *const *cli_words;

static struct timespec started;

/* A word as a shell takes it. */
static void put_word(struct buf *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,+@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        buf_text(out, word);
        return;
    }
    buf_text(out, "'");
    for (; *word; word++)
        if (*word == '\'')
            buf_text(out, "'\\''");
        else
            buf_append(out, word, 1);
    buf_text(out, "'");
}

static void tell_command(struct plumb_report *report)
{
    struct buf line = {0};
    buf_text(&line, "plumb");
    for (size_t k = 1; cli_words[k]; k++) {
        buf_text(&line, " ");
        put_word(&line, cli_words[k]);
    }
    if (line.data)
        plumb_report_reproduce(report, line.data);
    buf_free(&line);
}

struct plumb_report *page_begin(const char *command, const char *title, struct plumb_error *err)
{
    struct plumb_report *report = plumb_report_new(command, title);
    struct utsname machine;
    char *folder = getcwd(NULL, 0);
    if (report) {
        clock_gettime(CLOCK_MONOTONIC, &started);
        tell_command(report);
        plumb_report_fact(report, "plumb", PLUMB_VERSION);
        if (uname(&machine) == 0) {
            char text[512];
            snprintf(text, sizeof text, "%s, %s %s, %s", machine.nodename, machine.sysname,
                     machine.machine, plumb_cpu_level());
            plumb_report_fact(report, "machine", text);
        }
        if (folder)
            plumb_report_fact(report, "folder", folder);
    } else {
        plumb_no_memory(err);
    }
    free(folder);
    return report;
}

enum plumb_code page_end(struct plumb_report *report, const char *path, bool quiet,
                         enum plumb_code code, struct plumb_error *err)
{
    if (!report)
        return code;
    struct timespec now;
    char text[64];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof text, "%.1f s",
             (double)(now.tv_sec - started.tv_sec) +
                 1e-9 * (double)(now.tv_nsec - started.tv_nsec));
    plumb_report_fact(report, "time", text);
    if (!code)
        code = plumb_report_save(report, path, err);
    if (!code && !quiet)
        fprintf(stderr, "report: %s\n", path);
    plumb_report_free(report);
    return code;
}
