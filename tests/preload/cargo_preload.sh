# SPDX-License-Identifier: MIT
# cargo builds a crate without dependencies, and what it built runs. If this fails, Rust programs,
# whose default allocator is malloc, do not run on hakmem.
#
# Debian's rustc takes its memory from malloc. The one of rustup has an allocator built in, which
# no preload can replace: there cargo, the linker and the crate's program run on hakmem.
. "$(dirname "$0")/lib.sh"
command -v cargo >/dev/null ||
    skip "no cargo: its 404 MB, compiler included, are installed by ./hak test --full"
if [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ]; then
    PATH=/usr/bin:$PATH
    export PATH
fi

mkdir -p "$work/crate/src"
cat >"$work/crate/Cargo.toml" <<'END'
[package]
name = "small"
version = "0.1.0"
edition = "2021"
END
if full; then count=300000; else count=20000; fi
cat >"$work/crate/src/main.rs" <<END
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::thread;

#[repr(align(128))]
#[derive(Clone)]
struct Aligned(u64);

fn main() {
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..4u64)
        .map(|seed| {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut table = HashMap::new();
                for key in 0..$count {
                    table.insert(key * 7 + seed, format!("value {key}"));
                }
                let tree: BTreeMap<_, _> = table.into_iter().collect();
                for (key, value) in tree.iter().step_by(100) {
                    sender.send((key ^ seed, value.clone())).unwrap();
                }
                tree.values().map(|value| value.len()).sum::<usize>()
            })
        })
        .collect();
    drop(sender);
    let mut messages: Vec<_> = receiver.iter().collect();
    messages.sort();
    println!("{} {:?}", messages.len(), messages.iter().step_by(97).take(3).collect::<Vec<_>>());
    for thread in threads {
        println!("{}", thread.join().unwrap());
    }
    let aligned = vec![Box::new(Aligned(5)); 1000];
    assert!(aligned.iter().all(|entry| &**entry as *const Aligned as usize % 128 == 0));
    println!("{}", aligned.iter().map(|entry| entry.0).sum::<u64>());
}
END

# The errors tell the time that it took.
built() {
    equal "$1: cargo builds, $(tail -n 5 "$work/$1.err")" "$(cat "$work/$1.status")" 0
    # But of a compiler that brings its own allocator.
    check "$1: hakmem says nothing" \
        [ "$(grep -i 'hakmem' "$work/$1.err" | grep -cv 'mapped but serves nothing')" = 0 ]
    served "$1"
}
preloaded cargo cargo build --offline --manifest-path "$work/crate/Cargo.toml" \
    --target-dir "$work/target"
built cargo
check "cargo, the compiler and the linker left statistics" [ "$(reports cargo)" -ge 4 ]
rustc=$(rustc --print sysroot)/bin/rustc
if nm -D --defined-only "$rustc" 2>/dev/null | grep -q ' T malloc$'; then
    echo "this rustc brings an allocator of its own"
else
    check "the compiler's requests came to hakmem" [ "$(counter cargo refills)" -gt 1000 ]
fi

well program "$work/target/debug/small"
check "the program's threads came to hakmem" [ "$(counter program threads_started)" = 5 ]
if full; then
    preloaded release cargo build --release --offline --manifest-path "$work/crate/Cargo.toml" \
        --target-dir "$work/target"
    built release
    well fast "$work/target/release/small"
    check "both programs say the same" cmp "$work/program.out" "$work/fast.out"
fi
