. "$(dirname "$0")/lib/make.sh"
plumb summary "$DATA/hdf5/module.h5"
plumb summary "$DATA/hdf5/module.h5" out.txt
plumb summary "$DATA/hdf5/module.h5" | cmp - out.txt
plumb summary "$DATA/hdf5/module.h5" out.csv
head -n 2 out.csv
plumb summary "$DATA/hdf5/module.h5" --sort -Max --limit 2 --format md
mkdir folder
bytes a 1 2 3
mv a.safetensors folder
head -c 30 folder/a.safetensors >folder/cut.safetensors
try plumb summary folder 2>&1
