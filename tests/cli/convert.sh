. "$(dirname "$0")/lib/make.sh"
safetensors in.safetensors \
    '{"x.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"sub/y":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}}' \
    '\0\0\x80\x3f\0\0\0\x40\1\2\3'
try plumb convert in.safetensors folder/
find folder -type f | sort
plumb info folder | tail -n +2
try plumb convert in.safetensors out.h5
plumb info out.h5 | tail -n +2
try plumb convert out.h5 back.safetensors
plumb info back.safetensors | tail -n +2
tail -c 11 back.safetensors | od -An -tx1
ls
