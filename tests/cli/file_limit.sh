# A file that may not grow further (ulimit -f) is an error like any other, and leaves nothing behind.
. "$(dirname "$0")/lib/make.sh"
exec 2>&1
head -c 40000 /dev/zero >zeros
printf '{"x":{"dtype":"U8","shape":[40000],"data_offsets":[0,40000]}}' >header
printf "\\x$(printf %02x "$(stat -c %s header)")\\0\\0\\0\\0\\0\\0\\0" | cat - header zeros >x.safetensors
mkdir many
for i in $(seq 400); do
    ln x.safetensors "many/a-rather-long-name-of-a-tensor-$i.safetensors"
done
ulimit -f 8
for file in out.safetensors out.h5 folder; do
    try plumb convert x.safetensors $file
done
try plumb compare many many -o results/of/today | tail -n 1
try plumb compare many many -o results --xlsx | tail -n 1
try plumb compare many many result.csv
find . -path ./many -prune -o -print | sort
