# Files that plumb and h5py write by default need no helper.
PLUMB_H5=$PWD/none plumb compare --all "$DATA/hdf5/plain_names.h5" "$DATA/hdf5/plain_names.h5" | tail -1
PLUMB_H5=$PWD/none plumb info "$DATA/hdf5/plain_order.h5"
plumb convert "$DATA/hdf5/plain_order.h5" own.h5
PLUMB_H5=$PWD/none plumb info own.h5
