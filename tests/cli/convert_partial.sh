# What a format lacks is reported, the rest converted.
. "$(dirname "$0")/lib/make.sh"
exec 2>&1
safetensors in.safetensors \
    '{"half":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"full":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}' \
    '\x80\x3f\0\x40\0\0\x80\x3f'
try plumb convert in.safetensors out
ls out
mkdir folder
cp in.safetensors folder
head -c 40 in.safetensors >folder/cut.safetensors
try plumb convert folder all.safetensors
plumb info all.safetensors
