plumb __man | head -n 4
plumb __man compare | grep -A 1 'output_path'
plumb __completion >completion
bash -n completion
. ./completion
complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _plumb; echo "${COMPREPLY[*]}"; }
complete_words plumb co
complete_words plumb compare --ma
complete_words plumb compare --match ''
complete_words plumb standard ''
touch docs.rules
complete_words plumb acc_check --rules doc
touch 'a file' other
complete_words plumb info a
