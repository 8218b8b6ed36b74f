# Both files are asked about at once, small as they are: each helper waits for the other to begin.
real=$(dirname "$(command -v plumb)")/plumb-h5
cat > helper <<END
#!/bin/sh
: > "$PWD/began.\$\$"
for i in \$(seq 600); do
    [ \$(ls "$PWD" | grep -c began) -lt 2 ] || exec "$real" "\$@"
    sleep 0.1
done
echo "nobody else was started" >&2
exit 3
END
chmod +x helper
PLUMB_H5=$PWD/helper plumb compare --all "$DATA/hdf5/tiny.h5" "$DATA/hdf5/tiny.h5"
