# A reader that leaves early is no error; a full disk is.
. "$(dirname "$0")/lib/make.sh"
bytes a 1 2 3
plumb info a.safetensors | true
echo "${PIPESTATUS[0]}"
plumb --help >/dev/full
echo "$?"
plumb info a.safetensors >/dev/full
echo "$?"
plumb info a.safetensors --format csv >/dev/full
echo "$?"
