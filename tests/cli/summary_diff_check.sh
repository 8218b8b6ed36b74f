. "$(dirname "$0")/lib/make.sh"
exec 2>&1
titles=name,op_name,dtype,shape,min-val,max-val,is_pass,max,1e-1,1e-2,1e-3,1e-4,1e-5,1e-6,1e-7
cat >xpu.csv <<END
$titles
00027-aten,aten.add.Tensor,torch.float32,"[260, 1152]",-29.09375,33.75,pass,0,0,0,0,0,0,0,0
00004-aten,aten.linspace.default,torch.float32,[10],0.0,47.0,pass,0,0,0,0,0,0,0,0
00028-aten,aten.add.Tensor,torch.int64,"[10, 26]",0,0,fail,3.0,9,9,9,9,9,9,9
00030-aten,aten.sub.Tensor,torch.int32,[1],,,skip,,,,,,,,
END
cat >gpu.csv <<END
$titles
00004-aten,aten.linspace.default,torch.float32,[10],0.0,47.0,pass,1.9073486328125e-06,0,0,0,0,0,2,6
00027-aten,aten.add.Tensor,torch.float32,"[260, 1152]",-29.09375,33.75,pass,0,0,0,0,0,0,0,0
00028-aten,aten.add.Tensor,torch.int64,"[10, 26]",0,0,pass,0,0,0,0,0,0,0,0
00030-aten,aten.sub.Tensor,torch.int32,[1],0,0,pass,0,0,0,0,0,0,0,0
00031-aten,aten.sub.Tensor,torch.int32,[1],0,0,pass,0,0,0,0,0,0,0,0
END
try plumb summary_diff_check ./xpu.csv ./gpu.csv ./result.csv
cat result.csv
try plumb summary_diff_check xpu.csv gpu.csv --wide --limit 1
try plumb summary_diff_check xpu.csv gpu.csv --allowance 5 --format csv --limit 2
head -n 3 gpu.csv >good.csv
try plumb summary_diff_check good.csv gpu.csv --sort op_name --limit 2
try plumb summary_diff_check good.csv good.csv result.json
try plumb summary_diff_check good.csv good.csv result.exe
try plumb summary_diff_check good.csv
try plumb summary_diff_check good.csv good.csv --allowance=-1
: >empty.csv
try plumb summary_diff_check empty.csv good.csv
echo name,op_name >short.csv
try plumb summary_diff_check good.csv short.csv
(cat good.csv; tail -n 1 good.csv) >twice.csv
try plumb summary_diff_check twice.csv good.csv
printf '%s\n00001-aten,"' $titles >cut.csv
try plumb summary_diff_check cut.csv good.csv
printf '%s\n\033[2J,a,b,[1],0,0,pass,much,0,0,0,0,0,0,0' $titles >odd.csv
try plumb summary_diff_check odd.csv good.csv
printf '%s\n\033[2J,a\033[2J,b,[1],0,0,pass,0,0,0,0,0,0,0,1' $titles >odd.csv
printf '%s\n\033[2J,a\033[2J,b,[1],0,0,pass,0,0,0,0,0,0,0,0' $titles >even.csv
try plumb summary_diff_check odd.csv even.csv
try plumb summary_diff_check nowhere.csv good.csv
