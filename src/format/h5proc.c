/* Running plumb-h5. */
#define _GNU_SOURCE
#include "format/h5proc.h"

#include "base/child.h"
#include "h5/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t deadline_after(double seconds)
{
    const char *told = secure_getenv("PLUMB_H5_TIMEOUT");
    char *end;
    double limit = told ? strtod(told, &end) : 0;
    if (told && end != told && limit > 0)
        seconds = limit;
    return child_now_ms() + (int64_t)((seconds < 1e9 ? seconds : 1e9) * 1000);
}

static bool raise_both(int fd[2])
{
    return child_raise(&fd[0]) && child_raise(&fd[1]);
}

/* A pipe of which we read one end without waiting. */
static bool open_pipe(int fd[2])
{
    return pipe2(fd, O_CLOEXEC) == 0 && raise_both(fd) && fcntl(fd[0], F_SETFL, O_NONBLOCK) == 0;
}

/* A socket instead of a pipe: only there can a write to a dead reader fail without a signal. */
static bool open_socket(int fd[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0 && raise_both(fd);
}

enum plumb_code h5proc_start(struct h5proc *proc, const char *const arguments[], bool feed,
                             double seconds, struct plumb_error *err)
{
    *proc = (struct h5proc){.pid = -1, .in = -1, .out = -1, .err = -1};
    char helper[PATH_MAX];
    enum plumb_code code = h5proc_find(helper, sizeof helper, err);
    if (code)
        return code;

    const char *argv[7] = {helper};
    for (int i = 0; i < 5 && arguments[i]; i++)
        argv[i + 1] = arguments[i];

    int data[2] = {-1, -1}, text[2] = {-1, -1};
    if (!open_pipe(text) || !(feed ? open_socket(data) : open_pipe(data))) {
        code = plumb_fail(err, PLUMB_E_IO, "cannot open a pipe: %s", strerror(errno));
        goto out;
    }
    proc->deadline = deadline_after(seconds);
    const int streams[3] = {feed ? data[1] : -1, feed ? -1 : data[1], text[1]};
    const struct child child = {.file = helper, .arguments = argv, .given = streams, .n_given = 3};
    int error = child_start(&proc->pid, &child);
    if (error) {
        proc->pid = -1;
        code = plumb_fail(err, PLUMB_E_IO, "cannot start %s: %s", helper, strerror(error));
        goto out;
    }
    *(feed ? &proc->in : &proc->out) = data[0];
    proc->err = text[0];
    data[0] = text[0] = -1;
out:
    for (int i = 0; i < 2; i++) {
        child_close(&data[i]);
        child_close(&text[i]);
    }
    return code;
}

/* Reads what is there of stderr; keeps the beginning. */
static void drain_text(struct h5proc *proc)
{
    char piece[512];
    ssize_t n = read(proc->err, piece, sizeof piece);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        child_close(&proc->err);
        return;
    }
    size_t room = sizeof proc->text - 1 - proc->text_size;
    size_t kept = (size_t)n < room ? (size_t)n : room;
    memcpy(proc->text + proc->text_size, piece, kept);
    proc->text_size += kept;
}

static enum plumb_code fail_timeout(struct plumb_error *err)
{
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "libhdf5 hangs on this file (gave up waiting; PLUMB_H5_TIMEOUT=SECONDS gives "
                      "it longer)");
}

/* Waits until `fd` can be used, draining stderr meanwhile. */
static enum plumb_code wait_for(struct h5proc *proc, int fd, short events, struct plumb_error *err)
{
    for (;;) {
        struct pollfd polled[2] = {{.fd = fd, .events = events},
                                   {.fd = proc->err, .events = POLLIN}};
        int left = child_time_left(proc->deadline);
        int ready = left ? poll(polled, 2, left) : 0;
        if (ready < 0 && errno != EINTR)
            return plumb_fail(err, PLUMB_E_IO, "cannot wait for plumb-h5: %s", strerror(errno));
        if (ready == 0)
            return fail_timeout(err);
        if (ready > 0 && polled[1].revents)
            drain_text(proc);
        if (ready > 0 && polled[0].revents)
            return PLUMB_OK;
    }
}

