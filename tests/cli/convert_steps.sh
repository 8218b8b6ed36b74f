# A run of several steps and ranks compares with what it was converted to, whatever that is.
case=$DATA/golden/compare/cmp_tensor_npy
mkdir -p run/step0 run/step3
cp -r "$case/npu" run/step0/rank0
cp -r "$case/bench" run/step0/rank1
cp -r "$case/bench" run/step3/rank0
cp -r "$case/npu" run/step3/rank1
for form in folder file.safetensors file.h5; do
    plumb convert run $form
    plumb compare run $form | tail -1
    plumb compare $form run | tail -1
done

# Conversions of it compare with one another, and so does what was converted twice.
plumb convert file.h5 twice
for form in file.safetensors file.h5 twice; do
    for other in folder file.h5 twice run; do
        plumb compare $form $other | tail -1
    done
done

# One step of two ranks, and two steps of one rank.
mkdir ranks steps
cp -r run/step0 ranks
mkdir -p steps/step0 steps/step3
cp -r run/step0/rank0 steps/step0
cp -r run/step3/rank0 steps/step3
for run in ranks steps; do
    plumb convert $run $run.safetensors
    plumb compare $run.safetensors $run | tail -1
done
