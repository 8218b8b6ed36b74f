# Names that would lead out of the folder, collide, or hide control characters.
. "$(dirname "$0")/lib/make.sh"
exec 2>&1
entry() { printf '"%s":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}' "$1" "$2" "$(($2 + 1))"; }
safetensors in.safetensors \
    "{$(entry ../up 0),$(entry a/../../up 1),$(entry /etc/x 2),$(entry a//b 3),$(entry a/b 4),$(entry 'e\u001b[31m' 5)}" \
    '\1\2\3\4\5\6'
mkdir inner
cd inner
try plumb convert ../in.safetensors out
cd ..
find . -type f | sort
