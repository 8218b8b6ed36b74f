/* Drawing and erasing the progress bar. */
#define _GNU_SOURCE
#include "cli/progress.h"

#include "cli/terminal.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define DELAY_MS 1000
#define REDRAW_MS 100

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void progress_init(struct progress *progress)
{
    *progress = (struct progress){.enabled = isatty(STDERR_FILENO) == 1, .started = now_ms()};
}

void progress_update(void *context, uint64_t done, uint64_t total)
{
    static const char full[] = "########################################";
    struct progress *progress = context;
    if (!progress->enabled)
        return;
    int64_t now = now_ms(), elapsed = now - progress->started;
    if (elapsed < DELAY_MS || now - progress->drawn < REDRAW_MS)
        return;
    progress->drawn = now;
    progress->shown = true;

    double share = total ? (double)done / (double)total : 0;
    share = share > 1 ? 1 : share;
    unsigned columns = terminal_width(STDERR_FILENO);
    int bar = columns >= 100 ? 40 : columns >= 70 ? 20 : 5, filled = (int)(share * bar);
    bool large = total >= 1000000000;
    double unit = large ? 1e9 : 1e6, rate = (double)done / unit / ((double)elapsed / 1e3);
    double left = share > 0 ? (double)elapsed / 1e3 * (1 - share) / share : 0;
    const char *name = large ? "GB" : "MB";
    fprintf(stderr, "\r[%.*s%*s] %3d %% %.1f of %.1f %s, %.1f %s/s, %.0f s left\033[K", filled,
            full, bar - filled, "", (int)(share * 100), (double)done / unit, (double)total / unit,
            name, rate, name, left);
    fflush(stderr);
}

void progress_end(struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
