# Two golden checkpoints of other sizes; what only one side has, other shapes and zeros fail.
ckpt=$DATA/golden/compare/ckpt
plumb config_check -c "$ckpt/ckpt1" "$ckpt/ckpt2" -o out.json --only fail --format csv
echo "exit $?"
grep -c '"l2"' out.json

# The result file is not replaced unless asked for.
plumb config_check -c "$ckpt/ckpt1" "$ckpt/ckpt1" -o out.json
echo "exit $?"
plumb config_check -c "$ckpt/ckpt1" "$ckpt/ckpt1" -o out.json --force --quiet
echo "exit $?"

plumb config_check -c "$ckpt/ckpt1"
echo "exit $?"
plumb config_check
echo "exit $?"
plumb config_check -c nothing "$ckpt/ckpt1"
echo "exit $?"
mkdir empty
plumb config_check -c empty "$ckpt/ckpt1"
echo "exit $?"
