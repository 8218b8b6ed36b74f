# Where results go, and how often.
. "$(dirname "$0")/lib/make.sh"
bytes a 1 2 3
cp a.safetensors b.safetensors
names() { ls "$@" | sed -E 's/_[0-9]{14}/_TIME/; s/TIME_[0-9]+/TIME_N/' | sort | uniq -c | sed 's/^ *//'; }
mkdir here; cd here
plumb compare -tp ../a.safetensors -gp ../b.safetensors >/dev/null
plumb compare --target_path=../a.safetensors --golden ../b.safetensors --xlsx >/dev/null
names .
for i in 1 2 3; do
    plumb compare ../a.safetensors ../b.safetensors -o out >/dev/null
done
ls out | wc -l
for ending in csv json md xlsx txt; do
    plumb compare ../a.safetensors ../b.safetensors result.$ending | head -n 1
    test -s result.$ending || echo "no result.$ending"
done
plumb compare -tp ../a.safetensors -gp ../b.safetensors given.csv | head -n 1
plumb compare -tp ../a.safetensors ../b.safetensors half.csv | head -n 1
try plumb compare ../a.safetensors ../b.safetensors -o ../a.safetensors
try plumb compare ../a.safetensors ../b.safetensors missing/result.csv
