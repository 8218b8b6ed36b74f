# 0: all pass; 1: something fails, has no partner or cannot be read; 2: unusable.
. "$(dirname "$0")/lib/make.sh"
bytes x 1 2 3
cp x.safetensors same.safetensors
bytes y 1 2 3
mv x.safetensors t.safetensors
bytes x 1 2 200
mv x.safetensors off.safetensors
mkdir one two
cp t.safetensors one/a.safetensors
cp t.safetensors two/a.safetensors
head -c 30 t.safetensors >two/cut.safetensors
for golden in same.safetensors off.safetensors y.safetensors two missing; do
    echo "$golden"
    try plumb compare --quiet t.safetensors $golden
done
echo folders
try plumb compare --quiet one one
try plumb compare --quiet one two
