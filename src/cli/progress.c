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

bool progress_always;

void progress_init(struct progress *progress, const char *unit)
{
    *progress = (struct progress){.unit = unit,
                                  .enabled = progress_always || isatty(STDERR_FILENO) == 1,
                                  .started = now_ms()};
}

void progress_restart(struct progress *progress)
{
    progress->started = now_ms();
}

/* "1.2 of 6.4 MB, 0.5 MB/s", "300 of 5000 rows, 120 rows/s" or "3 of 10 files, 8.7 s each" */
static void put_amounts(char *text, size_t size, const char *unit, uint64_t done, uint64_t total,
                        double seconds)
{
    bool large = total >= 1000000000;
    double scale = unit ? 1 : large ? 1e9 : 1e6, rate = (double)done / scale / seconds;
    const char *name = unit ? unit : large ? "GB" : "MB";
    int digits = unit ? 0 : 1, digits_of_rate = unit && rate >= 10 ? 0 : 1;
    if (unit && done && rate < 1)
        snprintf(text, size, "%.0f of %.0f %s, %.1f s each", (double)done, (double)total, name,
                 1 / rate);
    else
        snprintf(text, size, "%.*f of %.*f %s, %.*f %s/s", digits, (double)done / scale, digits,
                 (double)total / scale, name, digits_of_rate, rate, name);
}

static void put_left(char *text, size_t size, double seconds)
{
    if (seconds < 100)
        snprintf(text, size, "%.0f s", seconds);
    else if (seconds < 6000)
        snprintf(text, size, "%.0f min", seconds / 60);
    else
        snprintf(text, size, "%.1f h", seconds / 3600);
}

void progress_update_parts(struct progress *progress, const char *then, uint64_t done,
                           uint64_t total)
{
    if (progress->total && progress->total != total) {
        progress->unit = then;
        progress_restart(progress);
    }
    progress->total = total;
    progress_update(progress, done, total);
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

    double share = total ? (double)done / (double)total : 0, seconds = (double)elapsed / 1e3;
    share = share > 1 ? 1 : share;
    double left = share > 0 ? seconds * (1 - share) / share : 0;
    unsigned columns = terminal_width(STDERR_FILENO);
    int bar = columns >= 100 ? 40 : columns >= 70 ? 20 : 5, filled = (int)(share * bar);
    char amounts[128], line[256];
    put_amounts(amounts, sizeof amounts, progress->unit, done, total, seconds);
    char remaining[32];
    put_left(remaining, sizeof remaining, left);
    snprintf(line, sizeof line, "[%.*s%*s] %3d %% %s, %s left", filled, full, bar - filled, "",
             (int)(share * 100), amounts, remaining);
    /* What does not fit would begin a new line, which nobody erases. */
    fprintf(stderr, "\r%.*s\033[K", columns ? (int)columns - 1 : (int)sizeof line, line);
    fflush(stderr);
}

void progress_end(struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
