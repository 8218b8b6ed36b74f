plumb compare --help
plumb help metrics | head -n 4
plumb help compare >again
plumb compare -h | cmp - again
# Help wins over whatever else is wrong.
plumb compare --help --no-such-option | cmp - again
