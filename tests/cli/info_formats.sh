# One of each; hostile and foreign ones are refused in one line.
exec 2>&1
for file in npz/deflated.npz pt/checkpoint.pt pt/evil.pt pt/legacy.pt hdf5/tiny.h5; do
    plumb info "$DATA/$file"
    echo "-> $?"
done
