/* How much memory there is for this process. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that the machine has, or fewer where a control group (a container, a batch job) allows
 * less. */
uint64_t memory_total(void);

/* What plumb takes unless it is told: three quarters of that. */
uint64_t memory_default(void);

/* The least of the limits that stand for the control groups named in `groups` (the text of
 * /proc/self/cgroup) and for all above them, below `root` (/sys/fs/cgroup); UINT64_MAX: none. */
uint64_t memory_group_limit(const char *groups, const char *root);

/* How many processes the kernel has ended for lack of memory since it started. */
uint64_t memory_kills(void);

/* "512M", "1.5G", "4096": bytes, with K, M, G or T for 1024 and its powers. False: not such a
 * text, or nothing. */
bool memory_parse(const char *text, uint64_t *bytes);

#endif
