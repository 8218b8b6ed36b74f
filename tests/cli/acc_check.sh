. "$(dirname "$0")/lib/make.sh"
tensor() { # DTYPE SHAPE
    echo "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.$1\",\"shape\":$2,\"Max\":1,\"Min\":-1,\"requires_grad\":true}"
}
call() { # NAME ARGUMENT...
    local name=$1 list
    shift
    list=$(IFS=,; echo "$*")
    echo "\"$name.forward\":{\"input_args\":[$list],\"input_kwargs\":{},\"output\":[]}"
}
dump() { # ENTRY...
    local list
    list=$(IFS=,; echo "$*")
    echo "{\"framework\":\"pytorch\",\"dump_data_dir\":null,\"data\":{$list}}"
}
stamps() {
    sed -E 's/_[0-9]{14}\.csv/_TIME.csv/'
}
grads="\"Torch.add.0.backward\":{\"input\":[$(tensor float32 '[2,3]')],\"output\":[]}"
dump "$(call Torch.add.0 "$(tensor float32 '[2,3]')" "$(tensor float32 '[3]')")" "$grads" \
    "$(call Tensor.exp.0 "$(tensor float64 '[4]')")" "$(call Tensor.exp.1 "$(tensor float64 '[4]')")" \
    "$(call Torch.nothing.0 "$(tensor float32 '[2]')")" "$(call Torch.mm.0 "$(tensor float32 '[2]')")" \
    >dump.json

try plumb acc_check --no-torch -api_info dump.json -o out/deep | stamps
cat out/deep/*result*.csv
cut -d, -f1-3 out/deep/*details*.csv
try plumb multi_acc_check --no-torch dump.json -n 2 -o two --quiet | stamps
cmp out/deep/*result*.csv two/*result*.csv
cmp out/deep/*details*.csv two/*details*.csv
try plumb acc_check --no-torch dump.json -f -o filtered | stamps
try plumb acc_check --no-torch dump.json --rules msprobe -o origin | stamps
head -n 2 origin/*result*.csv | LC_ALL=C od -c | head -n 1

# Going on: everything is there, or half of it.
try plumb acc_check --no-torch dump.json -csv_path two/*result*.csv | stamps
truncate -s 100 two/*result*.csv
try plumb acc_check --no-torch dump.json -csv_path two/*result*.csv | stamps
cmp out/deep/*result*.csv two/*result*.csv
cmp out/deep/*details*.csv two/*details*.csv
