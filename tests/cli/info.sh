plumb info "$DATA/hdf5/module.h5"
