. "$(dirname "$0")/lib/make.sh"
exec 2>&1
bytes a 1 2 3
bytes b 4 5
try plumb convert a.safetensors out
try plumb convert a.safetensors out
try plumb convert b.safetensors out
try plumb convert a.safetensors b.safetensors
try plumb convert a.safetensors b.safetensors --force
try plumb convert --force a.safetensors out
ls out; plumb info b.safetensors
