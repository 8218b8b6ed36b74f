plumb standard
for name in $(plumb standard); do
    plumb standard $name >$name.std
    test -s $name.std || echo "$name is empty"
done
cat statistics.std checkpoint.std documented.std
diff documented.std msprobe.std || true
