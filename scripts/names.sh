#!/bin/sh
# Turns a file of names into a sorted C table: names.sh OUTPUT.c TABLE HEADER FILE
#
# In FILE, names stand under a line [PREFIX], any number on a line; lines with # are comments. The
# result defines `const char *const TABLE[]`, declared by HEADER: "PREFIX.NAME" for each, in the
# order of strcmp, and a NULL at the end; and `const size_t TABLE_count`.
set -eu

output=$1 table=$2 header=$3 file=$4
{
    printf '/* Made by scripts/names.sh; do not edit. */\n#include "%s"\n\n' "$header"
    printf 'const char *const %s[] = {\n' "$table"
    awk '/^#/ { next }
         /^\[/ { prefix = substr($0, 2, length($0) - 2); next }
         { for (i = 1; i <= NF; i++) print prefix "." $i }' "$file" |
        LC_ALL=C sort -u | sed -e 's/^/    "/' -e 's/$/",/'
    printf '    NULL,\n};\n\n'
    printf 'const size_t %s_count = sizeof %s / sizeof *%s - 1;\n' "$table" "$table" "$table"
} >"$output"
