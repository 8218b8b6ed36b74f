# What writes workbooks is a library of its own: without it .xlsx is refused, and all else works.
export PLUMB_XLSX=/nowhere/libplumb-xlsx.so
plumb compare "$DATA/xray/gpu.h5" "$DATA/xray/gpu.h5" out.xlsx --quiet
echo "exit $?"
plumb compare "$DATA/xray/gpu.h5" "$DATA/xray/gpu.h5" out.csv --quiet
echo "exit $?"
ls
