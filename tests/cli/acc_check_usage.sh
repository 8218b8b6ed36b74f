. "$(dirname "$0")/lib/make.sh"
exec 2>&1
echo '{"framework":"pytorch","data":{}}' >dump.json
echo '{"framework":"mindspore","data":{}}' >other.json
echo 'a,b' >accuracy_checking_result_20260101120000.csv
echo 'a,b' >accuracy_checking_details_20260101120000.csv
try plumb acc_check
try plumb acc_check dump.json -api_info dump.json
try plumb acc_check dump.json -n 3
try plumb multi_acc_check dump.json -n 0
try plumb multi_acc_check dump.json -n 65
try plumb acc_check dump.json -d
try plumb acc_check dump.json -d cpu cpu
try plumb acc_check dump.json -d warp9
try plumb acc_check dump.json -d cpu 0
try plumb acc_check dump.json -d 1 cpu
try plumb acc_check dump.json -d 00
try plumb acc_check dump.json -d 0 0
try plumb acc_check dump.json --rules mine
echo 'use ulp Torch.mm' >mine
try plumb acc_check dump.json --rules mine
rm mine
try plumb acc_check dump.json --seed -1
try plumb acc_check nowhere.json
try plumb acc_check .
try plumb acc_check other.json
try plumb acc_check dump.json -o dump.json/out
try plumb acc_check dump.json -config nowhere.json
try plumb acc_check dump.json -csv_path nowhere.csv
try plumb acc_check dump.json -csv_path accuracy_checking_result_20260101000000.csv
try plumb acc_check dump.json -csv_path accuracy_checking_result_20260101120000.csv
ls
plumb acc_check --help
diff <(plumb acc_check --help) <(plumb multi_acc_check --help)
