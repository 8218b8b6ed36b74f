. "$(dirname "$0")/lib/make.sh"
cases=$DATA/golden/compare
hide() {
    sed -E 's/_[0-9]{14,}/_TIME/'
}

try plumb overflow_check -i "$cases/ranks_in_comm/overflow/step0" -o out | hide
ls out | hide
head -n 5 out/*
try plumb overflow_check "$cases/ranks_before_comm/overflow/step0/rank1/dump.json" -o out --format csv \
    2>/dev/null
try plumb overflow_check -i "$cases/ranks_before_comm/bench/step0" -o none
ls none 2>&1

# What cannot be used.
try plumb overflow_check 2>&1
try plumb overflow_check -i nothing 2>&1
mkdir -p step/rank0 step/rank1
try plumb overflow_check -i step 2>&1
echo '{"data": {"Torch.a.0.forward": {"output": [{"type": "torch.Tensor", "dtype": "torch.float32", "Max": Infinity' >step/rank1/dump.json
try plumb overflow_check -i step -o out 2>&1 | hide

# Nothing to look at is not nothing found.
mkdir -p empty blind/rank0 half/rank0 half/rank1
echo '{"data": {}}' >empty/dump.json
try plumb overflow_check empty 2>&1
echo '{"data": {"Torch.a.0.forward": {"output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "md5": "12345678"}]}}}' >blind/rank0/dump.json
try plumb overflow_check blind 2>&1
echo '{"data": {"Torch.a.0.forward": {"output": [{"type": "int", "value": 3}]}}}' >blind/rank0/dump.json
try plumb overflow_check blind 2>&1
cp empty/dump.json half/rank0
echo '{"data": {"Torch.a.0.forward": {"output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1, "Min": 1}]}}}' >half/rank1/dump.json
try plumb overflow_check half 2>&1
try plumb overflow_check half/rank1 2>&1
