# Dumps of two frameworks, paired by the layers that the calls are in.
. "$(dirname "$0")/lib/make.sh"
stamps() { sed -E 's/_[0-9]{14}/_TIME/'; }
names() { cut -d, -f1,2 | tr -d '[]"'; }

# tree FOLDER FRAMEWORK DTYPE MODULE MLP API N M: call N of the API is made in the MLP, M outside.
tree() {
    local t='{"type": "'$2'.Tensor", "dtype": "'$3'", "shape": [2], "Max": 1.5, "Min": -1, "Mean": 0.25, "Norm": 2}'
    mkdir -p "$1"
    cat >"$1/dump.json" <<END
{"task": "statistics", "framework": "$2", "data": {
 "$4.Net.forward.0": {"input_args": [$t], "output": [$t]},
 "$4.$5.forward.0": {"input_args": [$t], "output": [$t]},
 "$6.add.0.forward": {"input_args": [$t, $t], "output": [$t]},
 "$6.add.1.forward": {"input_args": [$t, $t], "output": [$t]}}}
END
    cat >"$1/construct.json" <<END
{"$4.Net.forward.0": null, "$4.$5.forward.0": "$4.Net.forward.0",
 "$6.add.$7.forward": "$4.$5.forward.0", "$6.add.$8.forward": "$4.Net.forward.0"}
END
    echo '{}' >"$1/stack.json"
}
tree t mindspore Float32 Cell.network mapping.MLP Mint 0 1
tree g pytorch torch.float32 Module.module fc1.Linear Torch 1 0
printf 'TopLayer:\n  network: module\nNet:\n  mapping: fc1\n' >layers.yaml
try plumb compare t g -lm layers.yaml -o out | stamps
cat out/data_mapping_*.yaml
plumb compare t g -dm out/data_mapping_*.yaml | tail -n 1
plumb compare t g -lm layers.yaml --rules msprobe --format csv 2>&1 | names | stamps
printf 'Net: fc1\n' >bad.yaml
try plumb compare t g -lm bad.yaml
bytes a 1
try plumb compare a.safetensors a.safetensors -lm
# Arguments and outputs that have other places.
printf -- '- ms_api: Mint.add\n  pt_api: Torch.add\n  ms_args: [0, 1]\n  pt_args: [1, 0]\n' >apis.yaml
for rules in documented msprobe; do
    plumb compare t g -am apis.yaml --rules $rules --format csv --quiet r.csv
    grep -o 'Mint.add.0.forward.input.1.*Torch.add.0.forward.input.0' r.csv
done
