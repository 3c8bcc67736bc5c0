# SPDX-License-Identifier: MIT
# The first five minutes of three people, played from README alone, and then the ways of INSTALL.md:
# the commands and files of their code blocks, in order, in a copy of the tree. If this fails, what
# a visitor types first does not work.
#
# Ordinarily `./hak build` in the copy is what was built already; with --full it builds.
. "$(dirname "$0")/lib.sh"
needs redis-server c++ cc pkg-config "$CMAKE"
root=$(cd "$tests/../.." && pwd)
limit_s=1500
PATH=$PATH:$(dirname "$CMAKE")
unset MAKEFLAGS CARGO_TARGET_DIR RUSTFLAGS PYTHONPATH PYTHONMALLOC PYTHONHOME
[ -n "${CARGO_HOME:-}" ] || [ ! -d "${HOME:-}/.cargo" ] || CARGO_HOME=$HOME/.cargo
[ -n "${RUSTUP_HOME:-}" ] || [ ! -d "${HOME:-}/.rustup" ] || RUSTUP_HOME=$HOME/.rustup
HOME=$work/home
PIP_DISABLE_PIP_VERSION_CHECK=1
export PATH HOME PIP_DISABLE_PIP_VERSION_CHECK
[ -z "${CARGO_HOME:-}" ] || export CARGO_HOME
[ -z "${RUSTUP_HOME:-}" ] || export RUSTUP_HOME

mkdir "$work/home" "$work/tree" "$work/tree/out"
for name in "$root"/*; do
    [ "$name" = "$root/out" ] || cp -R "$name" "$work/tree"
done
if ! full; then
    ln -s "$OUT" "$work/tree/out/release"
    printf '#!/bin/sh\n[ "$*" = build ] || { echo "not played: $*"; exit 1; }\n' >"$work/tree/hak"
fi

# A busy machine takes longer than a second: redis listens, and shows what it holds.
cat >"$work/awaited" <<END
until [ -S "$work/socket" ] &&
    "$OUT/hakmem" top --once \$! 2>&1 | grep -q '^  live, up to 128K *[1-9]'; do sleep 0.1; done
END

# plays DOCUMENT SECTION: as one shell, which ends at the first command that fails; redis is given
# a socket, so that no port can be taken.
plays() {
    rm -f "$work/socket"
    awk -v section="$2" -f "$tests/blocks.awk" "$root/$1" |
        sed "s,--port [0-9]*,--port 0 --unixsocket $work/socket,
            /^sleep 1\$/r $work/awaited" >"$work/played"
    check "$1 has commands under '$2'" [ -s "$work/played" ]
    status=0
    (cd "$work/tree" && exec timeout "$limit_s" sh -eu "$work/played") </dev/null \
        >"$work/said" 2>&1 || status=$?
    equal "$1, $2: $(tail -n 12 "$work/said")" "$status" 0
}
# says PATTERN: the last section played printed it.
says() {
    check "it says $1: $(head -c 2000 "$work/said")" grep -qE -- "$1" "$work/said"
}

plays README.md "Quick start"
says '^ok +Linux '
plays README.md "Preload a service"
says '^process [0-9]+ \(redis-server\)$'
says '^ok +hakmem serves malloc: '
says '^resident +[0-9.]+M = heap '
says '^  live, up to 128K +[1-9]'
plays README.md "Link a C++ program"
says '^[1-9][0-9]+ words$'
says '^resident +[0-9.]+ MiB  the process'
says '^  live +[0-9.]+ (B|KiB)'

plays docs/INSTALL.md Install
PKG_CONFIG_PATH=$HOME/hakmem/lib/pkgconfig
export PKG_CONFIG_PATH
plays docs/INSTALL.md pkg-config
equal "four programs have hakmem" "$(grep -cxE '1[0-9]+ bytes' "$work/said")" 4
plays docs/INSTALL.md CMake
says '^1[0-9]+ bytes$'
plays docs/INSTALL.md "hakmem's own API"
says '^a request and what belongs to it$'
says '^1$'
if python3 -c 'import ensurepip, venv' 2>/dev/null; then
    HAKMEM_BUILD=$OUT
    export HAKMEM_BUILD
    plays docs/INSTALL.md Python
    says '^True [1-9][0-9]+$'
fi

# Every block that names a file was one of these.
for document in README.md docs/INSTALL.md; do
    equal "$document: all files were written" "$(awk '/^```/ { is_open = !is_open; first = is_open
        next } is_open && first && /^(\/\/|#) [A-Za-z0-9_.\/-]+$/ { print $2 } { first = 0 }' \
        "$root/$document" | while read -r file; do
            [ "$file" = src/main.rs ] || [ -e "$work/tree/$file" ] || echo "$file"
        done)" ""
done

command -v cargo >/dev/null || skip "all but the crate: no cargo"
[ "$(rustc --version | cut -d. -f2)" -ge 65 ] || skip "all but the crate: the newest cc needs 1.65"
mkdir -p "$work/probe/src"
echo 'fn main() {}' >"$work/probe/src/main.rs"
printf '[package]\nname = "probe"\nversion = "0.1.0"\n[dependencies]\ncc = "1"\n' \
    >"$work/probe/Cargo.toml"
cargo fetch -q --manifest-path "$work/probe/Cargo.toml" >"$work/said" 2>&1 ||
    skip "all but the crate: $(tail -n 1 "$work/said")"
plays README.md "Use the Rust crate"
says '^1000 words, [1-9][0-9]+ bytes live$'
says '^  live +[0-9.]+ (B|KiB)'
