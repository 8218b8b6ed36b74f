# Names that are not UTF-8, or that a terminal would obey, in every kind of output.
. "$(dirname "$0")/lib/make.sh"
exec 2>&1
mkdir odd
bytes x 1 2 3
plumb convert x.safetensors folder >/dev/null
for name in $'a\xff' $'a\xfe' $'b\x1b[31mred' $'c\xc2\x9b2J' $'d\rx' $'e\xe2\x80\xaetxt'; do
    cp folder/x.npy "odd/$name.npy"
done
try plumb convert odd out.safetensors | od -c | sed 's/^[0-9]* *//' | grep -c '033'
LC_ALL=C od -An -c -j 8 -N 700 out.safetensors | tr -d ' \n' | grep -o '"[^"]*":{' | sort
iconv -f UTF-8 -t UTF-8 out.safetensors >/dev/null && echo valid
for format in csv json md; do
    echo "$format"
    plumb info --format "$format" odd | LC_ALL=C tr -d '\n\t' | LC_ALL=C tr '\000-\037\177' '#' | grep -c '#'
    plumb info --format "$format" odd | iconv -f UTF-8 -t UTF-8 >/dev/null && echo valid
done
plumb info --format csv odd
