/* Starting a worker, talking to it against a deadline, and finding out how it ended. */
#define _GNU_SOURCE
#include "exec/device/process.h"

#include "base/child.h"
#include "exec/device/message.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ANSWER = 256 << 20 };

/* ---- Starting -------------------------------------------------------------------------------- */

static bool raise_both(int fd[2])
{
    return child_raise(&fd[0]) && child_raise(&fd[1]);
}

/* A folder of its own below $TMPDIR; NULL when there is no place for one. */
static char *make_scratch(void)
{
    const char *place = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s/plumb-worker-XXXXXX", place && *place == '/' ? place : "/tmp") < 0)
        return NULL;
    if (mkdtemp(path))
        return path;
    free(path);
    return NULL;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)where;
    (kind == FTW_DP ? rmdir : unlink)(path);
    return 0;
}

static void remove_scratch(char *path)
{
    if (path)
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    free(path);
}

/* Our environment, but for folders of PYTHONPATH that are not written out: an empty one is the
 * current folder, where a stranger's sitecustomize.py may lie. For free(), with *own. */
static char **clean_environment(char **own)
{
    static const char name[] = "PYTHONPATH=";
    size_t count = 0;
    while (environ[count])
        count++;
    char **copy = calloc(count + 1, sizeof *copy);
    *own = NULL;
    for (size_t k = 0; copy && k < count; k++) {
        copy[k] = environ[k];
        if (strncmp(environ[k], name, sizeof name - 1) != 0)
            continue;
        char *out = malloc(strlen(environ[k]) + 1);
        if (!out) {
            free(copy);
            return NULL;
        }
        size_t size = sizeof name - 1;
        memcpy(out, name, size);
        for (const char *at = environ[k] + size; *at;) {
            const size_t length = strcspn(at, ":");
            if (*at == '/') {
                if (size > sizeof name - 1)
                    out[size++] = ':';
                memcpy(out + size, at, length);
                size += length;
            }
            at += length + (at[length] == ':');
        }
        out[size] = '\0';
        copy[k] = out;
        free(*own); /* of a variable that is there twice, the last counts */
        *own = out;
    }
    return copy;
}

enum plumb_code process_start(struct process *process, const char *python, const char *script,
                              struct plumb_error *err)
{
    int control[2] = {-1, -1}, text[2] = {-1, -1}, life[2] = {-1, -1};
    *process = PROCESS_NONE;
    enum plumb_code code = shared_init(&process->memory, err);
    if (code)
        return code;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) || !raise_both(control) ||
        pipe2(text, O_CLOEXEC) || !raise_both(text) || pipe2(life, O_CLOEXEC) ||
        !raise_both(life) || !child_raise(&process->memory.fd) ||
        fcntl(text[0], F_SETFL, O_NONBLOCK)) {
        code = plumb_fail(err, PLUMB_E_IO, "cannot open what a worker needs: %s", strerror(errno));
        goto out;
    }
    char *path = NULL;
    char **environment = clean_environment(&path);
    process->scratch = make_scratch();
    /* A session, and so a group, of its own: plumb finishes what is at hand after a Ctrl-C, and
     * what runs there cannot type into the terminal. */
    const struct child child = {
        .file = python,
        .search = true,
        .own_session = true,
        .arguments = (const char *const[]){python, script, process->scratch, NULL},
        .environment = environment,
        .given = (const int[]){-1, -1, text[1], process->memory.fd, control[1], life[0]},
        .n_given = 6};
    const int error = environment ? child_start(&process->pid, &child) : ENOMEM;
    free(environment);
    free(path);
    if (error) {
        process->pid = -1;
        code = plumb_fail(err, PLUMB_E_IO, "cannot be started: %s", strerror(error));
        goto out;
    }
    process->control = control[0];
    process->err = text[0];
    process->life = life[1];
    control[0] = text[0] = life[1] = -1;
out:
    for (int k = 0; k < 2; k++) {
        child_close(&control[k]);
        child_close(&text[k]);
        child_close(&life[k]);
    }
    if (code)
        process_stop(process);
    return code;
}

