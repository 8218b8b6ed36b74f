# What a program reads comes alone on stdout, the closing line on stderr.
. "$(dirname "$0")/lib/make.sh"
bytes a 1 2 3
cp a.safetensors b.safetensors
plumb compare a.safetensors b.safetensors --format csv 2>closing | python3 -c '
import csv, sys
rows = list(csv.DictReader(sys.stdin))
print(len(rows), rows[0]["Cosine"], rows[0]["Result"])'
grep -c compared closing
plumb compare a.safetensors b.safetensors --format json 2>/dev/null | python3 -c '
import json, sys
print(len(json.load(sys.stdin)["rows"]))'
plumb compare a.safetensors b.safetensors | grep -c compared
plumb compare a.safetensors b.safetensors --quiet | wc -c
