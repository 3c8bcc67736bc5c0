// SPDX-License-Identifier: MIT
//! Heaps as allocators of collections.
#![cfg(feature = "allocator-api2")]

use allocator_api2::alloc::{Allocator, Layout};
use allocator_api2::vec::Vec;
use hakmem::Heap;
use std::ptr::NonNull;
use std::thread;

#[test]
fn a_dropped_heap_frees_what_was_leaked() {
    const LARGE_BYTES: usize = 256 << 20; // more than the other tests have
    let heap = Heap::new().unwrap();
    let before = hakmem::stats().live_bytes;
    let mut bytes = Vec::with_capacity_in(LARGE_BYTES, &heap);
    bytes.push(7u8);
    let leaked = Vec::leak(bytes);
    assert_eq!(leaked, [7]);
    assert!(hakmem::stats().live_bytes > before + LARGE_BYTES as u64 / 2);
    drop(heap);
    assert!(hakmem::stats().live_bytes < before + LARGE_BYTES as u64 / 2);
}

#[test]
fn a_vector_grows_and_shrinks_in_its_heap() {
    let heap = Heap::new().unwrap();
    let mut numbers = Vec::new_in(&heap);
    numbers.extend(0..100_000u64);
    numbers.truncate(10);
    numbers.shrink_to_fit();
    assert!(numbers.iter().copied().eq(0..10));
    let start: *const u64 = numbers.as_ptr();
    assert!(!unsafe { hakmem_sys::hakmem_heap_of(start.cast()) }.is_null());
    assert_eq!(heap.stats().live_block_count, 1);
    drop(numbers);
    assert_eq!(heap.stats().live_block_count, 0);
    heap.trim();
}

#[test]
fn threads_share_a_heap() {
    let heap = Heap::new().unwrap();
    thread::scope(|scope| {
        for thread in 0..3 {
            let heap = &heap;
            scope.spawn(move || {
                for i in 0..1000usize {
                    let mut bytes = Vec::new_in(heap);
                    bytes.resize(i, thread);
                    assert!(bytes.iter().all(|&byte| byte == thread));
                }
            });
        }
    });
    assert_eq!(heap.stats().live_block_count, 0);
}

#[test]
fn every_alignment_grows_and_shrinks_with_its_contents() {
    let heap = Heap::new().unwrap();
    let heap = &heap;
    let layout = |bytes, shift| Layout::from_size_align(bytes, 1usize << shift).unwrap();
    for shift in 0..14 {
        for (small, large) in [(0, 0), (0, 50), (3, 100), (100, 9000), (9000, 400_000)] {
            let (small, large) = (layout(small, shift), layout(large, shift));
            unsafe {
                let block = heap.allocate_zeroed(small).unwrap();
                let grown = heap.grow_zeroed(start(block), small, large).unwrap();
                assert!(start(grown).as_ptr() as usize % large.align() == 0);
                assert!(grown.as_ref().len() == large.size());
                assert!(grown.as_ref().iter().all(|&byte| byte == 0));
                let shrunk = heap.shrink(start(grown), large, small).unwrap();
                assert!(shrunk.as_ref().iter().all(|&byte| byte == 0));
                heap.deallocate(start(shrunk), small);
            }
        }
    }
    assert_eq!(heap.stats().live_block_count, 0);
}

fn start(block: NonNull<[u8]>) -> NonNull<u8> {
    block.cast()
}
