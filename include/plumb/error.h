/* Errors: what went wrong, in which file, at which byte.
 *
 * Every fallible function of plumb returns an enum plumb_code (0 is success) and, when the caller
 * passes one, fills a struct plumb_error. Nothing is printed, nothing aborts. */
#ifndef PLUMB_ERROR_H
#define PLUMB_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers never change; new ones may come behind. */
enum plumb_code {
    PLUMB_OK = 0,
    PLUMB_E_NOMEM = 1,       /* out of memory, or more than is allowed */
    PLUMB_E_IO = 2,          /* the operating system said no: missing, unreadable, disk full */
    PLUMB_E_FORMAT = 3,      /* the file is damaged or lies about itself */
    PLUMB_E_UNSUPPORTED = 4, /* well-formed, but not something plumb reads or does */
    PLUMB_E_ARG = 5,         /* the caller asked for something impossible */
};

#define PLUMB_NO_OFFSET UINT64_MAX

struct plumb_error {
    enum plumb_code code;
    uint64_t offset;   /* byte position in file, or PLUMB_NO_OFFSET */
    char file[256];    /* path, cut on the left when longer; empty when no file is involved */
    char message[512]; /* one line, no newline */
};

/* Fills err (which may be NULL) and returns code, so that callers can `return plumb_fail(...)`. */
enum plumb_code plumb_fail(struct plumb_error *err, enum plumb_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with the byte position that is to blame. */
enum plumb_code plumb_fail_at(struct plumb_error *err, enum plumb_code code, uint64_t offset,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));

/* "out of memory", and PLUMB_E_NOMEM. */
enum plumb_code plumb_no_memory(struct plumb_error *err);

/* Writes the name of the file into err, unless a deeper layer already did. */
void plumb_error_in_file(struct plumb_error *err, const char *path);

/* "FILE: at byte N: MESSAGE" as one line into text, cut to size; returns text. */
const char *plumb_error_text(const struct plumb_error *err, char *text, size_t size);

/* "0.1.0": of the library that is in use, which may not be the one of the headers. A constant. */
const char *plumb_version(void);

#ifdef __cplusplus
}
#endif
#endif
