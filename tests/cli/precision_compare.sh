# Two pre-checks against each other: what is said, which files there are, what they hold, and what
# is refused.
. "$(dirname "$0")/lib/make.sh"
cases=$DATA/golden/precheck/api_precision_compare
hide() { sed -E 's/_[0-9]{14}\.csv/_TIME.csv/'; }
run() { try plumb api_precision_compare -npu npu.csv -gpu gpu.csv "$@" 2>&1 | hide; }
take() { cp "$cases/$1/npu_details.csv" npu.csv; cp "$cases/$1/gpu_details.csv" gpu.csv; chmod +w *.csv; }

take p2_nan_skip_names
run -o out
ls out | hide
sed -n '1p;/topk/p;/linear/p' out/api_precision_compare_result_*.csv
sed -n '/topk/p' out/api_precision_compare_details_*.csv
run -o msprobe --rules msprobe --quiet
head -c 3 msprobe/*result*.csv | od -An -tx1
sed -n '/topk/p' msprobe/*result*.csv | LC_ALL=C od -c | tail -n 3
run -o out --quiet
ls out | wc -l

take p4_all_numeric_column
run -o four --rules msprobe

for name in p5_duplicate_gpu_row p6_malicious_name; do
    take $name
    run -o $name
    run -o $name-msprobe --rules msprobe
    ls $name $name-msprobe | hide
done

take p3_binary_absolute_ulp
cut -d , -f 1-6 npu.csv >half.csv && mv half.csv npu.csv
run
head -c 2000 gpu.csv >npu.csv
run
printf 'PK\003\004\0\0' >npu.csv
run
rm npu.csv
run
ls *.csv
try plumb api_precision_compare -npu gpu.csv 2>&1
