# Nothing is written outside of the folder that was named, whatever tensors are called and wherever
# links in it point to; without --force nothing is replaced, however many try at once.
. "$(dirname "$0")/lib/make.sh"
exec 2>&1
tensor='{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
for name in . / ./ .// /./. x/..; do
    safetensors in.safetensors "{\"$name\":$tensor}" '\1'
    try plumb convert --force in.safetensors place/folder 2>&1
done
mkdir -p place/folder elsewhere
safetensors in.safetensors "{\"a/b\":$tensor,\"c\":${tensor/0,1/1,2},\"d\":${tensor/0,1/2,3}}" '\1\2\3'
echo mine | tee elsewhere/b.npy >elsewhere/c.npy
ln -s ../../elsewhere place/folder/a
ln -s ../../elsewhere/c.npy place/folder/c.npy
ln -s ../../elsewhere/none.npy place/folder/d.npy
try plumb convert in.safetensors place/folder
try plumb convert --force in.safetensors place/folder
cat elsewhere/*
find . | sort

echo A link that was named is followed, and stays
ln -s place/folder folder-link
ln -s elsewhere/real.bin out.safetensors
rm place/folder/*
try plumb convert in.safetensors folder-link
try plumb convert in.safetensors out.safetensors
try plumb convert --force in.safetensors out.safetensors
try plumb convert --force in.safetensors elsewhere/real.safetensors
ln -s elsewhere/real.safetensors link.safetensors
try plumb convert in.safetensors link.safetensors
safetensors in.safetensors "{\"new\":$tensor}" '\1'
try plumb convert --force in.safetensors link.safetensors
plumb info elsewhere/real.safetensors | tail -n 1
test -L link.safetensors && echo still a link

echo Two at once
for round in 1 2 3 4 5; do
    rm -rf race.safetensors race
    for process in 1 2 3 4; do
        plumb convert in.safetensors race.safetensors >/dev/null 2>&1 && echo won >>file.$round &
        plumb convert in.safetensors race/ >/dev/null 2>&1 && echo won >>folder.$round &
    done
    wait
done
wc -l file.1 file.2 file.3 file.4 file.5 folder.1 folder.2 folder.3 folder.4 folder.5 | tail -n 1
