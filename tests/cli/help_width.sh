for columns in 20 60 100 300; do
    for command in compare summary info convert standard help; do
        COLUMNS=$columns plumb help $command |
            awk -v columns=$columns 'length > (columns < 60 ? 60 : columns) && !/^(Usage:)?  / {print columns ": " $0}'
    done
done
