# Where generated tests may go: nowhere that a stranger's link points to, and not beside Python that
# somebody else wrote.
. "$(dirname "$0")/lib/make.sh"
exec 2>&1
mkdir proc_1 elsewhere
cat >proc_1/dump.json <<'END'
{"task": "tensor", "level": "aten", "framework": "pytorch", "dump_data_dir": "dump", "data": {
 "00000-aten": {"op": "aten.add.Tensor", "input_args": [{"type": "int", "value": 1}, {"type": "int", "value": 1}], "input_kwargs": {}, "output": []}}}
END
ln -s ../elsewhere proc_1/pytests
try plumb jprof proc_1/dump.json
ls elsewhere
rm proc_1/pytests

mkdir proc_1/pytests
for name in test_theirs.py theirs_test.py conftest.py pytest.ini theirs.so __init__.py data.txt; do
    echo theirs >"proc_1/pytests/$name"
    try plumb jprof proc_1/dump.json
    ls proc_1/pytests
    rm "proc_1/pytests/$name"
done
echo kept >elsewhere/conftest.py
ln -s ../../elsewhere/conftest.py proc_1/pytests/conftest.py
try plumb jprof proc_1/dump.json
cat elsewhere/conftest.py
rm proc_1/pytests/conftest.py
mkfifo proc_1/pytests/test_pipe.py
try plumb jprof proc_1/dump.json
rm proc_1/pytests/test_pipe.py

# What runs of jprof and pytest leave there is fine, compiled Python goes.
try plumb jprof proc_1/dump.json
mkdir proc_1/pytests/__pycache__ proc_1/pytests/.pytest_cache
echo theirs | tee proc_1/pytests/__pycache__/conftest.pyc >proc_1/pytests/result.csv
try plumb jprof proc_1/dump.json
ls -A proc_1/pytests
grep ^DATA proc_1/pytests/conftest.py

# A place of the caller's own, through a link if it pleases.
mkdir mine
ln -s mine link
try plumb jprof -o link proc_1/dump.json
ls -A mine
grep '^DATA = "' mine/conftest.py | sed "s|$PWD|HERE|"
