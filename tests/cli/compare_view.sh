both=("$DATA/xray/xpu.h5" "$DATA/xray/gpu.h5")
rows() { grep -E '^\| +[0-9]+ ' | cut -c 1-78; }
echo only; plumb compare "${both[@]}" --only fail | rows
echo limit; plumb compare "${both[@]}" --sort '-Max Err (t)' --limit 3 | rows
echo lenient; plumb compare "${both[@]}" --max_err 0.02 --quiet; echo $?
echo set; plumb compare "${both[@]}" --set max_abs=0.02 --quiet; echo $?
echo standard; plumb compare "${both[@]}" --standard allclose --rtol 0.1 --atol 1 --quiet; echo $?
echo metrics; plumb compare "${both[@]}" --metrics rmse,max_ulp --limit 1 --format csv 2>/dev/null | head -n 1
echo order; plumb compare "${both[@]}" --match order --quiet; echo $?
echo threads
plumb compare "${both[@]}" --metrics all --format json --threads 1 >one 2>&1
plumb compare "${both[@]}" --metrics all --format json --threads 7 >seven 2>&1
plumb compare "${both[@]}" --metrics all --format json --cpu-mask 0 >plain 2>&1
cmp one seven; cmp one plain
echo wrong
for option in --standard=none --set=nothing=1 --set=nonsense --metrics=nothing --sort=nothing --map=nothing; do
    plumb compare "${both[@]}" $option 2>&1 >/dev/null
    echo "$option $?"
done
