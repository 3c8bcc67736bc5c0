# SPDX-License-Identifier: MIT
# The Rust crates: what `cargo package` makes of them holds all sources, and a program in either
# edition that depends on it has hakmem as its allocator. With --full also the crates' own tests,
# with and without `override`; crate_cross_install.sh runs them for other targets.
. "$(dirname "$0")/lib.sh"
needs cargo rustc "$CC" tar
root=$(cd "$tests/../.." && pwd)
limit_s=600

# In a copy: cargo writes Cargo.lock beside the sources.
mkdir "$work/tree" "$work/tree/packaging"
cp -r "$root/src" "$root/include" "$root/cmake" "$root/LICENSE" "$work/tree"
cp -r "$root/packaging/rust" "$work/tree/packaging"
rm -f "$work/tree/packaging/rust/Cargo.lock"
cd "$work/tree/packaging/rust"
CARGO_TARGET_DIR=$work/target
export CARGO_TARGET_DIR
unset RUSTFLAGS

# locked FOLDER: chooses the versions of what a package there needs. The newest cc wants a newer
# compiler than Debian 12 has.
minor=$(rustc --version | cut -d. -f2)
locked() {
    cargo generate-lockfile --manifest-path "$1/Cargo.toml" >"$work/lock.log" 2>&1 ||
        skip "no crates: $(tail -n 1 "$work/lock.log")"
    if [ "$minor" -lt 65 ]; then
        quietly cargo update --manifest-path "$1/Cargo.toml" -p cc --precise 1.0.90
    fi
    cargo fetch -q --locked --manifest-path "$1/Cargo.toml" >"$work/lock.log" 2>&1 ||
        skip "no crates: $(tail -n 1 "$work/lock.log")"
}
locked .

for crate in hakmem-sys hakmem; do
    (cd $crate && quietly cargo package --list --allow-dirty && cp "$work/said" "$work/$crate.list")
    check "$crate has its licence" grep -qx LICENSE "$work/$crate.list"
done
(cd "$root" && find src -name '*.[chS]' -o -name '*.cpp' | sort) >"$work/sources"
sed -n 's,^hakmem/\(src/.*\),\1,p' "$work/hakmem-sys.list" | sort >"$work/packaged"
equal "the package has every source" "$(diff "$work/sources" "$work/packaged")" ""

# Its functions are those of the header.
header=$root/include/hakmem/hakmem.h
functions=$(sed -n 's/^HAKMEM_API.*[ *]\(hakmem_[a-z_]*\)(.*/\1/p' "$header"
    sed -n 's/^ *\**\(hakmem_[a-z_]*\)(.*/\1/p' "$header")
check "functions are found in the header" [ "$(printf '%s\n' "$functions" | wc -l)" -ge 28 ]
for function in $functions; do
    check "hakmem-sys declares $function" grep -q "pub fn $function(" hakmem-sys/src/lib.rs
done

# A crate that others depend on is looked for in the registry, so the packages are unpacked where
# the program finds them. hakmem-sys is compiled once, by the program.
(cd hakmem-sys && quietly cargo package --no-verify --allow-dirty)
mkdir "$work/crates"
tar -C "$work/crates" -xzf "$work"/target/package/hakmem-sys-*.crate
mv "$work"/crates/hakmem-sys-* "$work/crates/hakmem-sys"
cp -rL hakmem "$work/crates"

# program EDITION: that of tests/install/crate, in a package of its own.
program() {
    mkdir -p "$work/use$1/src"
    cp "$tests/crate/main.rs" "$work/use$1/src"
    printf '[package]\nname = "use"\nversion = "0.1.0"\nedition = "%s"\n[dependencies]\n%s\n' \
        "$1" 'hakmem = { path = "../crates/hakmem" }' >"$work/use$1/Cargo.toml"
    locked "$work/use$1"
    quietly cargo build --locked --manifest-path "$work/use$1/Cargo.toml"
    cp "$work/target/debug/use" "$work/use$1/use"
    status=0
    HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/edition$1.stats" timeout "$limit_s" \
        "$work/use$1/use" >"$work/grown" 2>&1 || status=$?
    equal "edition $1: ends well, $(head -c 300 "$work/grown")" "$status" 0
    served "edition$1"
    check "edition $1: 1 GiB of zeros is not touched: $(cat "$work/grown") KiB" \
        [ "$(cat "$work/grown")" -lt 8192 ]
}
program 2021
[ "$minor" -lt 85 ] || program 2024

full || exit 0

quietly cargo package --allow-dirty --manifest-path hakmem-sys/Cargo.toml
quietly cargo test --locked --workspace
quietly cargo test --locked --workspace --features allocator-api2
quietly cargo test --locked --workspace --release --all-features
check "the crates' tests pass" true
