#!/bin/sh
# Turns text files into C: embed.sh OUTPUT.c TABLE HEADER FILE...
#
# The result defines `const struct builtin TABLE[]`, declared by HEADER: a row {name, text} for each
# file, named after it without its ending, and a row of NULLs at the end.
set -eu

output=$1 table=$2 header=$3
shift 3
{
    printf '/* Made by scripts/embed.sh; do not edit. */\n#include "%s"\n\n' "$header"
    printf 'const struct builtin %s[] = {\n' "$table"
    for file in "$@"; do
        name=${file##*/}
        printf '    {"%s",\n' "${name%.*}"
        sed -e 's/[\\"]/\\&/g' -e 's/?/\\?/g' -e 's/^/     "/' -e 's/$/\\n"/' "$file"
        printf '    },\n'
    done
    printf '    {NULL, NULL},\n};\n'
} >"$output"
