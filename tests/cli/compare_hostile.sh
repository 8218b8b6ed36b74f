# What cannot be read is a row that fails and ends nothing; what a name holds stays in its place.
. "$(dirname "$0")/lib/make.sh"
verdicts() { try plumb compare "$@" --format csv 2>/dev/null | sed -E 's/^([^,]*),.*,(PASS|FAIL),.*,"?([^"]*)"?$/\1: \2 \3/'; }
echo promises
try plumb compare --quiet "$DATA/hdf5/huge.h5" "$DATA/hdf5/huge.h5"
try plumb summary "$DATA/hdf5/huge.h5" 2>&1 | tail -n 2
echo specials
mkdir a b
bytes x 1 2 3
for side in a b; do
    cp x.safetensors $side
    mkfifo $side/pipe.npy
    ln -s nowhere $side/dangling.npy
    ln -s ../../x.safetensors $side/outside.safetensors
    ln -s . $side/loop
done
verdicts a b
echo names
name='evil\n9 compared: 9 pass\u001b[2J\u009b2J'
safetensors t.safetensors "{\"$name\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}" '\1'
safetensors g.safetensors "{\"$name\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}" '\2'
plumb compare t.safetensors g.safetensors | tail -n 1
plumb info $'missing\e[2J\xc2\x9b2J' 2>&1
echo steps
bytes proj.Linear.0.forward_input.0 1
plumb compare "$DATA/hdf5/module.h5" proj.Linear.0.forward_input.0.safetensors --format csv \
    2>/dev/null | grep -o 'only in the target run.*without.*'
