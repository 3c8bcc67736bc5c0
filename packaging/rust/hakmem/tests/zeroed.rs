// SPDX-License-Identifier: MIT
//! Zeroed memory is not touched before the program does: alone here, as it is read from the
//! process's resident memory.

use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::fs;

#[global_allocator]
static GLOBAL: hakmem::Hakmem = hakmem::Hakmem;

fn resident_bytes() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

const LARGE_BYTES: usize = 1 << 30;

/// How much more is resident than before: 0 where the kernel's count, which is not exact, fell.
fn grown_bytes(before: usize) -> usize {
    resident_bytes().saturating_sub(before)
}

#[test]
fn large_zeroed_memory_is_not_touched() {
    let before = resident_bytes();
    let zeros = vec![0u8; LARGE_BYTES];
    let grown = grown_bytes(before);
    assert!(grown < 8 << 20, "of Vec: {grown}");
    assert_eq!(zeros[LARGE_BYTES / 2], 0);
    drop(zeros);

    for shift in 5..=6 {
        let layout = Layout::from_size_align(LARGE_BYTES, 1 << shift).unwrap();
        unsafe {
            let block = alloc_zeroed(layout);
            assert!(!block.is_null() && block as usize % layout.align() == 0);
            let grown = grown_bytes(before);
            assert!(grown < 8 << 20, "aligned to {}: {grown}", layout.align());
            dealloc(block, layout);
        }
    }
}
