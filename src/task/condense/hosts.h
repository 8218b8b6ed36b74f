/* The files below a folder on all hosts of a crew: each host lists its own disks. */
#ifndef CONDENSE_HOSTS_H
#define CONDENSE_HOSTS_H

#include "crew/crew.h"
#include "task/condense/scan.h"

/* scan_folder on every host. A file that several of them see with the same inode, size and time is
 * one on a shared disk, and in the scan once; else each has its own. `lost` is set for hosts, by
 * their number, that do not answer. PLUMB_E_IO when no host has the folder. Free the scan in any
 * case. */
enum plumb_code hosts_scan(struct scan *scan, struct plumb_crew *crew,
                           const struct crew_hosts *hosts, const char *folder, bool sweep,
                           bool *lost, struct plumb_error *err);

/* Whether a host has a file of the scan. */
bool hosts_have(const struct scan_file *file, unsigned host);

/* Of a process that does not lead; places may be NULL, and is kept. */
struct crew_handler hosts_scan_handler(const struct crew_places *places);

#endif
