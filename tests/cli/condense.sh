. "$(dirname "$0")/lib/make.sh"
mkdir dump
bytes dump/a 1 2 3 4
mv dump/a.safetensors dump/first.safetensors
bytes b 7 7
mv b.safetensors dump
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
