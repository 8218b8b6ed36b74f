. "$(dirname "$0")/lib/make.sh"
exec 2>&1
try plumb ops layer_norm
try plumb ops Tensor.add_
try plumb ops Torch.linalg.inv
try plumb ops no_such_thing
try plumb ops a b
try plumb ops --no-such-option
plumb ops --format csv --sort Operator --limit 3 | head -n 1
plumb ops --help
