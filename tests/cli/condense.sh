. "$(dirname "$0")/lib/make.sh"
mkdir dump
bytes dump/a 1 2 3 4 # too small to gain anything
mv dump/a.safetensors dump/first.safetensors
data=$(printf 'a%.0s' $(seq 2000))
safetensors dump/b.safetensors \
    '{"b":{"dtype":"U8","shape":[2000],"data_offsets":[0,2000]}}' "$data"
echo text >dump/note.txt
head -c 20 dump/b.safetensors >dump/cut.safetensors

try plumb condense dump --dry-run --settle 0.01
ls dump
try plumb condense dump --settle 0.01 --keep minmax,mean,norm,crc32
ls dump
cat dump/b.safetensors.condensed.json
plumb info dump
plumb summary dump
try plumb condense dump --settle 0.01

try plumb condense dump --keep minmax,median
try plumb condense dump --watch --dry-run
try plumb condense nowhere
