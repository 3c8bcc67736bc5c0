// SPDX-License-Identifier: MIT
//! The global allocator.

use hakmem_sys::*;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

/// hakmem as the global allocator of a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hakmem;

/// Blocks of up to 8 bytes are aligned to 8, all others to 16.
pub(crate) fn is_aligned_anyway(layout: Layout) -> bool {
    layout.align() <= 16 && layout.align() <= layout.size()
}

/// From this size on blocks begin at a cache line, and calloc knows which memory is zero.
const LARGE_BYTES: usize = 256 << 10;
const CACHE_LINE_BYTES: usize = 64;

/// Zeroed memory for an alignment that calloc does not promise. A large block of its has that of a
/// cache line all the same, and then no page need be touched.
#[cold]
unsafe fn take_zeroed_aligned(layout: Layout) -> *mut u8 {
    if layout.size() >= LARGE_BYTES && layout.align() <= CACHE_LINE_BYTES {
        let block = hakmem_calloc(1, layout.size());
        if block as usize % layout.align() == 0 {
            return block.cast();
        }
        hakmem_free(block);
    }
    let block: *mut u8 = hakmem_aligned_alloc(layout.align(), layout.size()).cast();
    if !block.is_null() {
        ptr::write_bytes(block, 0, layout.size());
    }
    block
}

/// realloc promises an alignment of 16 only. A block that stays more than half used stays where it
/// is, any other moves.
#[cold]
unsafe fn move_aligned(block: *mut u8, old: Layout, new: Layout) -> *mut u8 {
    let usable_bytes = hakmem_usable_size(block.cast());
    if new.size() <= usable_bytes && new.size() >= usable_bytes / 2 {
        return block;
    }
    let moved: *mut u8 = hakmem_aligned_alloc(new.align(), new.size()).cast();
    if !moved.is_null() {
        ptr::copy_nonoverlapping(block, moved, old.size().min(new.size()));
        hakmem_free(block.cast());
    }
    moved
}

unsafe impl GlobalAlloc for Hakmem {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_aligned_anyway(layout) {
            hakmem_malloc(layout.size()).cast()
        } else {
            hakmem_aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_aligned_anyway(layout) {
            hakmem_calloc(1, layout.size()).cast()
        } else {
            take_zeroed_aligned(layout)
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let new = Layout::from_size_align_unchecked(new_size, layout.align());
        if is_aligned_anyway(new) {
            hakmem_realloc(block.cast(), new_size).cast()
        } else {
            move_aligned(block, layout, new)
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        hakmem_free(block.cast())
    }
}
