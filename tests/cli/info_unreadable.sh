. "$(dirname "$0")/lib/make.sh"
mkdir folder
bytes good 1 2 3
mv good.safetensors folder
head -c 30 folder/good.safetensors >folder/cut.safetensors
plumb info folder
