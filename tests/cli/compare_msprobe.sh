# Dump trees under the rules of msProbe: names of results, options, exit codes.
. "$(dirname "$0")/lib/make.sh"
golden="$DATA/golden/compare"
stamps() { sed -E 's/_[0-9]{14}/_TIME/'; }
names() { ls "$@" | stamps; }
tree() { # folder, maximum
    mkdir -p "$1"
    cat >"$1/dump.json" <<EOF
{"task": "statistics", "data": {
 "Cell.fc.Dense.forward.0": {"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32",
  "shape": [2], "Max": $2, "Min": -1.5, "Mean": 0.25, "Norm": 2.5, "requires_grad": true}]}}}
EOF
}
tree t/step0/rank0 1.0
tree t/step0/rank1 NaN
tree g/step0/rank0 1.0
tree g/step0/rank1 1.0
try plumb compare -tp t/step0 -gp g/step0 -o out --rules msprobe --columns msprobe | stamps
names out
try plumb compare -tp t/step0/rank0 -gp g/step0/rank0/dump.json -o one --xlsx --rules msprobe >/dev/null
names one
try plumb compare t/step0/rank0 g/step0/rank0 --rules msprobe --format csv
try plumb compare t/step0 g/step0 all.csv --rules msprobe
cp -r g/step0/rank0 module
sed -i s/Cell/Module/ module/dump.json
echo 'fc.Dense: lin.Linear' >cells.yaml
for map in "" "-cm" "-cm cells.yaml"; do
    plumb compare t/step0/rank0 module r.csv --rules msprobe $map | tail -n 1
done
printf 'a: b\nc: [d]\n' >bad.yaml
try plumb compare t/step0/rank0 module r.csv --rules msprobe -dm bad.yaml
try plumb compare t/step0/rank0 "$golden/cmp_md5/npu" r.csv --rules msprobe
head -c 200 t/step0/rank0/dump.json >cut.json
try plumb compare cut.json t/step0/rank0 r.csv --rules msprobe
head -c -2 t/step0/rank0/dump.json >cut.json
try plumb compare cut.json t/step0/rank0 r.csv --rules msprobe
