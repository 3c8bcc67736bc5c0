# SPDX-License-Identifier: MIT
# The tests of two crates that allocate much, a hash table and a parser of JSON: Rust's default
# allocator is malloc.
. "$(dirname "$0")/lib.sh"

oks() { grep -cE '^test .* \.\.\. ok$' || :; }
bads() { sed -nE 's/^test (.*) \.\.\. FAILED$/\1/p; s/^error: (test failed.*)/\1/p'; }

crates='hashbrown-0.12.3 serde_json-1.0.99'

begin cargo
needs cargo
version=$(echo "$crates" | tr ' ' ,)

# A package that needs the crates has their sources brought.
mkdir -p "$work/fetch/src"
: >"$work/fetch/src/lib.rs"
{
    printf '[package]\nname = "fetch"\nversion = "0.1.0"\nedition = "2021"\n'
    printf '[workspace]\n[dependencies]\n'
    for crate in $crates; do
        echo "${crate%-*} = \"=${crate##*-}\""
    done
} >"$work/fetch/Cargo.toml"
(cd "$work/fetch" && cargo vendor -q --versioned-dirs "$work/vendor") >"$work/fetch.log" 2>&1 ||
    skip "no crates: $(tail -n 1 "$work/fetch.log")"
cp -r "$tests/crates" "$work/crates"
for crate in $crates; do
    cp -r "$work/vendor/$crate" "$work/crates/${crate%-*}"
done
cd "$work/crates"
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$work/target}
export CARGO_TARGET_DIR
cargo fetch -q --locked >"$work/fetch.log" 2>&1 ||
    skip "no crates: $(tail -n 1 "$work/fetch.log")"
cargo test -q --locked --offline --workspace --lib --tests --no-run >"$work/build.log" 2>&1 ||
    fail "the crates cannot be built: $(tail -n 5 "$work/build.log")"
compare cargo test --locked --offline --workspace --lib --tests --no-fail-fast \
    --manifest-path "$work/crates/Cargo.toml"
