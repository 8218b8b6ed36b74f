. "$(dirname "$0")/lib/make.sh"
exec 2>&1
examples=$(dirname "$0")/../../examples/passcheck

# The planted mistake of the example: another epsilon in the fused weights.
try plumb numeric_check "$examples/before.json" "$examples/after.json" --follow --format csv 2>&1 \
    | sed 's/,[^,]*,[^,]*,[^,]*,[^,]*,\([A-Z]*\),.*/,...,\1/; s/[0-9][0-9]* of/N of/; s/e [0-9]* !/e N !/'
try plumb numeric_check "$examples/before.json" "$examples/before.json" --limit 2
sed 's/1e-5/1e-3/' "$examples/after.json" >right.json
cp "$examples/before.json" .
try plumb numeric_check before.json right.json --quiet
try plumb numeric_check before.json right.json --quiet --device reference --precision 1e-12
try plumb numeric_check before.json "$examples/after.json" --quiet --precision 1
try plumb numeric_check before.json "$examples/after.json" --quiet --compare parameter

# All rows with every metric in a file.
try plumb numeric_check before.json right.json --iterations 2 --no-optimizer --quiet -o out.csv
grep -c , out.csv
head -n 1 out.csv | cut -d, -f1-9
grep -c 'after step' out.csv
try plumb numeric_check before.json right.json --seed 2 --all --iterations 3 -o out.json | tail -n 3
