# Second opinions: words beside the documented results, what decides, and what is refused. Numbers of
# verdicts may differ in their last digits, so they are left out.
. "$(dirname "$0")/lib/make.sh"
dumps=$DATA/../../examples/dumps/tensor
cp -r "$dumps/npu" "$dumps/gpu" .

plumb compare npu gpu --verdict expected | grep '^|' | cut -d '|' -f 1,2,12,15
plumb compare npu gpu --verdict expected | sed -n '/^Second/s/(no simple.*//p'
for verdict in rules expected both; do
    try plumb compare npu gpu --verdict $verdict --quiet
    try plumb compare gpu gpu --verdict $verdict --quiet
done

# All of them accepted.
try plumb compare npu gpu --verdict expected --write-baseline known.json --quiet
try plumb compare npu gpu --verdict expected --baseline known.json --quiet

# Nothing that could be judged, and nothing to judge by.
bytes a 1 2 3
try plumb compare a.safetensors a.safetensors --verdict expected 2>&1 | tail -n 3 | cut -c 1-90
for words in '--columns xray' '--columns msprobe' '--rules msprobe' -da '--arithmetic tf33' '--memory x'; do
    try plumb compare npu gpu --verdict both $words 2>&1 | cut -c 1-90
done
try plumb compare npu gpu --seed 1 2>&1
try plumb api_precision_compare -npu "$DATA/golden/precheck/api_precision_compare/p2_nan_skip_names/npu_details.csv" \
    -gpu "$DATA/golden/precheck/api_precision_compare/p2_nan_skip_names/gpu_details.csv" --verdict both 2>&1
