# SPDX-License-Identifier: MIT
# The tests of three crates that allocate much, a hash table, a parser of JSON and an ordered table:
# on Rust's own allocator, and with the crate hakmem as their global allocator.
. "$(dirname "$0")/lib.sh"

oks() { grep -cE '^test .* \.\.\. ok$' || :; }
bads() { sed -nE 's/^test (.*) \.\.\. FAILED$/\1/p; s/^error: (test failed.*)/\1/p'; }

crates='hashbrown-0.12.3 serde_json-1.0.99 indexmap-1.9.3'

begin crates
needs cargo cc
version=$(echo "$crates" | tr ' ' ,)

mkdir -p "$work/fetch/src" "$work/all"
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

# Each crate, and each of its test programs, gets hakmem where the compiler is told so. The tests of
# what compilers refuse to compile are not about memory.
printf '[workspace]\nresolver = "2"\nmembers = [' >"$work/all/Cargo.toml"
for crate in $crates; do
    name=${crate%-*}
    cp -r "$work/vendor/$crate" "$work/all/$name"
    rm -f "$work/all/$name/Cargo.lock" "$work/all/$name/tests/compiletest.rs"
    printf '"%s",' "$name" >>"$work/all/Cargo.toml"
    printf '\n[target."cfg(on_hakmem)".dependencies.hakmem]\npath = "%s"\n' \
        "$root/packaging/rust/hakmem" >>"$work/all/$name/Cargo.toml"
    for file in "$work/all/$name"/src/lib.rs "$work/all/$name"/tests/*.rs; do
        cat >>"$file" <<'END'

#[cfg(all(test, on_hakmem))]
#[global_allocator]
static ON_HAKMEM: hakmem::Hakmem = hakmem::Hakmem;
END
    done
done
echo ']' >>"$work/all/Cargo.toml"
cd "$work/all"
CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS=fallback
export CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS
cargo fetch -q >"$work/fetch.log" 2>&1 || skip "no crates: $(tail -n 1 "$work/fetch.log")"

# In place of the preloaded run: a build with hakmem in it, whose tests leave statistics.
preloaded() {
    name=$1
    shift
    status=0
    build="env CARGO_TARGET_DIR=$work/target_hakmem"
    RUSTFLAGS='--cfg on_hakmem' $build "$@" --no-run >"$work/build.log" 2>&1 ||
        fail "with hakmem the crates cannot be built: $(tail -n 5 "$work/build.log")"
    (cd "$work/preloaded" && RUSTFLAGS='--cfg on_hakmem' HAKMEM_STATS=raw \
        HAKMEM_STATS_FILE="$work/$name.stats" exec timeout "$limit_s" $build "$@") </dev/null \
        >"$work/$name.out" 2>"$work/$name.err" || status=$?
    echo "$status" >"$work/$name.status"
}
CARGO_TARGET_DIR=$work/target
export CARGO_TARGET_DIR
cargo test -q --offline --workspace --lib --tests --no-run >"$work/build.log" 2>&1 ||
    skip "this Rust cannot build the crates: $(tail -n 5 "$work/build.log")"
compare cargo test --offline --workspace --lib --tests --no-fail-fast \
    --manifest-path "$work/all/Cargo.toml"