/* ---- Ending ---------------------------------------------------------------------------------- */

/* Keeps the last of what it wrote. */
static void listen_to(struct process *process)
{
    char piece[4096];
    ssize_t n;
    while (process->err >= 0 && (n = read(process->err, piece, sizeof piece)) != 0) {
        if (n < 0) {
            if (errno != EINTR)
                return;
            continue;
        }
        const size_t room = sizeof process->said - 1;
        const size_t new = (size_t)n < room ? (size_t)n : room;
        const size_t old = process->n_said < room - new ? process->n_said : room - new;
        memmove(process->said, process->said + process->n_said - old, old);
        memcpy(process->said + old, piece + (size_t)n - new, new);
        process->n_said = old + new;
    }
    child_close(&process->err);
}

/* The last line of it, fit for a message. */
static const char *last_words(struct process *process)
{
    listen_to(process);
    process->said[process->n_said] = '\0';
    for (size_t k = 0; k < process->n_said; k++)
        if (!process->said[k])
            process->said[k] = ' ';
    while (process->n_said && strchr(" \n\r\t", process->said[process->n_said - 1]))
        process->said[--process->n_said] = '\0';
    char *line = strrchr(process->said, '\n');
    line = line ? line + 1 : process->said;
    message_clean(line);
    return line;
}

/* Waits for an end that is near, then brings it about. The status, or -1 when nobody knows. */
static int collect(struct process *process, int64_t patience)
{
    const int64_t deadline = child_now_ms() + patience;
    const struct timespec moment = {.tv_nsec = 1000000};
    int status = -1;
    pid_t ended = 0;
    while (process->pid >= 0) {
        ended = waitpid(process->pid, &status, WNOHANG);
        if (ended == process->pid || (ended < 0 && errno != EINTR))
            break;
        if (!child_time_left(deadline))
            kill(-process->pid, SIGKILL); /* and what it started */
        nanosleep(&moment, NULL);
    }
    process->pid = -1;
    return ended < 0 ? -1 : status;
}

void process_stop(struct process *process)
{
    child_close(&process->control);
    child_close(&process->life); /* which ends it, whatever it does */
    collect(process, 100);
    child_close(&process->err);
    shared_destroy(&process->memory);
    remove_scratch(process->scratch);
    *process = PROCESS_NONE;
}

static const char *signal_name(int number, char text[24])
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"},
        {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
        {SIGILL, "SIGILL"},   {SIGTERM, "SIGTERM"},
        {SIGINT, "SIGINT"},   {SIGKILL, "SIGKILL (by hand, or because memory ran out)"},
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].number == number)
            return names[k].name;
    snprintf(text, 24, "signal %d", number);
    return text;
}

/* How it ended that does not answer any more. */
static enum plumb_code fail_gone(struct process *process, struct plumb_error *err)
{
    enum { PATIENCE_MS = 2000 };
    const int status = collect(process, PATIENCE_MS);
    char how[64], number[24];
    const char *advice = "";
    if (status >= 0 && WIFSIGNALED(status)) {
        snprintf(how, sizeof how, "was ended by %s", signal_name(WTERMSIG(status), number));
        if (WTERMSIG(status) == SIGILL)
            advice = " (an instruction that this machine does not have; in a virtual machine set "
                     "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16)";
    } else if (status >= 0)
        snprintf(how, sizeof how, "ended with exit code %d", WEXITSTATUS(status));
    else
        snprintf(how, sizeof how, "ended");
    const char *words = last_words(process);
    enum plumb_code code = plumb_fail(err, PLUMB_E_IO, "the worker %s%s%s%.300s", how, advice,
                                      *words ? "; it last said: " : "", words);
    process_stop(process);
    return code;
}

static enum plumb_code fail_late(struct process *process, double seconds, struct plumb_error *err)
{
    kill(-process->pid, SIGKILL); /* and what it started */
    process_stop(process);
    return plumb_fail(
        err, PLUMB_E_IO,
        "no answer within %.3g s, and the worker was ended; --timeout gives it longer", seconds);
}

