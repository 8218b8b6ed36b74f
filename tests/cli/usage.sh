. "$(dirname "$0")/lib/make.sh"
exec 2>&1
try plumb
try plumb comapre
try plumb frobnicate
try plumb --verison
try plumb help frobnicate
try plumb info
try plumb info a b
try plumb info --limt 3 a
try plumb info --limit
try plumb info --limit -1 a
try plumb info --limit ten a
try plumb info --format xml a
try plumb info --wide=yes a
try plumb info --frobnicate a
try plumb compare a
try plumb compare -tp a
try plumb compare a b c.csv d
try plumb compare -tp a -gp b c.csv d
try plumb compare a b c.csv -o .
try plumb compare a b c.csv --xlsx
try plumb compare a b c.doc
try plumb compare a b --ma
try plumb compare a b --max_err=much
try plumb compare a b --threads 0
try plumb compare a b --cpu-mask avx2
try plumb summary
try plumb summary a b.doc
try plumb convert a
try plumb convert a b.npz
try plumb standard xry
