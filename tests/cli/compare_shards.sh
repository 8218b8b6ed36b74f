# Tensors in parts on several ranks: found, given, refused.
. "$(dirname "$0")/lib/make.sh"
layouts() {
    plumb compare "$@" --format json 2>said | grep -o '"API Name": "[^"]*"\|"Layout": "[^"]*"' | paste -d' ' - -
    cat said
}
EXAMPLES=$DATA/../../examples/shards

echo "# found in the data"
layouts "$EXAMPLES"/four "$EXAMPLES"/one --shards
layouts "$EXAMPLES"/one "$EXAMPLES"/four --shards infer
layouts "$EXAMPLES"/four "$EXAMPLES"/four --shards

echo "# from a file, and before it from the command line"
cat >layouts.yaml <<END
parallel: tp=4
layouts:
  "qkv*": "o[tp:fused=1:1:1] i"
  "*.weight": "o[tp] i"
overrides:
  - {match: "hid.en", dims: "b s[tp:zigzag] h", side: target}
END
layouts "$EXAMPLES"/four "$EXAMPLES"/one --shards layouts.yaml --dims 'proj.weight=o i[tp]' --dims 'norm.weight=o'

echo "# axes: two by two, and slices of different sizes"
mkdir -p parts/rank{0,1,2,3} whole
bytes x 1 2 3 4 5 6 7
mv x.safetensors whole
cut() {
    rank=$1
    shift
    bytes x "$@"
    mv x.safetensors "parts/rank$rank"
}
cut 0 1 2 3
cut 1 1 2 3
cut 2 4 5 6 7
cut 3 4 5 6 7
layouts parts whole --shards
layouts parts whole --dims 'x=n[tp]' --parallel dp=2,tp=2
layouts parts whole --dims 'x=n[tp]' --parallel target:dp=2,tp=2
echo "# a part that is damaged costs its tensor"
printf x >parts/rank3/x.safetensors
layouts parts whole --shards
rm parts/rank3/x.safetensors
layouts parts whole --shards

echo "# refused"
cut 3 4 5 6 7
for words in "--dims x" "--dims x=n[tp" "--dims x=n[tp:sideways]" "--dims x=n[tp]m[tp]" "--parallel tp" "--parallel tp=0" \
    "--parallel tp=3" "--dims x=n[tp,cp]" "--dims x=a,b" "--shards missing.yaml" "--shards --verdict expected" "-da --shards"; do
    try plumb compare parts whole $words
done
for text in 'layouts: [a]' 'overrides: [{match: "(", dims: a}]' 'overrides: [{match: a}]' 'parallel: [1]' 'wrong: 1' \
    'overrides: [{match: a, dims: b, side: left}]' 'parallel: {left: tp=2}'; do
    echo "$text" >bad.yaml
    try plumb compare parts whole --shards bad.yaml
done
