/* What plumb and a worker say to each other: calls and settings as JSON, and answers, which are
 * checked as strictly as a file from a stranger. Tensors stand in shared memory. */
#ifndef DEVICE_MESSAGE_H
#define DEVICE_MESSAGE_H

#include "base/arena.h"
#include "base/buf.h"
#include "plumb/op.h"

enum { MESSAGE_VERSION = 1, MESSAGE_ALIGN = 64 };

/* What a worker is told first. */
struct message_setup {
    const char *device; /* "cuda:0" */
    unsigned threads;
    const char *const *imports;
    size_t n_imports;
    bool jit;
};

/* A call, and where its tensors go. */
struct message_call {
    struct buf text;
    struct message_place {
        const struct plumb_tensor *tensor;
        uint64_t at;
    } * places;
    size_t n_places, max_places;
    uint64_t bytes;              /* of shared memory that they take */
    size_t n_leaves, arg_leaves; /* tensors in args and kwargs, and in args */
};

bool message_put_setup(struct buf *out, const struct message_setup *setup);

/* What comes of a call may take `memory` bytes, a quarter of them for its results, which go behind
 * the tensors. */
enum plumb_code message_put_call(struct message_call *out, const struct plumb_call *call,
                                 bool raised, uint64_t memory, struct plumb_error *err);
void message_call_destroy(struct message_call *call);

/* Copies the tensors to where they go; base has room for call->bytes. */
void message_put_tensors(const struct message_call *call, void *base);

/* An answer to settings. kind: why it cannot start ("torch", "setup"); "" when it can. */
enum plumb_code message_get_ready(const char *text, size_t size, char kind[16],
                                  struct plumb_error *err);

/* An answer to a call. Tensors lie in memory bytes at base, and are copied; out->memory owns
 * everything. */
enum plumb_code message_get_result(const char *text, size_t size, const struct message_call *call,
                                   const void *base, uint64_t memory, struct plumb_result *out,
                                   struct plumb_error *err);

/* Makes one printable line of what somebody else wrote. */
void message_clean(char *text);

#endif
