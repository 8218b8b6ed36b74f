# The operators are a library of their own: without it, what needs them says so, and nothing passes.
export PLUMB_OP=/nowhere/libplumb-op.so
echo 'int main;' >wrong.so
plumb ops add
echo "exit $?"
plumb acc_check "$DATA/../../examples/precheck/dump.json" -o out
echo "exit $?"
ls out 2>/dev/null
PLUMB_OP=$PWD/wrong.so plumb ops add 2>&1 | sed 's/opened: .*/opened/'
plumb compare "$DATA/xray/gpu.h5" "$DATA/xray/gpu.h5" --quiet
echo "exit $?"
# Beside the program, whatever the folder is called.
unset PLUMB_OP
mkdir -p 'a [b] *c/bin'
cp "$(command -v plumb)" 'a [b] *c/bin/'
cp "$(dirname "$(command -v plumb)")/libplumb-op.so" 'a [b] *c/bin/'
'a [b] *c/bin/plumb' ops add | head -n 1
