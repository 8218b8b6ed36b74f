. "$(dirname "$0")/lib/make.sh"
case=$DATA/golden/compare/ranks_in_comm
hide() {
    sed -E 's/_[0-9]{14,}/_TIME/'
}

try plumb compare -tp "$case/npu/step0" -gp "$case/bench/step0" -da -o out | hide
ls out | hide
try plumb compare "$case/npu/step0/rank1/dump.json" "$case/bench/step0/rank1/dump.json" -da | hide
try plumb compare "$case/npu/step0" "$case/npu/step0" -da --quiet -o quiet
ls quiet | hide

# What cannot be used.
try plumb compare "$case/npu/step0" "$case/bench/step0" out.csv -da 2>&1
try plumb compare "$case/npu/step0" "$case/bench/step0/rank0" -da --rules msprobe 2>&1
bytes a 1 2 3
try plumb compare a.safetensors a.safetensors -da 2>&1
