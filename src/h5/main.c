/* plumb-h5: its commands, the limits that it sets itself, and what they all share. */
#define _POSIX_C_SOURCE 200809L
#include "h5/h5.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void limit(int resource, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(resource, &now) != 0 || (now.rlim_max != RLIM_INFINITY && now.rlim_max < most))
        return;
    setrlimit(resource, &(struct rlimit){most, most});
}

/* The parent watches the clock; these catch what runs away faster than that, or outlives it. */
static void set_limits(bool reads)
{
    limit(RLIMIT_CORE, 0);
    if (!SANITIZED) /* the sanitizer reserves terabytes of addresses */
        limit(RLIMIT_AS, (rlim_t)4 << 30);
    if (reads) {
        limit(RLIMIT_FSIZE, 0);
        limit(RLIMIT_CPU, 600);
    }
}

bool fail(struct outcome *outcome, enum h5_exit code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(outcome->text, sizeof outcome->text, format, args);
    va_end(args);
    outcome->code = code;
    return false;
}

static herr_t note_deepest(unsigned n, const H5E_error2_t *entry, void *context)
{
    if (n == 0 && entry->desc)
        snprintf(context, H5_MAX_TEXT, "%s", entry->desc);
    return 0;
}

bool fail_hdf5(struct outcome *outcome, enum h5_exit code, const char *format, ...)
{
    char cause[H5_MAX_TEXT] = "";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_deepest, cause);
    H5Eclear2(H5E_DEFAULT);

    va_list args;
    va_start(args, format);
    int length = vsnprintf(outcome->text, sizeof outcome->text, format, args);
    va_end(args);
    if (cause[0] && length >= 0 && (size_t)length < sizeof outcome->text)
        snprintf(outcome->text + length, sizeof outcome->text - (size_t)length, " (libhdf5: %s)",
                 cause);
    outcome->code = code;
    return false;
}

bool put_bytes(const void *data, size_t size)
{
    const char *from = data;
    while (size) {
        ssize_t n = write(STDOUT_FILENO, from, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        from += n;
        size -= (size_t)n;
    }
    return true;
}

static pid_t parent; /* 0: nobody is watched */

void watch_parent(void)
{
    parent = getppid();
}

static bool wait_for_bytes(void)
{
    struct pollfd polled = {.fd = STDIN_FILENO, .events = POLLIN};
    for (;;) {
        int ready = poll(&polled, 1, 1000);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
        if (ready == 0 && getppid() != parent)
            return false;
    }
}

bool get_bytes(void *data, size_t size)
{
    char *to = data;
    while (size) {
        if (parent && !wait_for_bytes())
            return false;
        ssize_t n = read(STDIN_FILENO, to, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        to += n;
        size -= (size_t)n;
    }
    return true;
}

hid_t open_file(const char *path, struct outcome *outcome)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        fail_hdf5(outcome, H5_EXIT_DAMAGED, "not a readable HDF5 file");
    return file;
}

static herr_t refuse_link(const char *parent_file, const char *parent_group, const char *file,
                          const char *object, unsigned *flags, hid_t access_plist, void *context)
{
    (void)parent_file, (void)parent_group, (void)file, (void)object;
    (void)flags, (void)access_plist, (void)context;
    return -1;
}

hid_t inside_only(hid_t plist_class)
{
    hid_t plist = H5Pcreate(plist_class);
    H5Pset_elink_cb(plist, refuse_link, NULL);
    return plist;
}

static bool parse_rank(const char *text, int64_t *rank)
{
    char *end;
    errno = 0;
    *rank = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *rank >= -1;
}

int main(int argc, char **argv)
{
    /* A dump may lie on a read-only or network file system, where locks fail. */
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow further is an error like any other */

    struct outcome outcome = {.code = H5_EXIT_OK};
    const char *command = argc > 2 ? argv[1] : "";
    struct write_request request = {0};
    set_limits(strcmp(command, "write") != 0);
    if (argc == 3 && strcmp(command, "list") == 0)
        list_file(argv[2], &outcome);
    else if (argc == 4 && strcmp(command, "read") == 0)
        read_dataset(argv[2], argv[3], &outcome);
    else if (argc == 6 && strcmp(command, "write") == 0 &&
             parse_rank(argv[3], &request.global_rank) &&
             parse_rank(argv[4], &request.local_rank)) {
        request.path = argv[2];
        request.name = argv[5];
        write_file(&request, &outcome);
    } else
        fail(
            &outcome, H5_EXIT_USAGE,
            "usage: plumb-h5 list FILE | read FILE DATASET | write FILE GLOBALRANK LOCALRANK NAME");

    if (outcome.code != H5_EXIT_OK)
        fprintf(stderr, "%s\n", outcome.text);
    /* No clean-up of a library that may have been confused by what it read; write_file closes what
     * it wrote. */
    _exit((int)outcome.code);
}
