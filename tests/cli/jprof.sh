. "$(dirname "$0")/lib/make.sh"
exec 2>&1
mkdir proc_1
tensor='{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 1.5, "Min": -2.0, "stride": [3, 1]'
cat >proc_1/dump.json <<END
{"task": "tensor", "level": "aten", "framework": "pytorch", "dump_data_dir": "dump", "data": {
 "00000-aten": {"op": "aten.add.Tensor", "input_args": [$tensor, "data_name": "00000-aten.input.0.pt"}, {"type": "int", "value": 1}], "input_kwargs": {}, "output": []},
 "00001-aten": {"op": "aten.bernoulli_.float", "input_args": [$tensor}, {"type": "float", "value": 0.5}], "input_kwargs": {}, "output": []},
 "00002-aten": {"op": "aten.add.Tensor", "input_args": [$tensor}, {"type": "str", "value": "\"); import os #"}], "input_kwargs": {}, "output": []},
 "00003-aten": {"op": "aten.mul.Tensor"}}}
END
try plumb jprof --cpu_init --blacklist --factory=load proc_1/dump.json
ls proc_1/pytests
cat proc_1/pytests/test_aten_add_Tensor.py
grep -E '^(CPU_INIT|FACTORY)' proc_1/pytests/conftest.py
try plumb jprof --factory random proc_1/dump.json
ls proc_1/pytests
grep -E '^(CPU_INIT|FACTORY)' proc_1/pytests/conftest.py
echo 'add # not now' >list
try plumb jprof --blacklist list proc_1/dump.json
ls proc_1/pytests
try plumb jprof --blacklist proc_1/dump.json
try plumb jprof --blacklist nowhere proc_1/dump.json
try plumb jprof
try plumb jprof --factory=guess proc_1/dump.json
try plumb jprof nowhere.json
echo '{"data": {"Torch.load.0.forward": {"input_args": []}}}' >dump.json
try plumb jprof dump.json
echo '{"data": {"00000-aten": {"op": ' >dump.json
try plumb jprof dump.json
ls