/* ---- Talking --------------------------------------------------------------------------------- */

bool process_is_there(struct process *process)
{
    struct pollfd control = {.fd = process->control, .events = POLLIN};
    /* Nothing has been asked, so what can be read is the end, or nonsense. */
    return process->pid >= 0 && poll(&control, 1, 0) == 0;
}

enum wait_end { WAIT_READY, WAIT_LATE, WAIT_FAILED };

static enum wait_end wait_for(struct process *process, short events, int64_t deadline)
{
    for (;;) {
        struct pollfd polled[2] = {{.fd = process->control, .events = events},
                                   {.fd = process->err, .events = POLLIN}};
        const int left = child_time_left(deadline);
        const int ready = left ? poll(polled, 2, left) : 0;
        if (ready < 0 && errno != EINTR)
            return WAIT_FAILED;
        if (ready == 0)
            return WAIT_LATE;
        if (ready > 0 && polled[1].revents)
            listen_to(process);
        if (ready > 0 && polled[0].revents)
            return WAIT_READY;
    }
}

static enum wait_end send_all(struct process *process, const void *bytes, size_t size,
                              int64_t deadline)
{
    const char *from = bytes;
    while (size) {
        const ssize_t n = send(process->control, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            from += n;
            size -= (size_t)n;
        } else if (errno == EAGAIN) {
            const enum wait_end end = wait_for(process, POLLOUT, deadline);
            if (end != WAIT_READY)
                return end;
        } else if (errno != EINTR) {
            return WAIT_FAILED;
        }
    }
    return WAIT_READY;
}

static enum wait_end receive(struct process *process, void *bytes, size_t size, int64_t deadline)
{
    char *to = bytes;
    while (size) {
        const enum wait_end end = wait_for(process, POLLIN, deadline);
        if (end != WAIT_READY)
            return end;
        const ssize_t n = recv(process->control, to, size, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return WAIT_FAILED;
        if (n > 0) {
            to += n;
            size -= (size_t)n;
        }
    }
    return WAIT_READY;
}

/* Memory follows what has come, not what was promised. */
static enum wait_end receive_body(struct process *process, size_t size, struct buf *answer,
                                  int64_t deadline)
{
    char piece[65536];
    enum wait_end end = WAIT_READY;
    for (size_t n; size && end == WAIT_READY && !answer->failed; size -= n) {
        n = size < sizeof piece ? size : sizeof piece;
        end = receive(process, piece, n, deadline);
        if (end == WAIT_READY)
            buf_append(answer, piece, n);
    }
    return end;
}

enum plumb_code process_exchange(struct process *process, const struct buf *message, double seconds,
                                 struct buf *answer, struct plumb_error *err)
{
    const int64_t deadline = child_now_ms() + (int64_t)((seconds < 1e9 ? seconds : 1e9) * 1000);
    unsigned char head[4];
    if (message->size > UINT32_MAX)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "a call of more than 4 GiB of text");
    for (int k = 0; k < 4; k++)
        head[k] = (unsigned char)(message->size >> (8 * k));
    enum wait_end end = send_all(process, head, sizeof head, deadline);
    if (end == WAIT_READY)
        end = send_all(process, message->data, message->size, deadline);
    if (end == WAIT_READY)
        end = receive(process, head, sizeof head, deadline);
    const size_t size =
        (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (end == WAIT_READY && size > MAX_ANSWER) {
        process_stop(process);
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "the worker's answer makes no sense: it is %zu bytes long", size);
    }
    if (end == WAIT_READY)
        end = receive_body(process, size, answer, deadline);
    if (end == WAIT_LATE)
        return fail_late(process, seconds, err);
    if (end == WAIT_FAILED)
        return fail_gone(process, err);
    if (answer->failed) {
        process_stop(process);
        return plumb_no_memory(err);
    }
    return PLUMB_OK;
}
