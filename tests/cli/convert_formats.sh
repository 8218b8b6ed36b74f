# Whatever plumb reads comes out of a conversion as it went in.
convert() {
    plumb convert "$DATA/$1" $2
    plumb compare "$DATA/$1" $2 --standard allclose --quiet
    echo "-> $?"
}
for file in npz/plain.npz pt/views.pt pt/state.pt; do
    convert $file $(basename $file).safetensors
    convert $file $(basename $file).h5
done
# Steps are groups in HDF5; elsewhere they become part of the names.
convert hdf5/module.h5 module.h5
plumb convert "$DATA/hdf5/module.h5" module.safetensors
plumb info module.safetensors | grep -c ' 10/proj'
# What cannot be read is named, the rest converted.
plumb convert "$DATA/npz/mixed.npz" mixed.safetensors
