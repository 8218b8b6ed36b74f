/* HDF5 files of the plainest kind, listed without libhdf5 and without a process: as h5py and plumb
 * write them when nothing is asked for, with few tensors in a group, each stored in one piece. */
#ifndef FORMAT_H5PLAIN_H
#define FORMAT_H5PLAIN_H

#include "base/buf.h"

#include <stdint.h>

/* Appends what `plumb-h5 list` would say about the file, byte for byte. False when memory ends
 * (out->failed), and where anything is not as expected: libhdf5 has to say what the file is, or what
 * is wrong with it. */
bool h5plain_list(struct buf *out, const uint8_t *bytes, size_t size);

#endif