enum plumb_code h5proc_collect(struct h5proc *proc, size_t expected, size_t limit, void **data,
                               size_t *size, struct plumb_error *err)
{
    size_t used = 0, capacity = expected < limit ? expected : limit;
    capacity = capacity ? capacity : 1;
    char *bytes = malloc(capacity);
    enum plumb_code code = PLUMB_OK;
    if (!bytes)
        return plumb_no_memory(err);
    for (;;) {
        code = wait_for(proc, proc->out, POLLIN, err);
        if (code)
            break;
        /* One byte more than allowed is asked for, so that too much is noticed. */
        char beyond;
        size_t room = capacity - used;
        ssize_t n = read(proc->out, room ? bytes + used : &beyond, room ? room : 1);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n < 0)
            code = plumb_fail(err, PLUMB_E_IO, "cannot read from plumb-h5: %s", strerror(errno));
        if (n <= 0)
            break;
        if (room) {
            used += (size_t)n;
            continue;
        }
        if (capacity >= limit) {
            code =
                plumb_fail(err, PLUMB_E_FORMAT, "libhdf5 finds more in this file than it can hold");
            break;
        }
        capacity = capacity > limit / 2 ? limit : 2 * capacity;
        char *larger = realloc(bytes, capacity);
        if (!larger) {
            code = plumb_no_memory(err);
            break;
        }
        bytes = larger;
        bytes[used++] = beyond;
    }
    if (code) {
        free(bytes);
        return code;
    }
    *data = bytes;
    *size = used;
    return PLUMB_OK;
}

enum plumb_code h5proc_send(struct h5proc *proc, const void *bytes, size_t size, double seconds,
                            struct plumb_error *err)
{
    const char *from = bytes;
    proc->deadline = deadline_after(seconds);
    while (size) {
        ssize_t n = send(proc->in, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            from += n;
            size -= (size_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return plumb_fail(err, PLUMB_E_IO, "cannot send to plumb-h5: %s", strerror(errno));
        enum plumb_code code = wait_for(proc, proc->in, POLLOUT, err);
        if (code)
            return code;
    }
    return PLUMB_OK;
}

enum plumb_code h5proc_answer(struct h5proc *proc, double seconds, struct plumb_error *err)
{
    char answer;
    proc->deadline = deadline_after(seconds);
    for (;;) {
        enum plumb_code code = wait_for(proc, proc->in, POLLIN, err);
        if (code)
            return code;
        ssize_t n = recv(proc->in, &answer, 1, MSG_DONTWAIT);
        if (n == 1)
            return PLUMB_OK;
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return plumb_fail(err, PLUMB_E_IO, "plumb-h5 does not answer");
    }
}

void h5proc_kill(struct h5proc *proc)
{
    child_close(&proc->in);
    child_close(&proc->out);
    child_close(&proc->err);
    if (proc->pid < 0)
        return;
    kill(proc->pid, SIGKILL);
    while (waitpid(proc->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    proc->pid = -1;
}

/* What the helper said, fit for a message: one line, printable. */
static const char *spoken(struct h5proc *proc)
{
    proc->text[proc->text_size] = '\0';
    for (char *c = proc->text; *c; c++) {
        if (*c == '\n')
            *c = '\0';
        if (!*c)
            break;
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    }
    return proc->text[0] ? proc->text : "plumb-h5 gave up without a word";
}

static enum plumb_code judge(struct h5proc *proc, int status, struct plumb_error *err)
{
    static const enum plumb_code codes[] = {
        [H5_EXIT_OK] = PLUMB_OK,
        [H5_EXIT_DAMAGED] = PLUMB_E_FORMAT,
        [H5_EXIT_UNSUPPORTED] = PLUMB_E_UNSUPPORTED,
        [H5_EXIT_IO] = PLUMB_E_IO,
        [H5_EXIT_USAGE] = PLUMB_E_ARG,
    };
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return fail_timeout(err);
    if (WIFSIGNALED(status))
        return plumb_fail(err, PLUMB_E_FORMAT, "libhdf5 crashed on this file (signal %d)",
                          WTERMSIG(status));
    unsigned exit_code = (unsigned)WEXITSTATUS(status);
    if (exit_code == 0)
        return PLUMB_OK;
    if (exit_code >= sizeof codes / sizeof codes[0])
        return plumb_fail(err, PLUMB_E_IO, "plumb-h5 failed (exit code %u)", exit_code);
    return plumb_fail(err, codes[exit_code], "%s", spoken(proc));
}

enum plumb_code h5proc_finish(struct h5proc *proc, struct plumb_error *err)
{
    child_close(&proc->in);
    child_close(&proc->out);
    enum plumb_code code = PLUMB_OK;
    while (proc->err >= 0 && !code)
        code = wait_for(proc, proc->err, POLLIN, err);

    /* Its streams are closed, so it is gone or nearly so. */
    const struct timespec moment = {.tv_nsec = 200000};
    int status = 0;
    while (!code) {
        pid_t ended = waitpid(proc->pid, &status, WNOHANG);
        if (ended == proc->pid || (ended < 0 && errno != EINTR)) {
            /* ECHILD: our caller ignores SIGCHLD, and the answer must speak for itself. */
            proc->pid = -1;
            return judge(proc, ended < 0 ? 0 : status, err);
        }
        if (!child_time_left(proc->deadline))
            code = fail_timeout(err);
        else
            nanosleep(&moment, NULL);
    }
    h5proc_kill(proc);
    return code;
}
