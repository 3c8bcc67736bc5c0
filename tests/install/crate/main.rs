// SPDX-License-Identifier: MIT
//! A Rust program as in README.md: hakmem is its allocator, and zeroed memory is not touched. It
//! says how many KiB more are resident with 1 GiB of zeros.

use std::fs;

#[global_allocator]
static GLOBAL: hakmem::Hakmem = hakmem::Hakmem;

fn resident_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() {
    let words: Vec<String> = (0..100_000).map(|i| i.to_string()).collect();
    assert!(words.iter().enumerate().all(|(i, word)| *word == i.to_string()));
    assert!(hakmem::stats().live_bytes > 1_000_000);
    drop(words);
    let before = resident_kib();
    let zeros = vec![0u8; 1 << 30];
    println!("{}", resident_kib() as isize - before as isize);
    drop(zeros);
    hakmem::trim(0);
}
