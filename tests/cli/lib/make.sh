# Sourced by the tests: small input files without any help.

# safetensors FILE HEADER DATA: DATA as printf takes it.
safetensors() {
    local length=${#2}
    printf "\\x$(printf %02x $((length & 255)))\\x$(printf %02x $((length >> 8)))\\0\\0\\0\\0\\0\\0" >"$1"
    printf '%s' "$2" >>"$1"
    printf "$3" >>"$1"
}

# bytes NAME N...: one tensor of unsigned bytes, as NAME.safetensors.
bytes() {
    local name=$1 data=
    shift
    for value in "$@"; do
        data+=\\x$(printf %02x "$value")
    done
    safetensors "$name.safetensors" \
        "{\"$name\":{\"dtype\":\"U8\",\"shape\":[$#],\"data_offsets\":[0,$#]}}" "$data"
}

# Runs a command and says how it ended.
try() {
    local code=0
    "$@" || code=$?
    echo "-> $code"
}
