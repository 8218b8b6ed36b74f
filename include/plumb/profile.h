/* Profiles: whose rules a job follows where tools disagree. plumb's own, which the documentation
 * describes, need none. */
#ifndef PLUMB_PROFILE_H
#define PLUMB_PROFILE_H

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_profile;

/* The profile of that name: "documented", which is the same as NULL where a profile is asked for,
 * or "msprobe", the measured behaviour of msProbe with its quirks. NULL for any other name. It is
 * constant, lives as long as the program and may be used by many threads. */
const struct plumb_profile *plumb_profile_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
