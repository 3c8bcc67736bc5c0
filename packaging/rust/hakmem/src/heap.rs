// SPDX-License-Identifier: MIT
//! Heaps: sets of blocks that are freed at once.

use crate::global::is_aligned_anyway;
use crate::HeapStats;
use allocator_api2::alloc::{AllocError, Allocator, Layout};
use hakmem_sys::*;
use std::io;
use std::mem::size_of;
use std::os::raw::c_void;
use std::ptr::{self, NonNull};

/// A heap, whose blocks are freed when it is dropped, or one by one before. Any number of threads
/// may use it at a time, and a reference to it is an allocator.
///
/// ```
/// use allocator_api2::vec::Vec;
///
/// let heap = hakmem::Heap::new()?;
/// let mut words = Vec::new_in(&heap);
/// words.extend([1, 2, 3]);
/// assert!(heap.stats().live_block_count > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Heap(NonNull<hakmem_heap>);

// The functions of heaps may be called by any thread.
unsafe impl Send for Heap {}
unsafe impl Sync for Heap {}

impl Heap {
    /// A new heap; an error: no memory.
    pub fn new() -> io::Result<Heap> {
        let heap = unsafe { hakmem_heap_new() };
        NonNull::new(heap).map(Heap).ok_or_else(io::Error::last_os_error)
    }

    /// What it holds at this moment.
    pub fn stats(&self) -> HeapStats {
        let mut stats = HeapStats::default();
        unsafe { hakmem_heap_stats_get(self.0.as_ptr(), &mut stats, size_of::<HeapStats>()) };
        stats
    }

    /// Gives what it holds without need to other requests.
    pub fn trim(&self) {
        unsafe { hakmem_heap_trim(self.0.as_ptr()) }
    }

    unsafe fn take(&self, layout: Layout) -> *mut c_void {
        if is_aligned_anyway(layout) {
            hakmem_heap_malloc(self.0.as_ptr(), layout.size())
        } else {
            hakmem_heap_aligned_alloc(self.0.as_ptr(), layout.align(), layout.size())
        }
    }

    /// Another size for a block, by which it may move; zero bytes are none of the heap's.
    unsafe fn resize(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if old.size() != 0 && is_aligned_anyway(new) {
            let moved = hakmem_heap_realloc(self.0.as_ptr(), block.as_ptr().cast(), new.size());
            return answer(moved, new);
        }
        let moved = self.allocate(new)?;
        let copied = old.size().min(new.size());
        ptr::copy_nonoverlapping(block.as_ptr(), moved.as_ptr().cast(), copied);
        self.deallocate(block, old);
        Ok(moved)
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        unsafe { hakmem_heap_destroy(self.0.as_ptr()) }
    }
}

/// An address that is aligned and never read, for zero bytes.
fn dangling(layout: Layout) -> *mut c_void {
    ptr::null_mut::<u8>().wrapping_add(layout.align()).cast()
}

fn answer(block: *mut c_void, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
    NonNull::new(ptr::slice_from_raw_parts_mut(block.cast(), layout.size())).ok_or(AllocError)
}

// A block lives until it is freed or the heap is dropped, which no reference to it outlives.
unsafe impl Allocator for &Heap {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        match layout.size() {
            0 => answer(dangling(layout), layout),
            _ => answer(unsafe { self.take(layout) }, layout),
        }
    }

    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() != 0 && is_aligned_anyway(layout) {
            let block = unsafe { hakmem_heap_calloc(self.0.as_ptr(), 1, layout.size()) };
            return answer(block, layout);
        }
        let block = self.allocate(layout)?;
        unsafe { ptr::write_bytes(block.as_ptr().cast::<u8>(), 0, layout.size()) };
        Ok(block)
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            hakmem_heap_free(self.0.as_ptr(), block.as_ptr().cast());
        }
    }

    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        self.resize(block, old, new)
    }

    unsafe fn grow_zeroed(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let moved = self.resize(block, old, new)?;
        let fresh = moved.as_ptr().cast::<u8>().add(old.size());
        ptr::write_bytes(fresh, 0, new.size() - old.size());
        Ok(moved)
    }

    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        self.resize(block, old, new)
    }
}
