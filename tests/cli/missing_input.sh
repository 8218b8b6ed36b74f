. "$(dirname "$0")/lib/make.sh"
exec 2>&1
bytes good 1 2 3
: >empty
echo "not a tensor" >text.npy
head -c 20 good.safetensors >cut.safetensors
mkdir folder
for path in missing empty text.npy cut.safetensors; do
    try plumb info $path
done
try plumb info folder
try plumb summary missing
try plumb compare good.safetensors missing
try plumb compare missing good.safetensors
try plumb convert missing out
ls
