. "$(dirname "$0")/lib/make.sh"
mkdir folder
safetensors folder/two.safetensors \
    '{"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"a":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}}' \
    '\0\0\x80\x3f\0\0\0\x40\x80\x3f'
echo notes >folder/README.txt
echo plain; plumb info folder
echo wide; plumb info folder --wide
echo sorted; plumb info folder --sort -Bytes
echo sorted up; plumb info folder --sort Name --limit 1
echo csv; plumb info folder --format csv
echo json; plumb info folder --format=json 2>/dev/null | python3 -c '
import json, sys
for row in json.load(sys.stdin)["rows"]: print(row["Name"], row["Dtype"], row["Shape"], row["Bytes"])'
echo md; plumb info folder --format md
plumb info folder --sort Weight
