. "$(dirname "$0")/lib/make.sh"
exec 2>&1
head='"plumb_graph": 1, "inputs": {"x": {"dtype": "float32", "shape": [2, 3]}}'
node() { echo "{$head, \"nodes\": [$1], \"outputs\": [{\"ref\": \"y\"}]}" >g.json; }
run() { try plumb numeric_check g.json g.json --iterations 1 --limit 1 --compare output; }

node '{"name": "y", "op": "relu", "args": [{"ref": "x"}]}'
run
node '{"name": "y", "op": "reluu", "args": [{"ref": "x"}]}'
run
node '{"name": "y", "op": "relu", "args": [{"ref": "xx"}]}'
run
node '{"name": "y", "op": "relu", "args": [{"ref": "z"}]}, {"name": "z", "op": "relu", "args": [{"ref": "y"}]}'
run
node '{"name": "y", "op": "relu"}, {"name": "y", "op": "relu"}'
run
node '{"name": "y", "op": "relu", "args": []}'
run
node '{"name": "y", "op": "linear", "args": [{"ref": "x"}, {"ref": "x"}]}'
run
node '{"name": "y", "op": "matmul", "args": [{"ref": "x"}, {"ref": "x"}]}'
run
node '{"name": "y", "op": "zeros", "args": [[1000000, 1000000]]}'
run 2>&1 | sed 's/[0-9]* MiB/N MiB/'
node '{"name": "y", "op": "relu", "args": [{"ref": "x"}'
run
printf '\xff\xfe' >g.json
run
: >g.json
run
mkdir folder
try plumb numeric_check folder g.json
try plumb numeric_check gone.json g.json
try plumb numeric_check g.json
node '{"name": "y", "op": "relu", "args": [{"ref": "x"}]}'
try plumb numeric_check g.json g.json --compare outputs
try plumb numeric_check g.json g.json --iterations 0
try plumb numeric_check g.json g.json --precision=-1
try plumb numeric_check g.json g.json --device tpu 2>&1 | sed 's/;.*//'
try plumb numeric_check g.json g.json -o out.docx
