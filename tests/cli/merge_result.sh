# The golden results of two ranks, as a workbook and as text.
case=$DATA/golden/compare/ranks_in_comm
plumb merge_result -i "$case/merge_in" -config "$case/merge.yaml" -o out | sed 's/[0-9]\{14\}/TIME/'
plumb merge_result -i "$case/merge_in" -config "$case/merge.yaml" -o out --csv |
    sed 's/[0-9]\{14\}/TIME/'
cat out/*.MeanRelativeErr.csv

# One that cannot be read costs its rank.
mkdir in
cp "$case"/merge_in/* in
echo damage >in/compare_result_rank7_20260101000000.xlsx
plumb merge_result -i in -o more | sed 's/[0-9]\{14\}/TIME/'
echo "exit ${PIPESTATUS[0]}"

plumb merge_result -i out -o more
echo "exit $?"
plumb merge_result -i in
echo "exit $?"
