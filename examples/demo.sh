#!/bin/sh
# Finds a planted fault: two captures of one small vision transformer, one of them from a device on
# which one layer is wrong (examples/make_demo.py made them). Ends with 0 when plumb names that layer.
# PLUMB is the program to use, build/plumb by default.
set -eu

cd "$(dirname "$0")/.."
plumb=${PLUMB:-build/plumb}
planted=blocks.2.norm2.LayerNorm.5.forward_output.0

say() {
    printf '\n%s\n' "$*"
}

show() {
    printf '\n$ plumb %s\n' "$*"
    "$plumb" "$@"
}

say 'A vision transformer of four blocks was captured twice: on a reference, and on a device.'
say 'What is in a capture? One row per tensor, in the order of the run:'
show summary examples/demo/golden --limit 12

say 'Where does the device stop agreeing? Every tensor of the capture, compared:'
status=0
show compare examples/demo/target examples/demo/golden || status=$?

closing=$("$plumb" compare examples/demo/target examples/demo/golden | tail -n 1)
first=$(printf '%s\n' "$closing" | sed -n 's/.*first failure: \([^ ]*\).*/\1/p')
if [ "$status" -ne 1 ] || [ "$first" != "$planted" ]; then
    say "demo: expected the first failing row to be $planted, got '${first:-none}' (exit $status)" >&2
    exit 1
fi
say "Planted was: the LayerNorm blocks.2.norm2 divides by n - 1 where it should divide by n." \
    "The first failing row is its output, $first; its input still passes, and so does" \
    "the output of the whole model."
